import type pg from 'pg'
import { int4s, int8s, uuids } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'

/** A customer that is not merged, in the order of the index on accounts. */
export interface Owner {
  scopeId: number
  customerId: string
}

/** A page first, then who of it is merged: the other way round every page reads all customers (0.7 s of a million). */
const owners: Statement = {
  name: 'entitlements_audit_owners',
  text: `
    select page.scope_id, page.customer_id, c.merged_into is not null
    from (
      select scope_id, customer_id
      from account
      where (scope_id, customer_id) > ($1, $2::uuid)
        and ($3::int is null or scope_id = $3)
      group by scope_id, customer_id
      order by scope_id, customer_id
      limit $4
    ) page
    left join lateral (
      select merged_into
      from customer
      where scope_id = page.scope_id
        and id = page.customer_id
      limit 1
    ) c on true
    order by page.scope_id, page.customer_id`,
}

/** The next customers that have accounts, and the last one looked at; undefined behind the last of all. */
export async function selectOwners(
  client: pg.ClientBase,
  { after, scopeId, limit }: { after: Owner; scopeId: number | null; limit: number },
): Promise<{ owners: Owner[]; last: Owner | undefined }> {
  const rows = await raw(client, owners, [after.scopeId, after.customerId, scopeId, limit])
  const page = rows.map(([scope, customer, merged]) => {
    return { owner: { scopeId: Number(scope), customerId: customer ?? '' }, isMerged: merged === 't' }
  })
  return {
    owners: page.flatMap(({ owner, isMerged }) => (isMerged ? [] : [owner])),
    last: page.at(-1)?.owner,
  }
}

const records: Statement = {
  name: 'entitlements_audit_records',
  text: `
    with recursive record as (
      select scope_id, id
      from unnest($1::int[], $2::uuid[]) as q(scope_id, id)
      union
      select record.scope_id, gone.id
      from record
      cross join lateral (
        select source_customer_id as id
        from merge_journal
        where scope_id = record.scope_id
          and customer_id = record.id
          and status in ('merged', 'split')
          and source_customer_id is not null
        union all
        select customer_id
        from merge_journal
        where scope_id = record.scope_id
          and source_customer_id = record.id
          and status = 'split'
        offset 0
      ) gone
    )
    select distinct r.scope_id, r.id, c.merged_into
    from record r
    left join lateral (
      select merged_into
      from customer
      where scope_id = r.scope_id
        and id = r.id
      limit 1
    ) c on true`,
}

/**
 * The customers, every record that was merged into one of them, and those that merges were taken back between: their accounts
 * share a history. Scope, id, what it was merged into.
 */
export function selectRecords(client: pg.ClientBase, customers: Owner[]): Promise<RawRow[]> {
  return raw(client, records, ownerArrays(customers))
}

const accounts: Statement = {
  name: 'entitlements_audit_accounts',
  text: `
    with own as (
      select a.id
      from unnest($1::int[], $2::uuid[]) as q(scope_id, customer_id)
      join account a on a.scope_id = q.scope_id and a.customer_id = q.customer_id
    )
    select a.id, a.scope_id, a.customer_id, a.feature_id, a.used_total, a.last_at_ms, a.version, a.merged_into, a.split_from
    from (
      select id from own
      union
      select merged.id from own join account merged on merged.merged_into = own.id
    ) whose
    join account a on a.id = whose.id`,
}

/** Theirs, and those merged into theirs. */
export function selectAuditedAccounts(client: pg.ClientBase, customers: Owner[]): Promise<RawRow[]> {
  return raw(client, accounts, ownerArrays(customers))
}

const counters: Statement = {
  name: 'entitlements_audit_entities',
  text: `select account_id, entity_id, used_total from account_entity where account_id = any($1::bigint[])`,
}

export function selectCounters(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, counters, [int8s(accountIds)])
}

const grantColumns = `id, scope_id, account_id, feature_id, entity_id, rolled_from, unlimited, amount, remaining,
  effective_at_ms, period_no, revoked_at_ms, settled and (cycle_unit is not null or unlimited or remaining > 0)
  and coalesce(least(expires_at_ms, revoked_at_ms) > floor(extract(epoch from statement_timestamp()) * 1000), true)`

/** The last column: hidden from decisions that may need it. Two halves, because each has an index of its own. */
const grants: Statement = {
  name: 'entitlements_audit_grants',
  text: `
    select g.*
    from unnest($1::bigint[]) as a(id)
    cross join lateral (
      select ${grantColumns}
      from ledger_grant
      where account_id = a.id
        and not settled
      union all
      select ${grantColumns}
      from ledger_grant
      where account_id = a.id
        and settled
    ) g`,
}

export function selectAuditedGrants(client: pg.ClientBase, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(client, grants, [int8s(accountIds)])
}

const features: Statement = {
  name: 'entitlements_audit_features',
  text: `select id, scope_id, key, type, scale from feature where scope_id = any($1::int[])`,
}

export function selectAuditedFeatures(client: pg.ClientBase, scopeIds: number[]): Promise<RawRow[]> {
  return raw(client, features, [int4s(scopeIds)])
}

/** A decision made while the change was committing may still have seen the costs before it. */
const changeVisibleMs = 60_000

const costs: Statement = {
  name: 'entitlements_audit_costs',
  text: `
    select c.credit_feature_id, c.member_feature_id, c.credits, c.per,
      ceil(extract(epoch from f.updated_at) * 1000)::bigint + ${changeVisibleMs}
    from feature f
    join feature_cost c on c.credit_feature_id = f.id
    where f.scope_id = any($1::int[])`,
}

/** The last column is when the cost may have changed last: costs have no history, credit systems have their last change. */
export function selectAuditedCosts(client: pg.ClientBase, scopeIds: number[]): Promise<RawRow[]> {
  return raw(client, costs, [int4s(scopeIds)])
}

/** Rows in order of time, read from the database a portion at a time. The first column is the instant. */
export interface Cursor {
  next: (limit: number) => Promise<RawRow[]>
}

/** Open until the transaction ends. */
async function openCursor(client: pg.ClientBase, name: string, query: string, values: unknown[]): Promise<Cursor> {
  await client.query(`declare ${name} no scroll cursor for ${query}`, values)
  return {
    async next(limit) {
      const { rows } = await client.query<RawRow>({
        text: `fetch forward ${limit} from ${name}`,
        rowMode: 'array',
        types: { getTypeParser: () => (value: string) => value } as pg.CustomTypesConfig,
      })
      return rows
    },
  }
}

export function openEntries(client: pg.ClientBase, accountIds: bigint[]): Promise<Cursor> {
  return openCursor(
    client,
    'audited_entries',
    `select at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, operation_id
     from entry
     where account_id = any($1::bigint[])
     order by at_ms`,
    [int8s(accountIds)],
  )
}

export function openOperations(client: pg.ClientBase, customers: Owner[]): Promise<Cursor> {
  return openCursor(
    client,
    'audited_operations',
    `select o.occurred_at_ms, o.scope_id, o.kind, o.operation_id, o.customer_id, o.feature_key, o.feature_type, o.entity_id,
       o.mode, o.quantity, o.accepted, o.code, o.balance, o.unlimited, o.active, o.account_version, o.result
     from unnest($1::int[], $2::uuid[]) as q(scope_id, customer_id)
     join operation o on o.scope_id = q.scope_id and o.customer_id = q.customer_id
     order by o.occurred_at_ms`,
    ownerArrays(customers),
  )
}

export function openRefills(client: pg.ClientBase, grantIds: bigint[]): Promise<Cursor> {
  return openCursor(
    client,
    'audited_refills',
    `select at_ms, grant_id, period_no, lapsed, rolled
     from refill
     where grant_id = any($1::bigint[])
     order by at_ms`,
    [int8s(grantIds)],
  )
}

/** Rows that belong to no customer's standing, which reading by customer never meets. `$1` is a scope or null. */
const strays = {
  grant: `
    select g.scope_id, g.id::text, 'account ' || g.account_id
    from ledger_grant g
    where ($1::int is null or g.scope_id = $1)
      and not exists (select from account a where a.id = g.account_id)`,
  entry: `
    select e.scope_id, e.account_id || '/' || e.version || '/' || e.line, 'account ' || e.account_id
    from entry e
    where ($1::int is null or e.scope_id = $1)
      and not exists (select from account a where a.id = e.account_id)`,
  refill: `
    select null::int, r.grant_id || '/' || r.period_no, 'grant ' || r.grant_id
    from refill r
    where $1::int is null
      and not exists (select from ledger_grant g where g.id = r.grant_id)`,
  entity: `
    select null::int, e.account_id || '/' || e.entity_id, 'account ' || e.account_id
    from account_entity e
    where $1::int is null
      and not exists (select from account a where a.id = e.account_id)`,
  account: `
    select a.scope_id, a.id::text, 'account ' || a.merged_into
    from account a
    where ($1::int is null or a.scope_id = $1)
      and a.merged_into is not null
      and not exists (select from account b where b.id = a.merged_into and b.merged_into is null)`,
  operation: `
    select o.scope_id, o.operation_id, 'account of ' || o.customer_id
    from operation o
    where ($1::int is null or o.scope_id = $1)
      and o.accepted
      and not exists (select from account a where a.scope_id = o.scope_id and a.customer_id = o.customer_id)
      and not exists (
        select
        from customer c
        where c.scope_id = o.scope_id
          and c.id = o.customer_id
          and c.merged_into is not null
      )`,
}

export interface Stray {
  table: keyof typeof strays
  scopeId: number | null
  id: string
  missing: string
}

export async function selectStrays(
  client: pg.ClientBase,
  { scopeId, limit }: { scopeId: number | null; limit: number },
): Promise<Stray[]> {
  const found: Stray[] = []
  for (const table of Object.keys(strays) as Stray['table'][] /* the keys of a literal */) {
    const rows = await raw(client, { name: `entitlements_stray_${table}`, text: `${strays[table]} limit $2` }, [
      scopeId,
      limit,
    ])
    for (const [scope, id, missing] of rows) {
      found.push({ table, scopeId: scope ? Number(scope) : null, id: id ?? '', missing: missing ?? '' })
    }
  }
  return found
}

function ownerArrays(customers: Owner[]) {
  return [int4s(customers.map(({ scopeId }) => scopeId)), uuids(customers.map(({ customerId }) => customerId))]
}
