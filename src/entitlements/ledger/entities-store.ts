import { int4s, int8s } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { GrantTemplate } from '../catalogue/types.ts'
import type { GrantOrigin } from '../types.ts'
import type { HeldAccount } from './movements-store.ts'

export interface EntityRow {
  account_id: bigint
  customer_id: string
  feature: string
  entity_id: string
  used_total: bigint
  registration: bigint
  registered_at_ms: bigint
}

const entityColumns = `e.account_id, a.customer_id, f.key as feature, e.entity_id, e.used_total, e.registration,
  e.registered_at_ms`

/** Registered ones, the newest registration first. */
export function selectRegistered(
  sql: Sql,
  scope: Scope,
  customerId: string,
  { feature, before, limit }: { feature: string | null; before: bigint; limit: number },
): Promise<EntityRow[]> {
  return sql.query<EntityRow>(
    `select ${entityColumns}
     from account a
     join feature f on f.id = a.feature_id
     join account_entity e on e.account_id = a.id
     where a.scope_id = $1
       and a.customer_id = $2
       and ($3::text is null or f.key = $3)
       and e.registered
       and e.registration < $4
     order by e.registration desc
     limit $5`,
    [scope.scopeId, customerId, feature, before, limit],
  )
}

/** Whether or not it is registered; undefined when nobody has seen it. */
export async function selectEntity(
  tx: Tx,
  accountId: bigint,
  entityId: string,
): Promise<(EntityRow & { registered: boolean }) | undefined> {
  const [row] = await tx.query<EntityRow & { registered: boolean }>(
    `select ${entityColumns}, e.registered
     from account_entity e
     join account a on a.id = e.account_id
     join feature f on f.id = a.feature_id
     where e.account_id = $1
       and e.entity_id = $2`,
    [accountId, entityId],
  )
  return row
}

export async function upsertRegistered(tx: Tx, accountId: bigint, entityId: string, at: number): Promise<void> {
  await tx.query(
    `insert into account_entity (account_id, entity_id, registered, registration, registered_at_ms)
     values ($1, $2, true, nextval('entity_registration'), $3)
     on conflict (account_id, entity_id) do update
     set registered = true, registration = excluded.registration, registered_at_ms = excluded.registered_at_ms`,
    [accountId, entityId, at],
  )
}

/** Its counter stays. */
export async function updateRetired(tx: Tx, accountId: bigint, entityId: string): Promise<void> {
  await tx.query(
    `update account_entity
     set registered = false, registration = null, registered_at_ms = null
     where account_id = $1
       and entity_id = $2`,
    [accountId, entityId],
  )
}

/** Registered entities of accounts, in the order of their registration. */
export function selectRegisteredIn(tx: Tx, accountIds: bigint[]): Promise<{ account_id: bigint; entity_id: string }[]> {
  return tx.query(
    `select account_id, entity_id
     from account_entity
     where account_id = any($1::bigint[])
       and registered
     order by registration`,
    [int8s(accountIds)],
  )
}

/** The account of a customer and the Feature with this key, published or not, locked. */
export async function lockAccountNamed(
  tx: Tx,
  scope: Scope,
  customerId: string,
  feature: string,
): Promise<HeldAccount | undefined> {
  const [row] = await tx.query<HeldAccount>(
    `select a.id, a.feature_id, a.used_total, a.last_at_ms, a.version
     from feature f
     join account a on a.scope_id = $1 and a.customer_id = $2 and a.feature_id = f.id
     where f.scope_id = $1
       and f.key = $3
     for update of a`,
    [scope.scopeId, customerId, feature],
  )
  return row
}

export interface EntityTerms {
  id: bigint
  source_ref: string
  origin: GrantOrigin
  rank: 0 | 1
  product_id: string | null
  template: GrantTemplate
  effective_at_ms: bigint
  expires_at_ms: bigint | null
  paid_until_ms: bigint | null
}

export async function insertEntityTerms(
  tx: Tx,
  scope: Scope,
  {
    accountId,
    featureId,
    at,
    ...terms
  }: Omit<EntityTerms, 'id'> & { accountId: bigint; featureId: number; at: number },
): Promise<bigint> {
  const [row] = await tx.query<{ id: bigint }>(
    `insert into entity_terms (scope_id, account_id, feature_id, source_ref, origin, rank, product_id, template,
       effective_at_ms, expires_at_ms, paid_until_ms, created_at_ms, max_entities)
     values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13)
     returning id`,
    [
      scope.scopeId,
      accountId,
      featureId,
      terms.source_ref,
      terms.origin,
      terms.rank,
      terms.product_id,
      JSON.stringify(terms.template),
      terms.effective_at_ms,
      terms.expires_at_ms,
      terms.paid_until_ms,
      at,
      terms.template.max_entities ?? 0,
    ],
  )
  return must(row, 'it was inserted').id
}

/** Entities have got their grants of these attachments: so many places fewer for those that nobody registers. */
export async function countGranted(tx: Tx, terms: { id: bigint; entities: number }[]): Promise<void> {
  const counted = terms.filter(({ entities }) => entities > 0)
  if (counted.length === 0) return
  await tx.query(
    `update entity_terms t
     set granted = t.granted + q.entities
     from unnest($1::bigint[], $2::int[]) as q(id, entities)
     where t.id = q.id`,
    [int8s(counted.map(({ id }) => id)), int4s(counted.map(({ entities }) => entities))],
  )
}

/** What the attachments of an account that have not ended owe an entity: those it has no grant of, ever, revoked or not. */
export function selectOwedTerms(
  tx: Tx,
  { accountId, entityId, now }: { accountId: bigint; entityId: string; now: number },
): Promise<EntityTerms[]> {
  return tx.query<EntityTerms>(
    `select t.id, t.source_ref, t.origin, t.rank, t.product_id, t.template, t.effective_at_ms, t.expires_at_ms, t.paid_until_ms
     from entity_terms t
     where t.account_id = $1
       and (t.expires_at_ms is null or t.expires_at_ms > $3)
       and not exists (
         select
         from ledger_grant g
         where g.scope_id = t.scope_id
           and g.source_ref = t.source_ref
           and g.feature_id = t.feature_id
           and g.entity_id = $2
       )
     order by t.id`,
    [accountId, entityId, now],
  )
}
