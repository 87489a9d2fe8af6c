import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { entityCountersMax } from '../../kernel/limits.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { publishedFeatures } from '../catalogue/features.ts'
import { termsOf } from '../catalogue/products.ts'
import type { FeatureRecord } from '../catalogue/types.ts'
import { decideRetire } from '../engine/revoke.ts'
import { storedUnitsMax } from '../engine/units.ts'
import type { Ms, Units } from '../types.ts'
import {
  countGranted,
  type EntityRow,
  type EntityTerms,
  lockAccountNamed,
  selectEntity,
  selectOwedTerms,
  selectRegistered,
  updateRetired,
  upsertRegistered,
} from './entities-store.ts'
import type { EntryDetail } from './entry-detail.ts'
import type { GrantRecord } from './grant-record.ts'
import { grantUnits, type NewGrant } from './grants.ts'
import { advanceAccounts, selectClock } from './grants-store.ts'
import { holdCustomers } from './hold-customers.ts'
import { loadHeld, writeMovements } from './movements.ts'
import type { HeldAccount } from './movements-store.ts'
import { selectEntityCounts } from './state-store.ts'
import { insertAccounts } from './usage-store.ts'

/** A seat, team or device that the workspace has named for one Feature of a customer. */
export interface EntityRecord {
  /** Changes when it is retired and registered again. */
  registration: bigint
  customerId: string
  featureKey: string
  entityId: string
  /** Lifetime units, those before its registration included. */
  used: Units
  registeredAt: Ms
}

export interface EntityName {
  customerId: string
  /** Key of the Feature. */
  feature: string
  entityId: string
}

/**
 * Names an entity, in the caller's transaction, and gives it what the customer's attached Products give each entity of
 * the Feature: each attachment once, however often the entity is registered. Throws `feature_not_found`, and
 * `invalid_request` when the account has no room for another entity.
 */
export async function registerEntity(
  tx: Tx,
  scope: Scope,
  { customerId, feature: key, entityId }: EntityName,
  actor: string,
): Promise<{ entity: EntityRecord; created: boolean; grants: GrantRecord[] }> {
  const [feature] = await publishedFeatures(tx, scope, [key], () => 'feature')
  const { id: featureId } = must(feature, 'a Feature for the key')
  // Attaching holds the customer too: it finds this entity, or this finds the terms that it leaves.
  const owner = await holdOne(tx, scope, customerId)
  await insertAccounts(tx.client, [{ scopeId: scope.scopeId, customerId: owner, featureId }])
  const account = must(await lockAccountNamed(tx, scope, owner, key), 'the account was made')
  const now = Math.max(await selectClock(tx, scope), Number(account.last_at_ms))

  const before = await selectEntity(tx, account.id, entityId)
  if (!before?.registered) await register(tx, account, { entityId, known: before !== undefined, now })
  const owed = await selectOwedTerms(tx, { accountId: account.id, entityId, now })
  const common = { customerId: owner, feature: must(feature, 'a Feature for the key'), entityId, actor }
  const grants = await grantUnits(
    tx,
    scope,
    owed.map((terms) => entityGrant(terms, { ...common, now })),
  )
  await countGranted(
    tx,
    owed.map(({ id }) => ({ id, entities: 1 })),
  )
  const row = must(await selectEntity(tx, account.id, entityId), 'it is registered')
  return { entity: recordOf(row), created: !before?.registered, grants }
}

/**
 * Ends an entity and, at once, every grant of its own. Its counter stays, and so do shared grants. Throws `not_found` when it
 * is not registered.
 */
export async function retireEntity(
  tx: Tx,
  scope: Scope,
  { customerId, feature, entityId }: EntityName,
  detail: EntryDetail,
): Promise<EntityRecord> {
  const owner = await holdOne(tx, scope, customerId)
  const locked = await lockAccountNamed(tx, scope, owner, feature)
  const entity = locked && (await selectEntity(tx, locked.id, entityId))
  if (!locked || !entity?.registered) throw refuse('not_found')
  const { now, accounts } = await loadHeld(tx, scope, [locked])
  const account = must(accounts[0], 'as locked')
  const changes = decideRetire(account, entityId, now)
  if (changes.length > 0) await writeMovements(tx, scope, account, changes, { now, operationId: null, ...detail })
  else await advanceAccounts(tx, [{ id: account.id, version: account.version + 1n, lastAt: now }])
  await updateRetired(tx, account.id, entityId)
  return recordOf(entity)
}

/** Registered ones, newest first. `after` is the number of a registration. */
export async function listEntities(
  sql: Sql,
  scope: Scope,
  { customerId, feature }: { customerId: string; feature: string | null },
  { limit, after }: Page,
): Promise<EntityRecord[]> {
  const before = after === null ? storedUnitsMax : BigInt(after)
  return (await selectRegistered(sql, scope, customerId, { feature, before, limit })).map(recordOf)
}

/** What one attachment gives one entity: from now on, or from the attachment's own start when that is still to come. */
export function entityGrant(
  {
    source_ref,
    origin,
    rank,
    product_id,
    template,
    effective_at_ms,
    expires_at_ms,
    paid_until_ms,
  }: Omit<EntityTerms, 'id'>,
  {
    now,
    ...whom
  }: Pick<NewGrant, 'customerId' | 'entityId'> & { feature: FeatureRecord; now: Ms; actor?: string | undefined },
): NewGrant {
  const { actor, ...common } = whom
  return {
    ...termsOf(template),
    ...common,
    startsAt: Number(effective_at_ms) > now ? Number(effective_at_ms) : null,
    expiresAt: expires_at_ms === null ? null : Number(expires_at_ms),
    ...(paid_until_ms === null ? {} : { paidUntil: Number(paid_until_ms) }),
    source: { origin, ref: source_ref, rank, productId: product_id },
    note: null,
    ...(actor === undefined ? {} : { actor }),
  }
}

async function register(
  tx: Tx,
  { id, version }: HeldAccount,
  { entityId, known, now }: { entityId: string; known: boolean; now: Ms },
): Promise<void> {
  const [count = 0] = known ? [] : await selectEntityCounts(tx.client, [id])
  if (count >= entityCountersMax) {
    throw refuse('invalid_request', {
      param: 'entity_id',
      message: `The customer has ${entityCountersMax} entities of this Feature already.`,
    })
  }
  await upsertRegistered(tx, id, entityId, now)
  await advanceAccounts(tx, [{ id, version: version + 1n, lastAt: now }])
}

async function holdOne(tx: Tx, scope: Scope, customerId: string): Promise<string> {
  return must((await holdCustomers(tx, scope, [customerId])).get(customerId), 'an owner for each')
}

function recordOf(row: EntityRow): EntityRecord {
  return {
    registration: row.registration,
    customerId: row.customer_id,
    featureKey: row.feature,
    entityId: row.entity_id,
    used: row.used_total,
    registeredAt: Number(row.registered_at_ms),
  }
}
