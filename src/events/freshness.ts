import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { selectOldestWaiting } from './lag-store.ts'

/** How complete an answer about a lane's events is. */
export interface Freshness {
  /** Every live event acknowledged before it is included. Unix milliseconds, by the database's clock. */
  asOf: number
  /** How long ago that is; 0 when no live event waits. */
  processingLagMs: number
  /** Imported events that still wait, counted up to 100,000. `asOf` says nothing about them. */
  historicalPending: number
}

/**
 * Ask before the read it speaks of: then whatever was applied by now is in what is read. In a transaction of one snapshot it
 * has to be the first statement. What was committed is visible, so nobody needs to write down how far the lane has come.
 */
export async function freshness(sql: Sql, scope: Scope): Promise<Freshness> {
  const { now, oldest, historicalRows } = await selectOldestWaiting(sql, scope)
  const asOf = Math.floor(oldest === null ? now : Math.min(oldest, now))
  return { asOf, processingLagMs: oldest === null ? 0 : Math.round(now - asOf), historicalPending: historicalRows }
}
