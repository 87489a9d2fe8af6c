import { listSegments } from '../../customers/index.ts'
import type { Sql } from '../../db/pool.ts'
import { type FeatureRecord, listFeatures, listProducts, type ProductRecord } from '../../entitlements/index.ts'
import { showFeature } from '../../http/workspace/features.ts'
import { showProduct } from '../../http/workspace/products.ts'
import { showSegment } from '../../http/workspace/segments.ts'
import { catalogueObjectsMax, segmentsMax } from '../../kernel/limits.ts'
import { StartError } from '../../kernel/start-error.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type CatalogueFile, type FeatureEntry, type ProductEntry, refuseTwice, type SegmentEntry } from './file.ts'
import { named } from './segment-names.ts'

/** The catalogue of a scope as a file says it, in the order of keys. */
export async function currentCatalogue(sql: Sql, scope: Scope): Promise<CatalogueFile> {
  const page = { limit: catalogueObjectsMax + 1, after: null }
  const features = await listFeatures(sql, scope, page)
  const products = await listProducts(sql, scope, page)
  if (Math.max(features.length, products.length) > catalogueObjectsMax) {
    throw new StartError(`a file holds at most ${catalogueObjectsMax} Features and as many Products`)
  }
  return {
    turnpike_catalogue: 1,
    features: sorted(features.map((feature) => featureEntry(feature, scope))),
    products: sorted(products.map((product) => productEntry(product, scope))),
    segments: await segmentEntries(sql, scope),
  }
}

function featureEntry(feature: FeatureRecord, scope: Scope): FeatureEntry {
  const { key, name, type, platforms, credit_costs, status } = showFeature(feature, scope)
  return { key, name, type, platforms, credit_costs, status }
}

function productEntry(product: ProductRecord, scope: Scope): ProductEntry {
  const { key, name, type, grants, stores, preview, status } = showProduct(product, scope)
  return { key, name, type, grants, stores, ...(preview === null ? {} : { preview }), status }
}

/** By name: an environment whose names do not tell its segments apart cannot be written down so. */
async function segmentEntries(sql: Sql, scope: Scope): Promise<SegmentEntry[]> {
  const shown = (await listSegments(sql, scope, { limit: segmentsMax, after: null })).map((one) =>
    showSegment(one, scope),
  )
  const names = new Map(shown.map(({ id, name }) => [id, name]))
  const entries = shown.map(
    ({ name, definition }): SegmentEntry => ({
      name,
      definition: named(definition as SegmentEntry['definition'], names), // it was parsed from such an object
    }),
  )
  refuseTwice(
    `the ${scope.environment} environment`,
    entries.map(({ name }) => name),
  )
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function sorted<Entry extends { key: string }>(entries: Entry[]): Entry[] {
  return entries.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}
