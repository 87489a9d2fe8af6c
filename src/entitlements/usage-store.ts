import type pg from 'pg'
import { int4s, int8s, texts, uuids } from '../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../db/raw.ts'
import type { AccountQuestion } from './access-store.ts'
import { grantColumns } from './grant-row.ts'

const probe: Statement = {
  name: 'entitlements_probe',
  text: `
    select q.n, c.customer_id, a.id, o.customer_id, o.feature_key, o.entity_id, o.mode, o.quantity, o.accepted, o.code,
      o.feature_type, o.balance, o.unlimited, o.active, o.occurred_at_ms, q.feature_id
    from unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::text[])
      as q(n, scope_id, distinct_id, feature_id, operation_id)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select id
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = q.feature_id
      limit 1
    ) a on true
    left join lateral (
      select customer_id, feature_key, entity_id, mode, quantity, accepted, code, feature_type, balance, unlimited, active,
        occurred_at_ms
      from operation
      where scope_id = q.scope_id
        and kind = 0
        and operation_id = q.operation_id
      limit 1
    ) o on true`,
}

/** One question about one account; a Feature in credit systems asks once for each of them, with the same `n`. */
export interface Probe extends AccountQuestion {
  operationId: string
}

/** For each question: n, the customer, the account, and the saved operation if there is one. Takes no lock. */
export function selectProbe(client: pg.ClientBase, probes: Probe[]): Promise<RawRow[]> {
  return raw(client, probe, [
    int4s(probes.map((item) => item.n)),
    int4s(probes.map((item) => item.scopeId)),
    texts(probes.map((item) => item.distinctId)),
    int4s(probes.map((item) => item.featureId)),
    texts(probes.map((item) => item.operationId)),
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
    int4s(accounts.map((account) => account.scopeId)),
    uuids(accounts.map((account) => account.customerId)),
    int4s(accounts.map((account) => account.featureId)),
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
  return raw(client, wait ? lockWaiting : lockFree, [int8s(ids)])
}

const loadGrants: Statement = {
  name: 'entitlements_load_grants',
  text: `
    select ${grantColumns}
    from unnest($1::bigint[]) as q(id)
    join ledger_grant g on g.account_id = q.id and not g.settled`,
}

export function selectGrants(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, loadGrants, [int8s(accountIds)])
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
    int8s(entities.map((entity) => entity.accountId)),
    texts(entities.map((entity) => entity.entityId)),
  ])
}

const countEntities: Statement = {
  name: 'entitlements_count_entities',
  text: `
    select q.account_id, (select count(*) from account_entity e where e.account_id = q.account_id)
    from unnest($1::bigint[]) as q(account_id)`,
}

export function selectEntityCounts(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, countEntities, [int8s(accountIds)])
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
  const [row] = await raw(client, readMoment, [int4s(scopeIds)])
  return { now: Number(row?.[0]), revisions: bigints(row?.[1]) }
}

/** `{1,2,3}` as PostgreSQL prints arrays of numbers. */
export function bigints(literal: string | null | undefined): bigint[] {
  if (!literal || literal === '{}') return []
  return literal.slice(1, -1).split(',').map(BigInt)
}
