import type { Cost, Feature } from '../types.ts'
import type { FeatureStatus } from './catalogue-store.ts'
import type { Interval } from './grant-terms.ts'

/** A Feature as its author sees it. */
export interface FeatureRecord extends Feature {
  scopeId: number
  status: FeatureStatus
  /** Of a credit system, by member key; empty for the others. */
  costs: FeatureCost[]
  createdAt: Date
  updatedAt: Date
}

export interface FeatureCost extends Cost {
  /** Key of the member. */
  feature: string
}

export type ProductType = 'subscription' | 'one_time'

export type ProductStatus = 'active' | 'archived'

/** What a Product gives of one Feature. This very JSON is stored; a grant copies its terms when it is made. */
export interface GrantTemplate {
  /** Key of a published Feature. */
  feature: string
  /** 0 to 2^53 − 1 in units of the Feature; null for a boolean one and with `unlimited`. */
  allowance: number | null
  unlimited: boolean
  interval: Interval | null
  /** For each entity of the customer instead of all together. */
  entity_scoped: boolean
  /** With `entity_scoped`: the first so many entities get theirs by using the Feature. Absent or 0: registered ones only. */
  max_entities?: number
  rollover: { max: number | null; periods: number | null } | null
}

/** A store product that leads to the Product. */
export interface StoreLink {
  store: 'appstore' | 'playstore' | 'stripe'
  /** Of Stripe the id of a price. */
  productId: string
  basePlanId: string | null
  purchaseOptionId: string | null
  offerId: string | null
  /** Play only: it may be consumed and bought again. */
  consumable: boolean
  /** App Store only: how long a non-renewing subscription lasts, ISO 8601. Apple sends no end. */
  duration: string | null
  /** App Store only: members of a family get it too. */
  familySharing: boolean
}

/**
 * What a device shows of the Product until its store has answered. What is left out is a placeholder. This very JSON is
 * stored.
 */
export interface ProductPreview {
  name?: string
  description?: string
  price?: string
  period?: string
  period_label?: string
  period_count?: number
  has_trial?: boolean
  trial_label?: string
  intro_offer_label?: string
  renewal_label?: string
}

export interface ProductRecord {
  scopeId: number
  publicId: string
  key: string
  name: string
  type: ProductType
  grants: GrantTemplate[]
  stores: StoreLink[]
  preview: ProductPreview | null
  status: ProductStatus
  createdAt: Date
  updatedAt: Date
}
