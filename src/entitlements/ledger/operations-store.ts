import type pg from 'pg'
import { int4s, int8s, texts } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ownersOf } from './entries-store.ts'

/** Breaks ties between operations of one instant, in a form that fits a cursor whatever the id is made of. */
const tie = (alias: string) => `encode(sha256(convert_to(${alias}.operation_id, 'UTF8')), 'hex')`

const columns = `o.scope_id, o.operation_id, o.customer_id, o.feature_key, o.entity_id, o.mode, o.quantity, o.accepted,
  o.code, o.feature_type, o.balance, o.unlimited, o.active, o.occurred_at_ms, ${tie('o')}, r.result`

/** Its reversal, when there is one. */
const reversal = `
    left join lateral (
      select result
      from operation
      where scope_id = o.scope_id
        and kind = 1
        and operation_id = o.operation_id
      limit 1
    ) r on true`

const named: Statement = {
  name: 'entitlements_operation',
  text: `
    select ${columns}
    from unnest($1::int[]) as q(scope_id)
    join operation o on o.scope_id = q.scope_id and o.kind = 0 and o.operation_id = $2${reversal}`,
}

/** The operation with this id in each scope that has one. */
export function selectOperation(client: pg.ClientBase, scopes: Scope[], operationId: string): Promise<RawRow[]> {
  return raw(client, named, [int4s(scopes.map(({ scopeId }) => scopeId)), operationId])
}

const newest: Statement = {
  name: 'entitlements_operations_of',
  text: `
    ${ownersOf('$1', '$2')}
    select ${columns}
    from (
      select mine.*
      from (select distinct id from owners) q
      cross join lateral (
        select scope_id, operation_id, customer_id, feature_key, entity_id, mode, quantity, accepted, code, feature_type,
          balance, unlimited, active, occurred_at_ms
        from operation o
        where scope_id = $1
          and customer_id = q.id
          and kind = 0
          and occurred_at_ms <= $3
          and (occurred_at_ms < $3 or ${tie('o')} < $4)
        order by occurred_at_ms desc, ${tie('o')} desc
        limit $5
      ) mine
      order by mine.occurred_at_ms desc, ${tie('mine')} desc
      limit $5
    ) o${reversal}
    order by o.occurred_at_ms desc, ${tie('o')} desc`,
}

export interface OperationPosition {
  at: bigint
  tie: string
}

/** Newest first, by the index operation_customer of the customer and of each record that was merged into it. */
export function selectNewestOperations(
  client: pg.ClientBase,
  scope: Scope,
  customerId: string,
  { before, limit }: { before: OperationPosition; limit: number },
): Promise<RawRow[]> {
  return raw(client, newest, [scope.scopeId, customerId, before.at, before.tie, limit])
}

const payments: Statement = {
  name: 'entitlements_payments',
  text: `
    with recursive search as (
      select q.account_id, b.bound, 0::bigint as low, a.version + 1 as high
      from unnest($1::bigint[]) as q(account_id)
      join account a on a.id = q.account_id
      cross join (values ($2::bigint), ($3::bigint + 1)) as b(bound)
      union all
      select account_id, bound, case when last.at_ms >= bound then low else (low + high) / 2 end,
        case when last.at_ms >= bound then (low + high) / 2 else high end
      from search
      left join lateral (
        select at_ms
        from entry e
        where e.account_id = search.account_id
          and e.version <= (low + high) / 2
        order by e.version desc
        limit 1
      ) last on true
      where high - low > 1
    ), bounds as (
      select account_id, min(high) as first, max(high) as beyond
      from search
      where high - low <= 1
      group by account_id
    )
    select e.operation_id, e.grant_id, e.period_no, e.delta, e.line, f.key, f.scale, g.entity_id
    from bounds b
    cross join lateral (
      select operation_id, grant_id, period_no, delta, line
      from entry
      where account_id = b.account_id
        and version >= b.first
        and version < b.beyond
        and at_ms between $2 and $3
        and kind = 'draw'
        and operation_id = any($4::text[])
      offset 0
    ) e
    join ledger_grant g on g.id = e.grant_id
    join feature f on f.id = g.feature_id
    order by e.line, e.grant_id`,
}

/**
 * What these operations drew between two instants. Entries have no index by operation, which every spend would pay for. An
 * account's versions rise with its instants, so the versions of the two instants are found by halving, and only the
 * entries between them are read, however long the account's history is.
 */
export function selectPayments(
  client: pg.ClientBase,
  accountIds: string[],
  { from, to, operationIds }: { from: number; to: number; operationIds: string[] },
): Promise<RawRow[]> {
  return raw(client, payments, [int8s(accountIds.map(BigInt)), from, to, texts(operationIds)])
}

const reverse: Statement = {
  name: 'entitlements_insert_reversal',
  text: `
    insert into operation (scope_id, kind, operation_id, customer_id, feature_key, entity_id, mode, quantity, http_status,
      accepted, code, feature_type, unlimited, active, occurred_at_ms, account_version, result)
    select scope_id, 1, operation_id, customer_id, feature_key, entity_id, mode, quantity, 200,
      true, 'reversed', feature_type, unlimited, active, $3, account_version, $4::jsonb
    from operation
    where scope_id = $1
      and kind = 0
      and operation_id = $2
    on conflict (scope_id, kind, operation_id) do nothing
    returning 1`,
}

/** False when the operation was reversed before. */
export async function insertReversal(
  client: pg.ClientBase,
  scope: Scope,
  { operationId, at, result }: { operationId: string; at: number; result: string },
): Promise<boolean> {
  const rows = await raw(client, reverse, [scope.scopeId, operationId, at, result])
  return rows.length === 1
}
