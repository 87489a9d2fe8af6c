import type { Pool, Sql } from '../db/pool.ts'

export interface Partition {
  table: 'event_log' | 'event'
  name: string
  /** Inclusive. */
  from: Date
  /** Exclusive. */
  to: Date
}

/** The database's clock in Unix milliseconds: it decides into which partition of the log a row goes. */
export async function databaseTime(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ now: Date }>('select clock_timestamp() as now')
  return row?.now.getTime() ?? Number.NaN
}

/** Asks the catalogue's tables: to_regclass() may still answer from before what another session committed. */
export async function missingPartitions(sql: Sql, partitions: Partition[]): Promise<Partition[]> {
  const found = await sql.query<{ name: string }>(
    `select child.relname as name
    from pg_inherits
    join pg_class child on child.oid = inhrelid
    where inhparent in ('event'::regclass, 'event_log'::regclass)
      and child.relname = any ($1::text[])`,
    [partitions.map(({ name }) => name)],
  )
  const names = new Set(found.map(({ name }) => name))
  return partitions.filter(({ name }) => !names.has(name))
}

/** Any fixed number: one maker of partitions at a time per database. */
const lockKey = 7_210_002

/**
 * Made apart and then attached: `create table … partition of` would lock readers and writers of the whole table out, and
 * queue them behind the longest query under way. One short transaction each, since it holds back every lane's cursor.
 */
export async function createPartition(pool: Pool, { table, name, from, to }: Partition): Promise<void> {
  await pool.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey])
    const [still] = await missingPartitions(tx, [{ table, name, from, to }])
    if (!still) return
    await tx.query(`create table ${name} (like ${table} including storage including compression)`)
    await tx.query(
      `alter table ${table} attach partition ${name}
      for values from ('${from.toISOString()}') to ('${to.toISOString()}')`,
    )
  })
}
