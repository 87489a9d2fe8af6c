import type pg from 'pg'
import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import { mergeChainMax } from '../../kernel/limits.ts'

const readOperations: Statement = {
  name: 'entitlements_operations',
  text: `
    select q.n, o.customer_id, o.feature_key, o.entity_id, o.mode, o.quantity, o.accepted, o.code, o.feature_type,
      o.balance, o.unlimited, o.active, o.occurred_at_ms, o.purchase_key
    from unnest($1::int[], $2::text[]) with ordinality as q(scope_id, operation_id, n)
    cross join lateral (
      select customer_id, feature_key, entity_id, mode, quantity, accepted, code, feature_type, balance, unlimited, active,
        occurred_at_ms, purchase_key
      from operation
      where scope_id = q.scope_id
        and kind = 0
        and operation_id = q.operation_id
      limit 1
    ) o`,
}

/** The saved decisions among these operations, each with the position it was asked at. A plain read: replays take no lock. */
export function selectOperations(
  client: pg.ClientBase,
  operations: { scopeId: number; operationId: string }[],
): Promise<RawRow[]> {
  return raw(client, readOperations, [
    int4s(operations.map((operation) => operation.scopeId)),
    texts(operations.map((operation) => operation.operationId)),
  ])
}

/** One look-up a hop: as a join the planner would read every customer of the scope. */
const readSurvivor: Statement = {
  name: 'entitlements_survivor',
  text: `
    with recursive chain as (
      select id, merged_into, 0 as step
      from customer
      where scope_id = $1
        and id = $2
      union all
      select next.id, next.merged_into, chain.step + 1
      from chain
      cross join lateral (
        select id, merged_into
        from customer
        where scope_id = $1
          and id = chain.merged_into
        limit 1
      ) next
      where chain.step < ${mergeChainMax}
    )
    select id from chain where merged_into is null`,
}

/** The customer record that `customerId` has become through merges. */
export async function selectSurvivor(
  client: pg.ClientBase,
  scopeId: number,
  customerId: string,
): Promise<string | undefined> {
  const [row] = await raw(client, readSurvivor, [scopeId, customerId])
  return row?.[0] ?? undefined
}

const createAccounts: Statement = {
  name: 'entitlements_create_accounts',
  text: `
    insert into account (scope_id, customer_id, feature_id)
    select scope_id, customer_id, feature_id
    from unnest($1::int[], $2::uuid[], $3::int[]) as q(scope_id, customer_id, feature_id)
    order by scope_id, customer_id, feature_id
    on conflict (scope_id, customer_id, feature_id) do nothing`,
}

export async function insertAccounts(
  client: pg.ClientBase,
  accounts: { scopeId: number; customerId: string; featureId: number }[],
): Promise<void> {
  await raw(client, createAccounts, [
    int4s(accounts.map((account) => account.scopeId)),
    uuids(accounts.map((account) => account.customerId)),
    int4s(accounts.map((account) => account.featureId)),
  ])
}

const lockFree: Statement = {
  name: 'entitlements_lock_free',
  text: `
    select id
    from account
    where id = any($1::bigint[])
    order by id
    for update skip locked`,
}

const lockWaiting: Statement = {
  name: 'entitlements_lock_waiting',
  text: `
    select id
    from account
    where id = any($1::bigint[])
    order by id
    for update`,
}

/** Locks accounts in id order and gives those it got: without waiting, or waiting for each up to `lock_timeout`. */
export async function lockAccounts(client: pg.ClientBase, ids: bigint[], wait: boolean): Promise<Set<bigint>> {
  const rows = await raw(client, wait ? lockWaiting : lockFree, [int8s(ids)])
  return new Set(rows.map((row) => BigInt(row[0] ?? 0)))
}

const readEntities: Statement = {
  name: 'entitlements_entities',
  text: `
    select e.account_id, e.entity_id, e.used_total, e.registered
    from unnest($1::bigint[], $2::text[]) as q(account_id, entity_id)
    join account_entity e on e.account_id = q.account_id and e.entity_id = q.entity_id`,
}

export function selectEntities(
  client: pg.ClientBase,
  entities: { accountId: bigint; entityId: string }[],
): Promise<RawRow[]> {
  return raw(client, readEntities, [
    int8s(entities.map((entity) => entity.accountId)),
    texts(entities.map((entity) => entity.entityId)),
  ])
}
