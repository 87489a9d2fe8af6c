import type pg from 'pg'
import { int4s, texts } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import { grantColumns } from './grant-row.ts'
import { offsetOf } from './test-clock-store.ts'

/**
 * Milliseconds of the statement's start, evaluated once, as the scope has them. Reads take no locks, so nothing is waited
 * for in between.
 */
const statementMs = `(select floor(extract(epoch from statement_timestamp()) * 1000)::bigint) + ${offsetOf('q.scope_id')}`

/** A distinct id, or a customer's record. */
export interface StandingId {
  scopeId: number
  distinctId: string | null
  customerId: string | null
}

/**
 * Whom a distinct id names is there: looking that up too, in one of sixteen partitions, was a fifth of the statement's 14 us for
 * each customer. Only a record's id from outside may name nobody.
 */
const readStandings: Statement = {
  name: 'entitlements_standings',
  text: `
    select q.n, coalesce(c.customer_id, k.id), ${statementMs}, a.id, a.feature_id, a.used_total, a.last_at_ms, a.version, ${grantColumns}
    from unnest($1::int[], $2::int[], $3::text[], $4::text[]) as q(n, scope_id, distinct_id, customer_id)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select id
      from customer
      where scope_id = q.scope_id
        and id = q.customer_id::uuid
      limit 1
    ) k on true
    left join lateral (
      select id, feature_id, used_total, last_at_ms, version
      from account
      where scope_id = q.scope_id
        and customer_id = coalesce(c.customer_id, k.id)
      offset 0
    ) a on true
    left join ledger_grant g on g.account_id = a.id and not g.settled`,
}

/** One row per (id, account, grant): n, customer, clock, account columns, grant columns. */
export function selectStandings(client: pg.ClientBase, ids: StandingId[]): Promise<RawRow[]> {
  return raw(client, readStandings, [
    int4s(ids.map((_, n) => n)),
    int4s(ids.map((id) => id.scopeId)),
    texts(ids.map((id) => id.distinctId)),
    texts(ids.map((id) => id.customerId)),
  ])
}
