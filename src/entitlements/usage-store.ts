import type pg from 'pg'
import { intArray, textArray } from '../db/literal.ts'
import { type RawRow, raw, type Statement } from '../db/raw.ts'
import { grantColumns } from './grant-row.ts'

const probe: Statement = {
  name: 'entitlements_probe',
  text: `
    select q.n, c.customer_id, a.feature_ids, a.ids, o.customer_id, o.feature_key, o.entity_id, o.mode, o.quantity,
      o.http_status, o.accepted, o.code, o.feature_type, o.balance, o.unlimited, o.active, o.occurred_at_ms
    from unnest($1::int[], $2::text[], $3::text[], $4::text[]) with ordinality
      as q(scope_id, distinct_id, features, operation_id, n)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select array_agg(feature_id) as feature_ids, array_agg(id) as ids
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = any(q.features::int[])
    ) a on true
    left join lateral (
      select customer_id, feature_key, entity_id, mode, quantity, http_status, accepted, code, feature_type, balance,
        unlimited, active, occurred_at_ms
      from operation
      where scope_id = q.scope_id
        and kind = 0
        and operation_id = q.operation_id
      limit 1
    ) o on true`,
}

export interface Probe {
  scopeId: number
  distinctId: string
  /** The Feature and every credit system that contains it, as an int array literal. */
  features: string
  operationId: string
}

/** For each command the customer, its accounts, and the saved operation if there is one. Takes no lock. */
export function selectProbe(client: pg.ClientBase, probes: Probe[]): Promise<RawRow[]> {
  return raw(client, probe, [
    intArray(probes.map((item) => item.scopeId)),
    textArray(probes.map((item) => item.distinctId)),
    textArray(probes.map((item) => item.features)),
    textArray(probes.map((item) => item.operationId)),
  ])
}

const survivors: Statement = {
  name: 'entitlements_survivor',
  text: `
    with recursive chain as (
      select id, merged_into, 0 as step
      from customer
      where scope_id = $1
        and id = $2
      union all
      select c.id, c.merged_into, chain.step + 1
      from chain
      join customer c on c.scope_id = $1 and c.id = chain.merged_into
      where chain.step < 100
    )
    select id from chain where merged_into is null`,
}

/** The customer record that `customerId` has become through merges. */
export async function selectSurvivor(
  client: pg.ClientBase,
  scopeId: number,
  customerId: string,
): Promise<string | undefined> {
  const [row] = await raw(client, survivors, [scopeId, customerId])
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
    intArray(accounts.map((account) => account.scopeId)),
    textArray(accounts.map((account) => account.customerId)),
    intArray(accounts.map((account) => account.featureId)),
  ])
}

const lockColumns = 'id, customer_id, feature_id, used_total, last_at_ms, version'

const lockFree: Statement = {
  name: 'entitlements_lock_free',
  text: `
    select ${lockColumns}
    from account
    where id = any($1::bigint[])
    order by id
    for update skip locked`,
}

const lockWaiting: Statement = {
  name: 'entitlements_lock_waiting',
  text: `
    select ${lockColumns}
    from account
    where id = any($1::bigint[])
    order by id
    for update`,
}

/** Locks accounts in id order; a locked row comes back as it is now, so the values are fresh. */
export function lockAccounts(client: pg.ClientBase, ids: bigint[], wait: boolean): Promise<RawRow[]> {
  return raw(client, wait ? lockWaiting : lockFree, [intArray(ids)])
}

const loadGrants: Statement = {
  name: 'entitlements_load_grants',
  text: `
    select ${grantColumns}
    from unnest($1::bigint[]) as q(id)
    join ledger_grant g on g.account_id = q.id and not g.settled`,
}

export function selectGrants(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, loadGrants, [intArray(accountIds)])
}

const loadEntities: Statement = {
  name: 'entitlements_load_entities',
  text: `
    select e.account_id, e.entity_id, e.used_total, e.registered
    from unnest($1::bigint[], $2::text[]) as q(account_id, entity_id)
    join account_entity e on e.account_id = q.account_id and e.entity_id = q.entity_id`,
}

export function selectEntities(
  client: pg.ClientBase,
  entities: { accountId: bigint; entityId: string }[],
): Promise<RawRow[]> {
  return raw(client, loadEntities, [
    intArray(entities.map((entity) => entity.accountId)),
    textArray(entities.map((entity) => entity.entityId)),
  ])
}

const countEntities: Statement = {
  name: 'entitlements_count_entities',
  text: `
    select q.account_id, (select count(*) from account_entity e where e.account_id = q.account_id)
    from unnest($1::bigint[]) as q(account_id)`,
}

export function selectEntityCounts(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, countEntities, [intArray(accountIds)])
}

const readMoment: Statement = {
  name: 'entitlements_read_moment',
  text: `
    select floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
      (select array_agg(revision order by n)
       from unnest($1::int[]) with ordinality as q(id, n)
       join scope s on s.id = q.id)`,
}

/** The clock after the locks were taken, and the catalogue revision of each scope in order. */
export async function selectMoment(
  client: pg.ClientBase,
  scopeIds: number[],
): Promise<{ now: number; revisions: bigint[] }> {
  const [row] = await raw(client, readMoment, [intArray(scopeIds)])
  return { now: Number(row?.[0]), revisions: bigints(row?.[1]) }
}

/** `{1,2,3}` as PostgreSQL prints arrays of numbers. */
export function bigints(literal: string | null | undefined): bigint[] {
  if (!literal || literal === '{}') return []
  return literal.slice(1, -1).split(',').map(BigInt)
}
