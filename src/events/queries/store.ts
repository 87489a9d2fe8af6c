import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { anyMerged } from './source-store.ts'

/** Whether customers have to be looked up: a probe of the index customer_change_unsettled. */
export async function hasMerged(sql: Sql, { scopeId }: Scope): Promise<boolean> {
  const [row] = await sql.query<{ merged: boolean }>(anyMerged, [scopeId])
  return row?.merged ?? false
}

/** What is left of the time for a query; every statement of it takes from the same. */
export async function limitTime(sql: Sql, ms: number): Promise<void> {
  await sql.query(`select set_config('statement_timeout', $1, true)`, [`${Math.max(Math.ceil(ms), 1)}ms`])
}
