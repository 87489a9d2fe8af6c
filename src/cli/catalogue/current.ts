import type { Sql } from '../../db/pool.ts'
import { type FeatureRecord, listFeatures, listProducts, type ProductRecord } from '../../entitlements/index.ts'
import { showFeature } from '../../http/workspace/features.ts'
import { showProduct } from '../../http/workspace/products.ts'
import { catalogueObjectsMax } from '../../kernel/limits.ts'
import { StartError } from '../../kernel/start-error.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { CatalogueFile, FeatureEntry, ProductEntry } from './file.ts'

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
  }
}

function featureEntry(feature: FeatureRecord, scope: Scope): FeatureEntry {
  const { key, name, type, platforms, credit_costs, status } = showFeature(feature, scope)
  return { key, name, type, platforms, credit_costs, status }
}

function productEntry(product: ProductRecord, scope: Scope): ProductEntry {
  const { key, name, type, grants, stores, status } = showProduct(product, scope)
  return { key, name, type, grants, stores, status }
}

function sorted<Entry extends { key: string }>(entries: Entry[]): Entry[] {
  return entries.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}
