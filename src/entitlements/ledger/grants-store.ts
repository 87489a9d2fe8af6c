import type pg from 'pg'
import { bools, int4s, int8s, texts } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import { mergeChainMax } from '../../kernel/limits.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Grant } from '../types.ts'
import { grantColumns, rolloverJson } from './grant-row.ts'
import { offsetOf } from './test-clock-store.ts'

/** For each id that exists the record it has become through merges. */
export async function selectSurvivors(
  sql: Sql,
  scope: Scope,
  customerIds: string[],
): Promise<{ asked: string; survivor: string }[]> {
  return sql.query<{ asked: string; survivor: string }>(
    `with recursive chain as (
       select id as asked, id, merged_into, 0 as step
       from customer
       where scope_id = $1
         and id = any($2::uuid[])
       union all
       select chain.asked, next.id, next.merged_into, chain.step + 1
       from chain
       cross join lateral (
         select id, merged_into
         from customer
         where scope_id = $1
           and id = chain.merged_into
         limit 1
       ) next
       where chain.step < $3
     )
     select asked, id as survivor
     from chain
     where merged_into is null`,
    [scope.scopeId, customerIds, mergeChainMax],
  )
}

/**
 * Holds customers in id order and gives those that are not merged: until the transaction ends no merge takes their
 * accounts away, and whoever else makes grants for them waits here, before any account is locked.
 */
export async function lockCustomers(tx: Tx, scope: Scope, customerIds: string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string; merged_into: string | null }>(
    `select id, merged_into
     from customer
     where scope_id = $1
       and id = any($2::uuid[])
     order by id
     for no key update`,
    [scope.scopeId, customerIds],
  )
  return rows.filter((row) => row.merged_into === null).map((row) => row.id)
}

export interface LockedAccount {
  id: bigint
  customer_id: string
  feature_id: number
  last_at_ms: bigint
  version: bigint
}

/** The accounts of these (customer, Feature) pairs, locked in id order. */
export async function lockAccountsOf(
  tx: Tx,
  scope: Scope,
  pairs: { customerId: string; featureId: number }[],
): Promise<LockedAccount[]> {
  return tx.query<LockedAccount>(
    `select a.id, a.customer_id, a.feature_id, a.last_at_ms, a.version
     from unnest($2::uuid[], $3::int[]) as q(customer_id, feature_id)
     join account a on a.scope_id = $1 and a.customer_id = q.customer_id and a.feature_id = q.feature_id
     order by a.id
     for update of a`,
    [scope.scopeId, pairs.map((pair) => pair.customerId), pairs.map((pair) => pair.featureId)],
  )
}

/** The same without locks. */
export async function selectAccountsOf(
  tx: Tx,
  scope: Scope,
  pairs: { customerId: string; featureId: number }[],
): Promise<{ id: bigint; feature_id: number }[]> {
  return tx.query(
    `select a.id, a.feature_id
     from unnest($2::uuid[], $3::int[]) as q(customer_id, feature_id)
     join account a on a.scope_id = $1 and a.customer_id = q.customer_id and a.feature_id = q.feature_id`,
    [scope.scopeId, pairs.map((pair) => pair.customerId), pairs.map((pair) => pair.featureId)],
  )
}

/** Database clock as the scope has it, read after the locks: one in a waiting statement may be from before the wait. */
export async function selectClock(sql: Sql, scope: Scope | null): Promise<number> {
  const [row] = await sql.query<{ now: bigint }>(
    `select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${offsetOf('$1')} as now`,
    [scope?.scopeId ?? null],
  )
  return Number(row?.now)
}

export interface GrantInsert extends Grant {
  featureId: number
  sourceRef: string
  productId: string | null
  note: string | null
  actor: string | null
}

const insert: Statement = {
  name: 'entitlements_insert_grants',
  text: `
    insert into ledger_grant (scope_id, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
      remaining, effective_at_ms, expires_at_ms, paid_until_ms, cycle_unit, anchor_ms, rollover, product_id, note,
      created_at_ms)
    select $1, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
      amount, effective_at_ms, expires_at_ms, paid_until_ms, cycle_unit, effective_at_ms, rollover::jsonb, product_id, note,
      created_at_ms
    from unnest($2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::int[], $8::bool[], $9::bigint[],
      $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[])
      with ordinality as q(account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
        effective_at_ms, expires_at_ms, paid_until_ms, cycle_unit, rollover, product_id, note, created_at_ms, n)
    order by n
    returning id`,
}

/** Their numbers, in order. A source makes one grant per Feature and entity: the unique key says so. */
export async function insertGrants(tx: Tx, scope: Scope, grants: GrantInsert[]): Promise<bigint[]> {
  const rows = await raw(tx.client, insert, [
    scope.scopeId,
    int8s(grants.map((grant) => grant.accountId)),
    int4s(grants.map((grant) => grant.featureId)),
    texts(grants.map((grant) => grant.entityId)),
    texts(grants.map((grant) => grant.sourceRef)),
    texts(grants.map((grant) => grant.origin)),
    int4s(grants.map((grant) => grant.rank)),
    bools(grants.map((grant) => grant.unlimited)),
    int8s(grants.map((grant) => grant.amount)),
    int8s(grants.map((grant) => grant.effectiveAt)),
    int8s(grants.map((grant) => grant.expiresAt)),
    int8s(grants.map((grant) => grant.paidUntil)),
    texts(grants.map((grant) => grant.cycle?.unit ?? null)),
    texts(grants.map((grant) => rolloverJson(grant.rollover))),
    texts(grants.map((grant) => grant.productId)),
    texts(grants.map((grant) => grant.note)),
    int8s(grants.map((grant) => grant.createdAt)),
  ])
  return rows.map((row) => BigInt(row[0] ?? 0)).sort((a, b) => (a < b ? -1 : 1))
}

export interface GrantEntry {
  at: number
  accountId: bigint
  version: bigint
  line: number
  grantId: bigint
  amount: bigint
  /** JSON */
  detail: string | null
}

export async function insertGrantEntries(tx: Tx, scope: Scope, entries: GrantEntry[]): Promise<void> {
  await tx.query(
    `insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after,
       detail)
     select at_ms, $1, account_id, version, line, grant_id, 0, 'grant', amount, amount, detail::jsonb
     from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::text[])
       as q(at_ms, account_id, version, line, grant_id, amount, detail)`,
    [
      scope.scopeId,
      int8s(entries.map((entry) => entry.at)),
      int8s(entries.map((entry) => entry.accountId)),
      int8s(entries.map((entry) => entry.version)),
      int4s(entries.map((entry) => entry.line)),
      int8s(entries.map((entry) => entry.grantId)),
      int8s(entries.map((entry) => entry.amount)),
      texts(entries.map((entry) => entry.detail)),
    ],
  )
}

export async function advanceAccounts(
  tx: Tx,
  accounts: { id: bigint; version: bigint; lastAt: number }[],
): Promise<void> {
  await tx.query(
    `update account a
     set version = q.version, last_at_ms = q.last_at_ms
     from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as q(id, version, last_at_ms)
     where a.id = q.id`,
    [
      int8s(accounts.map((account) => account.id)),
      int8s(accounts.map((account) => account.version)),
      int8s(accounts.map((account) => account.lastAt)),
    ],
  )
}

/** What `recordOf` reads after the clock. */
export const grantListColumns = `a.last_at_ms, f.key, f.type, f.scale, g.source_ref, g.product_id, g.note, g.uncollected, ${grantColumns}`

/** Two halves, because each of the two indexes of grants by account holds one of them. */
const list: Statement = {
  name: 'entitlements_list_grants',
  text: `
    select floor(extract(epoch from statement_timestamp()) * 1000)::bigint + ${offsetOf('$1')} as now, ${grantListColumns}
    from account a
    join ledger_grant g on g.account_id = a.id and not g.settled
    join feature f on f.id = g.feature_id
    where a.scope_id = $1
      and a.customer_id = $2
      and ($3::bigint is null or g.id < $3)
    union all
    select floor(extract(epoch from statement_timestamp()) * 1000)::bigint + ${offsetOf('$1')}, ${grantListColumns}
    from account a
    join ledger_grant g on g.account_id = a.id and g.settled
    join feature f on f.id = g.feature_id
    where a.scope_id = $1
      and a.customer_id = $2
      and ($3::bigint is null or g.id < $3)
    order by id desc
    limit $4`,
}

/** One row per grant: clock, last decision, key, type, scale, source, Product, note, uncollected, grant columns. */
export async function selectGrantsOf(
  client: pg.ClientBase,
  scope: Scope,
  customerId: string,
  { limit, after }: Page,
): Promise<RawRow[]> {
  return raw(client, list, [scope.scopeId, customerId, after, limit])
}

const one: Statement = {
  name: 'entitlements_grant',
  text: `
    select a.customer_id, g.scope_id, floor(extract(epoch from statement_timestamp()) * 1000)::bigint + ${offsetOf('g.scope_id')},
      ${grantListColumns}
    from ledger_grant g
    join account a on a.id = g.account_id
    join feature f on f.id = g.feature_id
    where g.id = $1
      and g.scope_id = any($2::int[])`,
}

/** Customer and scope, then the columns of `selectGrantsOf`. */
export async function selectGrant(tx: Tx, scopes: Scope[], id: bigint): Promise<RawRow | undefined> {
  const [row] = await raw(tx.client, one, [id, int4s(scopes.map(({ scopeId }) => scopeId))])
  return row
}
