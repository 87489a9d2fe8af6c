import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { randomText } from '../../kernel/ids.ts'
import type { Scope } from '../../tenancy/index.ts'
import { publishedFeatures } from '../catalogue/features.ts'
import { getProduct, termsOf } from '../catalogue/products.ts'
import type { Ms } from '../types.ts'
import { type GrantRecord, grantUnits } from './grants.ts'

export interface Attachment {
  customerId: string
  /** Id or key. */
  product: string
  /** Null: at once. */
  startsAt: Ms | null
  expiresAt: Ms | null
}

/**
 * Gives a customer what the Product grants now, in the caller's transaction. Each call is a new source of grants. Templates
 * per entity give nothing here: they wait for entities to be registered. Throws `not_found`, `conflict` for an archived
 * Product, `feature_not_found` when one of its Features is not published any more, and what `grantUnits` throws.
 */
export async function attachProduct(tx: Tx, scope: Scope, attachment: Attachment): Promise<GrantRecord[]> {
  const { customerId, startsAt, expiresAt } = attachment
  const product = await getProduct(tx, [scope], attachment.product, 'product')
  if (product.status === 'archived') {
    throw refuse('conflict', { param: 'product', message: `The Product ${product.key} is archived.` })
  }
  const templates = product.grants.filter((template) => !template.entity_scoped)
  const features = await publishedFeatures(
    tx,
    scope,
    templates.map((template) => template.feature),
    () => 'product',
  )
  const source = {
    origin: 'product',
    ref: `product:${product.publicId}:${randomText(24)}`,
    rank: 0,
    productId: product.publicId,
  } as const
  return grantUnits(
    tx,
    scope,
    templates.map((template, i) => ({
      ...termsOf(template),
      customerId,
      feature: must(features[i], 'a Feature for each'),
      entityId: null,
      startsAt,
      expiresAt,
      source,
      note: null,
    })),
  )
}
