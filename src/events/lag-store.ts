import type { Sql } from '../db/pool.ts'
import { logClockSlackMs } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { isStopped, leaseRuns } from './lane-store.ts'
import type { Stream } from './types.ts'

const streamNumber = { live: 0, historical: 1 } as const

/** Rows of a stream that the lane `l` of the scope `s` has not taken yet. A scope without a lane has not begun. */
export const behind = (stream: Stream, table = 'event_log') => `
  from ${table} e
  where e.lane = s.id
    and e.stream = ${streamNumber[stream]}
    and (e.gen, e.xid, e.seq) > (coalesce(l.${stream}_gen, 0), coalesce(l.${stream}_xid, '0'), coalesce(l.${stream}_seq, 0))`

/** The same as the lane reads them: only from the partitions that can hold such rows. */
export const waiting = (stream: Stream) => `${behind(stream)}
    and e.logged_at >= coalesce(l.${stream}_logged_at, '-infinity') - interval '${logClockSlackMs} milliseconds'`

export interface LaneWithWork {
  id: number
  /** Nobody's, or this worker's own, and not stopped. */
  free: boolean
}

/**
 * Every lane that has something to do. Probes two indexes a lane (1,000 idle lanes: 16 ms); as `exists` the planner may
 * make it a join that reads whole partitions (2,200 ms).
 */
export async function lanesWithWork(sql: Sql, owner: string): Promise<LaneWithWork[]> {
  return sql.query<LaneWithWork>(
    `select s.id, l.id is null or ((l.owner = $1 or not ${leaseRuns('l')}) and not ${isStopped('l')}) as free
    from scope s
    left join lane l on l.id = s.id
    where (select true ${waiting('live')} limit 1)
      or (select true ${waiting('historical')} limit 1)`,
    [owner],
  )
}

/** How far the log has been written, so that nobody looks for work when nothing was added. */
export interface LogMark {
  /** Drawn by every append after its transaction id; 0: none was drawn ever. */
  seq: bigint
  /** Every transaction below has ended; none from `xmax` on has begun. */
  xmin: bigint
  xmax: bigint
}

export async function selectLogMark(sql: Sql): Promise<LogMark> {
  const [row] = await sql.query<{ seq: bigint; xmin: string; xmax: string }>(
    `select case when is_called then last_value else 0 end as seq, pg_snapshot_xmin(pg_current_snapshot())::text as xmin,
      pg_snapshot_xmax(pg_current_snapshot())::text as xmax
    from event_log_seq_seq`,
  )
  return { seq: row?.seq ?? 0n, xmin: BigInt(row?.xmin ?? 0), xmax: BigInt(row?.xmax ?? 0) }
}

/**
 * Lets lanes read from further back where rows wait before the time they read from: the database's clock was set back by
 * more than they allow for.
 */
export async function revealRows(sql: Sql, stream: Stream): Promise<void> {
  await sql.query(
    `update lane
    set ${stream}_logged_at = hidden.logged_at
    from (
      select s.id, (
          select e.logged_at ${behind(stream)}
            and e.logged_at < l.${stream}_logged_at - interval '${logClockSlackMs} milliseconds'
          order by e.gen, e.xid, e.seq
          limit 1
        ) as logged_at
      from scope s
      join lane l on l.id = s.id
    ) hidden
    where lane.id = hidden.id
      and hidden.logged_at is not null`,
  )
}

export interface Backlog {
  /** Age of the oldest row, by the database's clock. 0 when nothing waits. */
  lagMs: number
  rows: number
}

/** Counting costs about 0.2 µs a row; a lane this far behind is alarming by its age. */
export const countedMax = 100_000

export async function selectBacklog(sql: Sql, stream: Stream): Promise<Backlog> {
  const [row] = await sql.query<{ lag: number | null; rows: string | null }>(
    `select date_part('epoch', clock_timestamp() - min(oldest.logged_at)) * 1000 as lag, sum(counted.rows)::text as rows
    from scope s
    left join lane l on l.id = s.id
    cross join lateral (
      select e.logged_at ${waiting(stream)}
      order by e.gen, e.xid, e.seq
      limit 1
    ) oldest
    cross join lateral (
      select count(*) as rows
      from (select true ${waiting(stream)} limit ${countedMax}) behind
    ) counted`,
  )
  return { lagMs: Math.max(Math.round(row?.lag ?? 0), 0), rows: Number(row?.rows ?? 0) }
}

/** Transactions that overlap log fewer rows than this: the oldest of the rows that wait is among the first so many of their order. */
const overlapRows = 20_000

export interface OldestWaiting {
  /** The database's clock before the look, in Unix milliseconds. */
  now: number
  /** When the oldest live row that waits was logged; null when none does. */
  oldest: number | null
  historicalRows: number
}

/** Two probes of event_log_cursor while nothing waits (0.2 ms); `statement_timestamp()` lies before the snapshot. */
export async function selectOldestWaiting(sql: Sql, { scopeId }: Scope): Promise<OldestWaiting> {
  const [row] = await sql.query<{ now: number; oldest: number | null; historical: bigint }>(
    `select date_part('epoch', statement_timestamp()) * 1000 as now,
      (
        select date_part('epoch', min(next.logged_at)) * 1000
        from (select e.logged_at ${waiting('live')} order by e.gen, e.xid, e.seq limit ${overlapRows}) next
      ) as oldest,
      (select count(*) from (select true ${waiting('historical')} limit ${countedMax}) behind) as historical
    from scope s
    left join lane l on l.id = s.id
    where s.id = $1`,
    [scopeId],
    'oldest_waiting',
  )
  return { now: row?.now ?? 0, oldest: row?.oldest ?? null, historicalRows: Number(row?.historical ?? 0) }
}
