import type { Sql } from '../db/pool.ts'

/** What the operator watches beside lag; a few milliseconds together. */
export interface LogGauges {
  /** Lanes that were stopped because too many of their events could not be applied, and why. */
  stopped: { scopeId: number; why: string }[]
  /** Set aside and not replayed, up to 100,000. */
  deadEvents: number
  /** The oldest transaction that has written and is still open: it holds every lane back. */
  xminHold: { seconds: number; holder: string } | null
  partitionBytes: { table: string; bytes: number }[]
}

export async function stoppedLanes(sql: Sql): Promise<LogGauges['stopped']> {
  return sql.query<{ scopeId: number; why: string }>(
    `select id as "scopeId", coalesce(stopped_why, '') as why
    from lane
    where stopped_until > clock_timestamp()
    order by id`,
  )
}

export async function logGauges(sql: Sql): Promise<LogGauges> {
  const [stopped, dead, hold, partitionBytes] = await Promise.all([
    stoppedLanes(sql),
    sql.query<{ n: number }>(
      `select count(*)::int as n
      from (select true from dead_event where replayed_at is null limit 100000) dead`,
    ),
    // Others' sessions show their times to superusers and members of pg_read_all_stats only.
    sql.query<{ seconds: number; holder: string }>(
      `select date_part('epoch', clock_timestamp() - xact_start) as seconds,
        coalesce(nullif(application_name, ''), 'pid ' || pid) as holder
      from pg_stat_activity
      where backend_xid is not null
      union all
      select date_part('epoch', clock_timestamp() - prepared), 'prepared ' || gid
      from pg_prepared_xacts
      order by seconds desc nulls last
      limit 1`,
    ),
    sql.query<{ table: string; bytes: number }>(
      `select inhparent::regclass::text as table, sum(pg_total_relation_size(inhrelid))::float8 as bytes
      from pg_inherits
      where inhparent in ('event_log'::regclass, 'event'::regclass, 'event_seen'::regclass)
      group by inhparent`,
    ),
  ])
  return { stopped, deadEvents: dead[0]?.n ?? 0, xminHold: hold[0] ?? null, partitionBytes }
}
