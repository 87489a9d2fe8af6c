import type pg from 'pg'
import type { Pool } from '../db/pool.ts'
import { forgetRowsAtOnce } from '../kernel/limits.ts'
import { behind } from './lag-store.ts'
import { uncount } from './queries/rollup-store.ts'

/** Any fixed number: one process at a time forgets. */
const lockKey = 7_210_005

/** Runs `work` on a connection that is in no transaction, unless another process is at it. */
export async function alone<T>(pool: Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T | null> {
  return pool.connected(async (client) => {
    const { rows } = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [lockKey])
    if (rows[0]?.held !== true) return null
    try {
      return await work(client)
    } finally {
      await client.query('select pg_advisory_unlock($1)', [lockKey])
    }
  })
}

export interface OldPartition {
  table: 'event_log' | 'event'
  name: string
  /** `detaching` and `apart` are what an interrupted drop leaves. */
  state: 'attached' | 'detaching' | 'apart'
}

/** Partitions that end at or before `until`, oldest first: their names say which day or month they hold. */
export async function oldPartitions(
  client: pg.ClientBase,
  table: OldPartition['table'],
  until: Date,
): Promise<OldPartition[]> {
  const [digits, format, length] = table === 'event' ? [6, 'YYYYMM', '1 month'] : [8, 'YYYYMMDD', '1 day']
  const { rows } = await client.query<OldPartition>(
    `select $1 as table, name, state
    from (
      select relname as name, right(relname, ${digits}) as starts,
        case when inhrelid is null then 'apart' when inhdetachpending then 'detaching' else 'attached' end as state
      from pg_class
      left join pg_inherits on inhrelid = pg_class.oid
      where relkind = 'r'
        and relnamespace = (select relnamespace from pg_class where oid = $1::regclass)
        and relname ~ ('^' || $1 || '_[0-9]{${digits}}$')
    ) partition
    where to_timestamp(starts || ' UTC', '${format} TZ') + interval '${length}' <= $2
    order by starts`,
    [table, until],
  )
  return rows
}

/** Whether some lane has still to take a row of this day. */
export async function hasWaitingRows(client: pg.ClientBase, partition: string): Promise<boolean> {
  const { rows } = await client.query(
    `select true
    from scope s
    left join lane l on l.id = s.id
    where (select true ${behind('live', partition)} limit 1)
      or (select true ${behind('historical', partition)} limit 1)
    limit 1`,
  )
  return rows.length > 0
}

export async function noteLeftBehind(client: pg.ClientBase, name: string, at: Date): Promise<void> {
  await client.query('insert into event_log_passed (name, passed_at) values ($1, $2) on conflict do nothing', [
    name,
    at,
  ])
}

export async function passedSince(client: pg.ClientBase, name: string): Promise<Date> {
  const { rows } = await client.query<{ at: Date }>('select passed_at as at from event_log_passed where name = $1', [
    name,
  ])
  return rows[0]?.at ?? new Date(8.64e15)
}

/**
 * Taken off beside readers and writers, who are locked out for no moment, and then dropped. The name is one of ours: it
 * cannot be a parameter.
 */
export async function dropPartition(client: pg.ClientBase, { table, name, state }: OldPartition): Promise<void> {
  if (state === 'attached') await client.query(`alter table ${table} detach partition ${name} concurrently`)
  if (state === 'detaching') await client.query(`alter table ${table} detach partition ${name} finalize`)
  await client.query('begin')
  try {
    if (table === 'event') await client.query(uncount(name))
    await client.query(`drop table if exists ${name}`)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
  await client.query('delete from event_log_passed where name = $1', [name])
}

/** By event_seen_day, in small transactions: each holds every lane's cursor back while it lasts. */
export async function forgetSeen(client: pg.ClientBase, before: Date): Promise<number> {
  const { rows } = await client.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'event_seen'::regclass order by 1`,
  )
  let deleted = 0
  for (const { name } of rows)
    deleted += await forgetRows(client, name, `received_day < ($1::timestamptz at time zone 'UTC')::date`, before)
  return deleted
}

export async function forgetDeadEvents(client: pg.ClientBase, before: Date): Promise<number> {
  return forgetRows(client, 'dead_event', 'died_at < $1', before)
}

/** Counts and samples. */
export async function forgetWarnings(client: pg.ClientBase, before: Date): Promise<number> {
  const counts = await forgetRows(client, 'event_warning', 'last_seen < $1', before)
  return counts + (await forgetRows(client, 'event_warning_sample', 'seen_at < $1', before))
}

async function forgetRows(client: pg.ClientBase, table: string, condition: string, before: Date): Promise<number> {
  let deleted = 0
  for (;;) {
    const { rowCount } = await client.query(
      `delete from ${table}
      where ctid = any (array(select ctid from ${table} where ${condition} limit ${forgetRowsAtOnce}))`,
      [before],
    )
    deleted += rowCount ?? 0
    if ((rowCount ?? 0) < forgetRowsAtOnce) return deleted
  }
}
