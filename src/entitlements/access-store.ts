import type pg from 'pg'
import { int4s, texts } from '../db/binary-array.ts'
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
  enable_memoize: 'off',
  plan_cache_mode: 'force_generic_plan',
  statement_timeout: '2s',
  lock_timeout: '1s',
}

/** Milliseconds of the statement's start, evaluated once. Reads take no locks, so nothing is waited for in between. */
export const statementMs = `(select floor(extract(epoch from statement_timestamp()) * 1000)::bigint)`

const readAccess: Statement = {
  name: 'entitlements_read_access',
  text: `
    select q.n, c.customer_id, ${statementMs}, q.feature_id, a.last_at_ms, ${grantColumns}
    from unnest($1::int[], $2::int[], $3::text[], $4::int[]) as q(n, scope_id, distinct_id, feature_id)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select id, last_at_ms
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = q.feature_id
      limit 1
    ) a on true
    left join ledger_grant g on g.account_id = a.id and not g.settled`,
}

/** One question about one account: `n` says whose it is. A Feature in credit systems asks once for each of them. */
export interface AccountQuestion {
  n: number
  scopeId: number
  distinctId: string
  featureId: number
}

/** One row per (question, grant): n, customer, clock, Feature, last decision, grant columns. */
export function selectAccess(client: pg.ClientBase, questions: AccountQuestion[]): Promise<RawRow[]> {
  return raw(client, readAccess, [
    int4s(questions.map((question) => question.n)),
    int4s(questions.map((question) => question.scopeId)),
    texts(questions.map((question) => question.distinctId)),
    int4s(questions.map((question) => question.featureId)),
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
    int4s(ids.map((id) => id.scopeId)),
    texts(ids.map((id) => id.distinctId)),
    tombstoneKey,
  ])
  return new Set(rows.map((row) => Number(row[0]) - 1))
}
