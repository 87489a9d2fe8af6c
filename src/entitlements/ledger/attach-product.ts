import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { randomText } from '../../kernel/ids.ts'
import { unitsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { selectFeaturesByKey } from '../catalogue/feature-store.ts'
import { publishedFeatures } from '../catalogue/features.ts'
import { getProduct, termsOf } from '../catalogue/products.ts'
import type { FeatureRecord, GrantTemplate, ProductRecord } from '../catalogue/types.ts'
import type { Ms } from '../types.ts'
import { entityGrant } from './entities.ts'
import { countGranted, type EntityTerms, insertEntityTerms, selectRegisteredIn } from './entities-store.ts'
import type { GrantRecord } from './grant-record.ts'
import { type GrantSource, grantUnits, type NewGrant } from './grants.ts'
import { selectAccountsOf, selectClock } from './grants-store.ts'
import { holdCustomers } from './hold-customers.ts'
import { insertAccounts } from './usage-store.ts'

export interface Attachment {
  customerId: string
  /** Id or key. */
  product: string
  /** Null: at once. */
  startsAt: Ms | null
  expiresAt: Ms | null
  /** Who attaches it; absent when Turnpike itself does. */
  actor?: string
}

/** A Product that somebody bought. */
export interface BoughtProduct {
  customerId: string
  product: ProductRecord
  /** Unique in the scope: grants of one source are made once, ever. */
  ref: string
  rank: 0 | 1
  startsAt: Ms
  expiresAt: Ms | null
  /** Without grace: no refill then or later. */
  paidUntil: Ms | null
  /** Of what is given once: so many times the allowance. */
  quantity: number
}

type Offer = Pick<Attachment, 'startsAt' | 'expiresAt' | 'actor'> & { paidUntil: Ms | null; source: GrantSource }
interface Item {
  template: GrantTemplate
  feature: FeatureRecord
}

/**
 * Gives a customer what the Product grants now, in the caller's transaction. Each call is a new source of grants. Templates
 * per entity give each registered entity its own grant, and are kept for those that are registered later. Throws
 * `not_found`, `conflict` for an archived Product, `feature_not_found` when one of its Features is not published any more,
 * and what `grantUnits` throws.
 */
export async function attachProduct(tx: Tx, scope: Scope, attachment: Attachment): Promise<GrantRecord[]> {
  const { customerId, product: name, ...times } = attachment
  const product = await getProduct(tx, [scope], name, 'product')
  if (product.status === 'archived') {
    throw refuse('conflict', { param: 'product', message: `The Product ${product.key} is archived.` })
  }
  const keys = product.grants.map((template) => template.feature)
  const features = await publishedFeatures(tx, scope, keys, () => 'product')
  const items = product.grants.map((template, i) => ({ template, feature: must(features[i], 'a Feature for each') }))
  const ref = `product:${product.publicId}:${randomText(24)}`
  const source = { origin: 'product', ref, rank: 0, productId: product.publicId } as const
  return give(tx, scope, customerId, items, { ...times, paidUntil: null, source })
}

/**
 * Gives a customer what was bought, in the caller's transaction, whatever has become of the Product or of its Features
 * meanwhile: what was sold is owed. Throws what `grantUnits` throws.
 */
export async function attachPurchase(tx: Tx, scope: Scope, bought: BoughtProduct): Promise<GrantRecord[]> {
  const { customerId, product, ref, rank, quantity, ...times } = bought
  const keys = product.grants.map((template) => template.feature)
  const features = new Map((await selectFeaturesByKey(tx, scope, keys)).map((feature) => [feature.key, feature]))
  const items = product.grants.map((template) => ({
    template: timesQuantity(template, quantity),
    feature: must(features.get(template.feature), 'Features are never deleted'),
  }))
  const source = { origin: 'purchase', ref, rank, productId: product.publicId } as const
  return give(tx, scope, customerId, items, { ...times, source })
}

/** What comes again each period is that of a subscription, which nobody buys twice at once. */
function timesQuantity(template: GrantTemplate, quantity: number): GrantTemplate {
  const { allowance, interval } = template
  return allowance === null || interval !== null
    ? template
    : { ...template, allowance: Math.min(allowance * quantity, unitsMax) }
}

async function give(tx: Tx, scope: Scope, customerId: string, items: Item[], offer: Offer): Promise<GrantRecord[]> {
  const shared = items.filter(({ template }) => !template.entity_scoped)
  const perEntity = items.filter(({ template }) => template.entity_scoped)
  return grantUnits(tx, scope, [
    ...shared.map((item) => sharedGrant(customerId, item, offer)),
    ...(await entityGrants(tx, scope, customerId, perEntity, offer)),
  ])
}

function sharedGrant(customerId: string, { template, feature }: Item, offer: Offer): NewGrant {
  return { ...termsOf(template), ...offer, customerId, feature, entityId: null, note: null }
}

/** Keeps the terms and gives the grants of the entities that are registered by now. */
async function entityGrants(
  tx: Tx,
  scope: Scope,
  customerId: string,
  items: Item[],
  { startsAt, expiresAt, paidUntil, source, actor }: Offer,
): Promise<NewGrant[]> {
  if (items.length === 0) return []
  const owner = must((await holdCustomers(tx, scope, [customerId])).get(customerId), 'an owner for each')
  const pairs = items.map(({ feature }) => ({ customerId: owner, featureId: feature.id }))
  await insertAccounts(
    tx.client,
    pairs.map((pair) => ({ scopeId: scope.scopeId, ...pair })),
  )
  // Not locked: the customer is, which registering waits for too, and accounts are only ever locked all at once.
  const accounts = await selectAccountsOf(tx, scope, pairs)
  const registered = await selectRegisteredIn(
    tx,
    accounts.map((account) => account.id),
  )
  const now = await selectClock(tx, scope)
  if (expiresAt !== null && expiresAt <= (startsAt ?? now)) {
    throw refuse('invalid_request', { param: 'expires_at', message: 'expires_at must be after starts_at' })
  }

  const grants: NewGrant[] = []
  for (const { template, feature } of items) {
    const account = accounts.find((each) => each.feature_id === feature.id)
    const accountId = must(account, 'the account was made').id
    const terms: Omit<EntityTerms, 'id'> = {
      source_ref: source.ref,
      origin: source.origin,
      rank: source.rank,
      product_id: source.productId,
      template,
      effective_at_ms: BigInt(startsAt ?? now),
      expires_at_ms: expiresAt === null ? null : BigInt(expiresAt),
      paid_until_ms: paidUntil === null ? null : BigInt(paidUntil),
    }
    const id = await insertEntityTerms(tx, scope, { ...terms, accountId, featureId: feature.id, at: now })
    const entities = registered.filter((each) => each.account_id === accountId)
    await countGranted(tx, [{ id, entities: entities.length }])
    for (const { entity_id } of entities) {
      // An attachment that begins in the past begins there for the entities of that time too.
      grants.push({ ...entityGrant(terms, { customerId: owner, feature, entityId: entity_id, now, actor }), startsAt })
    }
  }
  return grants
}
