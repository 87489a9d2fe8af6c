import { hash } from 'node:crypto'
import type { FeatureRecord, GrantTemplate, ProductRecord } from '../../entitlements/index.ts'
import type { CatalogueProduct, Entitlement, Preview } from '../draft/products.ts'

export type Feature = Pick<FeatureRecord, 'key' | 'type' | 'costs'>

/** What drafts may sell of a Product of the catalogue. */
export function productOf(product: ProductRecord, features: ReadonlyMap<string, Feature>): CatalogueProduct {
  const { publicId: id, type, stores, grants } = product
  const counted = grants.some(({ allowance, unlimited }) => allowance !== null && !unlimited)
  // Only Google Play links say so. What gives units that run out is bought again, what switches something on is not.
  const playLinks = stores.filter(({ store }) => store === 'playstore')
  const isConsumable = playLinks.length > 0 ? playLinks.some(({ consumable }) => consumable) : counted
  const entitlements = grants
    .map((template) => entitlementOf(id, template, features.get(template.feature)))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  return { id, type, isConsumable, stores, preview: previewOf(product), entitlements }
}

function entitlementOf(productId: string, template: GrantTemplate, feature: Feature | undefined): Entitlement {
  const { feature: key, allowance, unlimited, interval, entity_scoped } = template
  const payable = feature?.type === 'creditSystem' ? feature.costs.map((cost) => cost.feature) : [key]
  const usage = feature === undefined || feature.type === 'boolean' ? [] : payable
  const isBoolean = !unlimited && allowance === null
  return {
    // Keys may be longer than clients take ids.
    id: `${productId}.${hash('sha256', key).slice(0, 24)}${entity_scoped ? '.entity' : ''}`,
    featureId: key.length <= 128 ? key : null,
    featureExternalId: Buffer.byteLength(key) <= 256 ? key : null,
    purchaseUsageFeatureIds: [...new Set(usage.filter((one) => Buffer.byteLength(one) <= 256))].toSorted(),
    allowanceType: isBoolean ? null : unlimited ? 'unlimited' : 'fixed',
    allowance: unlimited ? null : allowance,
    interval,
  }
}

const dash = '—'

function previewOf({ name, preview }: ProductRecord): Preview {
  const own = preview ?? {}
  return {
    name: own.name ?? cut(name, 512),
    description: own.description ?? cut(name, 512),
    price: own.price ?? dash,
    period: own.period ?? dash,
    periodLabel: own.period_label ?? dash,
    periodCount: own.period_count ?? 0,
    hasTrial: own.has_trial ?? false,
    trialLabel: own.trial_label ?? dash,
    introOfferLabel: own.intro_offer_label ?? dash,
    renewalLabel: own.renewal_label ?? dash,
  }
}

/** Whole characters of at most so many bytes. */
function cut(text: string, bytesMax: number): string {
  let kept = ''
  for (const char of text) {
    if (Buffer.byteLength(kept + char) > bytesMax) break
    kept += char
  }
  return kept
}
