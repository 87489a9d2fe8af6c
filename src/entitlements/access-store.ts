import type pg from 'pg'
import { intArray, textArray } from '../db/literal.ts'
import { type RawRow, raw, type Statement } from '../db/raw.ts'
import { grantColumns } from './grant-row.ts'

/**
 * The statements of /entitled and /feature/consume. Their pool turns sequential scans, hash and merge joins off and plans
 * once: on tables not yet analysed the planner would otherwise join `unnest` by hashing whole tables (400 instead of
 * 8,000 requests/s). Every probe is a lateral index look-up; a test explains each statement on unanalysed tables.
 */
export const ledgerSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  statement_timeout: '2s',
  lock_timeout: '1s',
}

/** Milliseconds of the statement's start, evaluated once. Reads take no locks, so nothing is waited for in between. */
const statementMs = `(select floor(extract(epoch from statement_timestamp()) * 1000)::bigint)`

const readAccess: Statement = {
  name: 'entitlements_read_access',
  text: `
    select q.n, c.customer_id, ${statementMs}, a.feature_id, a.last_at_ms, ${grantColumns}
    from unnest($1::int[], $2::text[], $3::text[]) with ordinality as q(scope_id, distinct_id, features, n)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select id, feature_id, last_at_ms
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = any(q.features::int[])
    ) a on true
    left join ledger_grant g on g.account_id = a.id and not g.settled`,
}

/** One row per (query, account, grant): n, customer, clock, feature, last decision, grant columns. */
export function selectAccess(
  client: pg.ClientBase,
  queries: { scopeId: number; distinctId: string; features: string }[],
): Promise<RawRow[]> {
  return raw(client, readAccess, [
    intArray(queries.map((query) => query.scopeId)),
    textArray(queries.map((query) => query.distinctId)),
    textArray(queries.map((query) => query.features)),
  ])
}

const readDeleted: Statement = {
  name: 'entitlements_read_deleted',
  text: `
    select q.n
    from unnest($1::int[], $2::text[]) with ordinality as q(scope_id, distinct_id, n)
    where exists (
      select
      from customer_tombstone t
      where t.scope_id = q.scope_id
        and t.id_hash = sha256($3::bytea || convert_to(q.distinct_id, 'UTF8'))
    )`,
}

/** Which of the ids belong to deleted customers. Asked only for ids that name nobody. */
export async function selectDeleted(
  client: pg.ClientBase,
  ids: { scopeId: number; distinctId: string }[],
  tombstoneKey: Buffer,
): Promise<Set<number>> {
  const rows = await raw(client, readDeleted, [
    intArray(ids.map((id) => id.scopeId)),
    textArray(ids.map((id) => id.distinctId)),
    tombstoneKey,
  ])
  return new Set(rows.map((row) => Number(row[0]) - 1))
}
