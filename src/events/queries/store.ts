import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { anyMerged } from './source-store.ts'

/** What every read of events has to know before it can be put into words. */
export interface Seen {
  /** Some record's events stand under it though it was merged into another one. */
  merged: boolean
  /** The position of the newest event that is applied. */
  newest: bigint
  /** Of the connection's server process. */
  processId: number
}

/** A probe of customer_change_unsettled, and the lane's row. */
export async function selectSeen(sql: Sql, { scopeId }: Scope): Promise<Seen> {
  const [row] = await sql.query<{ merged: boolean; newest: bigint | null; process_id: number }>(
    `select (${anyMerged}) as merged, (select pos from lane where id = $1) as newest, pg_backend_pid() as process_id`,
    [scopeId],
    'events_seen',
  )
  return { merged: row?.merged ?? false, newest: row?.newest ?? 0n, processId: row?.process_id ?? 0 }
}

/**
 * Begins a transaction in which every statement sees what the first one after it does. `set` takes no snapshot: the events
 * that are acknowledged before the first look are then all counted as waiting or seen.
 */
export async function beginSnapshot(sql: Sql, msMax: number): Promise<void> {
  await sql.query(`begin isolation level repeatable read, read only; set local statement_timeout = ${timeoutMs(msMax)}`)
}

/** What is left of the time for a query; every statement of it takes from the same. */
export async function limitTime(sql: Sql, ms: number): Promise<void> {
  await sql.query(`set local statement_timeout = ${timeoutMs(ms)}`)
}

/** 0 would be no limit. */
function timeoutMs(ms: number): number {
  return Math.max(Math.ceil(ms), 1)
}

/** Ends what a server process works on at this moment. */
export async function cancelWork(sql: Sql, processId: number): Promise<void> {
  await sql.query('select pg_cancel_backend($1)', [processId])
}
