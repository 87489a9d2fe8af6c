import type pg from 'pg'
import { int4s, int8s, texts } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import { grantColumns } from './grant-row.ts'

/**
 * Run-time settings of the ledger's connections. On tables not yet analysed the planner would join `unnest` by hashing
 * whole tables (400 instead of 8,000 requests/s); every statement here is a chain of index look-ups, planned once.
 */
export const ledgerSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_memoize: 'off',
  plan_cache_mode: 'force_generic_plan',
  statement_timeout: '2s',
  // Whoever finds an account held gives way soon and comes back with a lock of its own: see consume.ts.
  lock_timeout: '20ms',
}

/** One question about one account: a Feature in credit systems asks once for each of them. */
export interface AccountQuestion {
  scopeId: number
  distinctId: string
  featureId: number
  entityId: string | null
}

// The limits keep each look-up a parametrised index scan on all its columns; without them the planner moved the scope into
// a join filter and skip-scanned the index (21 instead of 11 us per question).
const readState: Statement = {
  name: 'entitlements_state',
  text: `
    select q.n, c.customer_id, a.id, a.used_total, a.last_at_ms, a.version, e.used_total, e.registered, ${grantColumns}
    from unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::text[])
      as q(n, scope_id, distinct_id, feature_id, entity_id)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c on true
    left join lateral (
      select id, used_total, last_at_ms, version
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = q.feature_id
      limit 1
    ) a on true
    left join lateral (
      select used_total, registered
      from account_entity
      where account_id = a.id
        and entity_id = q.entity_id
      limit 1
    ) e on true
    left join ledger_grant g
      on g.account_id = a.id
      and not g.settled
      and (g.entity_id is null or g.entity_id = q.entity_id)`,
}

/** One row per (question, visible unsettled grant): n, customer, account columns, entity columns, grant columns. */
export function selectState(client: pg.ClientBase, questions: AccountQuestion[]): Promise<RawRow[]> {
  return raw(client, readState, [
    int4s(questions.map((_, n) => n)),
    int4s(questions.map((question) => question.scopeId)),
    texts(questions.map((question) => question.distinctId)),
    int4s(questions.map((question) => question.featureId)),
    texts(questions.map((question) => question.entityId)),
  ])
}

/**
 * What `addOffer` reads after the position asked at; `q` names the entity. With `exists` in place of the probe, tables that
 * nobody has analysed get a plan that reads and hashes all grants.
 */
const offerColumns = `t.account_id, t.id, t.product_id, t.origin, t.rank, t.template, t.effective_at_ms, t.expires_at_ms,
  t.max_entities, t.granted, (
    select true
    from ledger_grant
    where scope_id = t.scope_id
      and source_ref = t.source_ref
      and feature_id = t.feature_id
      and entity_id = q.entity_id
    limit 1
  ), t.paid_until_ms`

// As above; asked only when somebody names an entity.
const readOffers: Statement = {
  name: 'entitlements_offers',
  text: `
    select q.n, ${offerColumns}
    from unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::text[])
      as q(n, scope_id, distinct_id, feature_id, entity_id)
    cross join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) c
    cross join lateral (
      select id
      from account
      where scope_id = q.scope_id
        and customer_id = c.customer_id
        and feature_id = q.feature_id
      limit 1
    ) a
    join entity_terms t on t.account_id = a.id and t.max_entities > 0`,
}

/** What attached Products offer to entities that nobody registered: a row per (question, offer) for `addOffer`. */
export function selectOffers(client: pg.ClientBase, questions: AccountQuestion[]): Promise<RawRow[]> {
  const asked = questions.flatMap((question, n) => (question.entityId === null ? [] : [{ ...question, n }]))
  return raw(client, readOffers, [
    int4s(asked.map(({ n }) => n)),
    int4s(asked.map(({ scopeId }) => scopeId)),
    texts(asked.map(({ distinctId }) => distinctId)),
    int4s(asked.map(({ featureId }) => featureId)),
    texts(asked.map(({ entityId }) => entityId)),
  ])
}

const readOffersOf: Statement = {
  name: 'entitlements_offers_of',
  text: `
    select 0, ${offerColumns}
    from unnest($1::bigint[]) as a(id)
    cross join (select $2::text as entity_id) q
    join entity_terms t on t.account_id = a.id and t.max_entities > 0`,
}

/** The same of accounts that are known. */
export function selectOffersOf(client: pg.ClientBase, accountIds: bigint[], entityId: string): Promise<RawRow[]> {
  return raw(client, readOffersOf, [int8s(accountIds), entityId])
}

const readMoment: Statement = {
  name: 'entitlements_moment',
  text: `
    select floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
      (select array_agg(revision order by n)
       from unnest($1::int[]) with ordinality as q(id, n)
       join scope s on s.id = q.id)`,
}

/** The database clock, and the catalogue revision of each scope in order. */
export async function selectMoment(
  client: pg.ClientBase,
  scopeIds: number[],
): Promise<{ now: number; revisions: bigint[] }> {
  const [row] = await raw(client, readMoment, [int4s(scopeIds)])
  return { now: Number(row?.[0]), revisions: bigints(row?.[1]) }
}

/** `{1,2,3}` as PostgreSQL prints arrays of numbers. */
function bigints(literal: string | null | undefined): bigint[] {
  if (!literal || literal === '{}') return []
  return literal.slice(1, -1).split(',').map(BigInt)
}

const readDeleted: Statement = {
  name: 'entitlements_deleted',
  text: `
    select q.n
    from unnest($1::int[], $2::text[]) with ordinality as q(scope_id, distinct_id, n)
    cross join lateral (
      select
      from customer_tombstone
      where scope_id = q.scope_id
        and id_hash = sha256($3::bytea || convert_to(q.distinct_id, 'UTF8'))
      limit 1
    ) t`,
}

/** Positions of the ids that belong to deleted customers. Asked only for ids that name nobody. */
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

const countEntities: Statement = {
  name: 'entitlements_count_entities',
  text: `
    select (select count(*) from account_entity e where e.account_id = q.account_id)
    from unnest($1::bigint[]) with ordinality as q(account_id, n)
    order by n`,
}

/** How many entities each account counts, in order. Asked only when a new one would join. */
export async function selectEntityCounts(client: pg.ClientBase, accountIds: bigint[]): Promise<number[]> {
  const rows = await raw(client, countEntities, [int8s(accountIds)])
  return rows.map((row) => Number(row[0]))
}
