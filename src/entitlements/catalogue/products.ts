import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { isCalendarPeriod } from '../../kernel/calendar-period.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Edit, publishedFeatures, theOne } from './features.ts'
import { type GrantTerms, storedTerms } from './grant-terms.ts'
import {
  deleteLinks,
  insertLink,
  insertProduct,
  selectLinkedProduct,
  selectLinks,
  selectProducts,
  selectProductsAmong,
  selectProductsNamed,
  updateProductRow,
} from './product-store.ts'
import type { FeatureRecord, GrantTemplate, ProductPreview, ProductRecord, StoreLink } from './types.ts'

export type NewProduct = Pick<ProductRecord, 'key' | 'name' | 'type' | 'grants' | 'stores'> & {
  preview?: ProductPreview | null | undefined
}

/**
 * The caller announces it with `touchCatalogue`. Throws `conflict` for a taken key or store link, `invalid_request` and
 * `feature_not_found` for the grants.
 */
export async function createProduct(tx: Tx, scope: Scope, product: NewProduct): Promise<ProductRecord> {
  const { key, name, type, grants, stores, preview = null } = product
  await checkTemplates(tx, scope, grants)
  const [created] = await insertProduct(tx, scope, { publicId: newId('prod'), key, name, type, grants, preview })
  if (!created) throw refuse('conflict', { param: 'key', message: `There is a Product with the key ${key} already.` })
  await link(tx, scope, created.publicId, stores)
  return withLinks(tx, created)
}

export async function listProducts(sql: Sql, scope: Scope, page: Page): Promise<ProductRecord[]> {
  return withAllLinks(sql, await selectProducts(sql, scope, page))
}

/** Those that have one of the ids or keys. */
export async function findProducts(sql: Sql, scope: Scope, idsOrKeys: string[]): Promise<ProductRecord[]> {
  return withAllLinks(sql, await selectProductsAmong(sql, scope, idsOrKeys))
}

/**
 * By id or key, in whichever of the scopes it lies. Throws `not_found`, or `invalid_request` for a key in several. `param`
 * is how the caller named it, when not by the path.
 */
export async function getProduct(sql: Sql, scopes: Scope[], idOrKey: string, param?: string): Promise<ProductRecord> {
  return withLinks(sql, theOne(await selectProductsNamed(sql, scopes, idOrKey, { lock: false }), idOrKey, param))
}

/** The Product that a store product leads to, archived or not; null when none does. */
export async function findLinkedProduct(
  sql: Sql,
  scope: Scope,
  store: StoreLink['store'],
  sold: Pick<StoreLink, 'productId' | 'basePlanId' | 'purchaseOptionId' | 'offerId'>,
): Promise<{ product: ProductRecord; link: StoreLink } | null> {
  return (await selectLinkedProduct(sql, scope, store, sold)) ?? null
}

export interface ProductChanges {
  name?: string | undefined
  grants?: GrantTemplate[] | undefined
  stores?: StoreLink[] | undefined
  preview?: ProductPreview | null | undefined
}

/** Changes what is named; lists are replaced whole. Grants made before keep their terms. Throws as the verbs above do. */
export async function updateProduct(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  { name, grants, stores, preview }: ProductChanges,
): Promise<Edit<ProductRecord>> {
  return edit(tx, scopes, idOrKey, async (before, scope) => {
    if (grants !== undefined) await checkTemplates(tx, scope, grants)
    if (stores !== undefined) {
      await deleteLinks(tx, before.publicId)
      await link(tx, scope, before.publicId, stores)
    }
    const shown = preview === undefined ? before.preview : preview
    return { ...before, name: name ?? before.name, grants: grants ?? before.grants, preview: shown }
  })
}

/** It can't be attached by hand any more. Its store links stay: what was bought is still owed. Throws as `getProduct` does. */
export async function archiveProduct(tx: Tx, scopes: Scope[], idOrKey: string): Promise<Edit<ProductRecord>> {
  return edit(tx, scopes, idOrKey, async (before) => ({ ...before, status: 'archived' }))
}

/** The terms of a template, as exact units. */
export function termsOf({ allowance, unlimited, interval, rollover }: GrantTemplate): GrantTerms {
  return {
    allowance: allowance === null ? null : BigInt(allowance),
    unlimited,
    interval,
    rollover: rollover && {
      max: rollover.max === null ? null : BigInt(rollover.max),
      periods: rollover.periods,
    },
  }
}

async function edit(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  decide: (before: ProductRecord, scope: Scope) => Promise<ProductRecord>,
): Promise<Edit<ProductRecord>> {
  const found = await selectProductsNamed(tx, scopes, idOrKey, { lock: true })
  const before = await withLinks(tx, theOne(found, idOrKey))
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === before.scopeId),
    'it was looked for in these scopes',
  )
  const [after] = await updateProductRow(tx, scope, await decide(before, scope))
  return { before, after: await withLinks(tx, must(after, 'the row is locked')), scope }
}

/** The Feature of each template is published and fits its terms; one template per Feature, or one and one per entity. */
async function checkTemplates(sql: Sql, scope: Scope, templates: GrantTemplate[]): Promise<FeatureRecord[]> {
  const pathOf = (i: number) => `grants.${i}.feature`
  const features = await publishedFeatures(
    sql,
    scope,
    templates.map((template) => template.feature),
    pathOf,
  )
  for (const [i, template] of templates.entries()) {
    const feature = must(features[i], 'a Feature for each')
    storedTerms(feature, termsOf(template), `grants.${i}.`)
    checkEntities(feature, template, `grants.${i}.max_entities`)
    const first = templates.findIndex(
      (other) => other.feature === template.feature && other.entity_scoped === template.entity_scoped,
    )
    if (first < i) {
      throw refuse('invalid_request', { param: pathOf(i), message: `${pathOf(i)} names a Feature a second time` })
    }
  }
  return features
}

function checkEntities(
  { type }: FeatureRecord,
  { entity_scoped, max_entities = 0 }: GrantTemplate,
  path: string,
): void {
  if (max_entities === 0) return
  const wrong = (words: string) => refuse('invalid_request', { param: path, message: `${path} ${words}` })
  if (!entity_scoped) throw wrong('needs entity_scoped')
  // Only a spend takes a place, and a boolean Feature is never spent: any number of entities would get in.
  if (type === 'boolean') throw wrong('is not for a boolean Feature')
}

async function link(tx: Tx, scope: Scope, productId: string, links: StoreLink[]): Promise<void> {
  for (const [i, each] of links.entries()) {
    const path = `stores.${i}`
    if (each.store !== 'playstore' && (each.basePlanId ?? each.purchaseOptionId ?? each.offerId) !== null) {
      const words = each.store === 'stripe' ? 'a Stripe' : 'an App Store'
      throw refuse('invalid_request', { param: path, message: `${path}: ${words} link has a product_id only` })
    }
    if (each.store !== 'playstore' && each.consumable) {
      throw refuse('invalid_request', { param: path, message: `${path}: consumable is for Google Play links only` })
    }
    if (each.store !== 'appstore' && (each.duration !== null || each.familySharing)) {
      throw refuse('invalid_request', {
        param: path,
        message: `${path}: duration and family_sharing are for App Store links only`,
      })
    }
    if (each.duration !== null && !isCalendarPeriod(each.duration)) {
      throw refuse('invalid_request', {
        param: `${path}.duration`,
        message: `${path}.duration must be an ISO 8601 period, such as P1M`,
      })
    }
    if (!(await insertLink(tx, scope, productId, each))) {
      throw refuse('conflict', { param: path, message: `${words(each)} leads to a Product already.` })
    }
  }
}

function words({ store, productId, basePlanId, purchaseOptionId, offerId }: StoreLink): string {
  return [store, productId, basePlanId, purchaseOptionId, offerId].filter((part) => part !== null).join(' / ')
}

async function withLinks(sql: Sql, product: ProductRecord): Promise<ProductRecord> {
  return must((await withAllLinks(sql, [product]))[0], 'one for one')
}

async function withAllLinks(sql: Sql, products: ProductRecord[]): Promise<ProductRecord[]> {
  const links = await selectLinks(
    sql,
    products.map((product) => product.publicId),
  )
  return products.map((product) => ({ ...product, stores: links.get(product.publicId) ?? [] }))
}
