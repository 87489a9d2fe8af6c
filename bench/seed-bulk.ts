import type { Pool } from '../src/db/pool.ts'
import { featureId, plentyUnits } from './seed.ts'

/** Customers of one statement. */
const perStatement = 50_000

/**
 * Makes customers `from` to `to − 1` straight in the tables, as the Workspace API would leave them: a million by requests take
 * most of an hour. Their ids are those of `distinctIdOf`.
 */
export async function seedBulk(pool: Pool, scopeId: number, { from, to }: { from: number; to: number }): Promise<void> {
  for (let first = from; first < to; first += perStatement) {
    await pool.query(
      `with made as (
         select gen_random_uuid() as id, 'bench-' || lpad(n::text, 8, '0') as distinct_id
         from generate_series($2::int, $3::int - 1) n
       ), customers as (
         insert into customer (scope_id, id, created_at)
         select $1, id, now()
         from made
       ), aliases as (
         insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)
         select $1, distinct_id, id, 0, now()
         from made
       ), accounts as (
         insert into account (scope_id, customer_id, feature_id, version, last_at_ms)
         select $1, made.id, feature.id, 1, extract(epoch from now()) * 1000
         from made
         join feature on feature.scope_id = $1 and feature.key = $4
         returning id, feature_id, last_at_ms
       ), grants as (
         insert into ledger_grant (scope_id, account_id, feature_id, source_ref, origin, amount, remaining, effective_at_ms,
           anchor_ms, created_at_ms)
         select $1, id, feature_id, 'bench:' || id, 'manual', $5, $5, last_at_ms, last_at_ms, last_at_ms
         from accounts
         returning id, account_id, amount, created_at_ms
       )
       insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after)
       select created_at_ms, $1, account_id, 1, 0, id, 0, 'grant', amount, amount
       from grants`,
      [scopeId, first, Math.min(first + perStatement, to), featureId, plentyUnits],
    )
  }
}
