import type { Platform } from '../../tenancy/index.ts'

/** A Product as drafts may sell it: a copy of what the catalogue says now. */
export interface CatalogueProduct {
  id: string
  type: 'subscription' | 'one_time'
  /** It may be bought again and again. */
  isConsumable: boolean
  stores: StoreLink[]
  preview: Preview
  entitlements: Entitlement[]
}

export interface StoreLink {
  store: 'appstore' | 'playstore' | 'stripe'
  productId: string
  basePlanId: string | null
  purchaseOptionId: string | null
  offerId: string | null
  /** App Store only: how long a subscription lasts that does not renew. */
  duration?: string | null
}

/** What a device shows until its store has answered. Clients take no empty text. */
export interface Preview {
  name: string
  description: string
  price: string
  period: string
  periodLabel: string
  periodCount: number
  hasTrial: boolean
  trialLabel: string
  introOfferLabel: string
  renewalLabel: string
}

export interface Entitlement {
  id: string
  featureId: string | null
  featureExternalId: string | null
  purchaseUsageFeatureIds: string[]
  allowanceType: 'fixed' | 'unlimited' | null
  allowance: number | null
  interval: string | null
}

const storeOf: Partial<Record<Platform, StoreLink['store']>> = { ios: 'appstore', android: 'playstore' }

/** The link that devices of the platform buy by: without an offer before one with it. Undefined when there is none. */
export function linkFor({ type, stores }: CatalogueProduct, platform: Platform): StoreLink | undefined {
  const fitting = stores.filter(({ store, productId, basePlanId, purchaseOptionId, offerId }) => {
    const ids = [productId, basePlanId, purchaseOptionId, offerId]
    if (store !== storeOf[platform] || !ids.every((one) => one === null || Buffer.byteLength(one) <= 256)) return false
    if (store === 'appstore') return true
    // What clients take: a subscription has a base plan and no purchase option, anything else has no base plan.
    return type === 'subscription' ? basePlanId !== null && purchaseOptionId === null : basePlanId === null
  })
  return fitting.find(({ offerId }) => offerId === null) ?? fitting[0]
}

/** As descriptors carry it; null where the platform cannot sell it. */
export function productFor(product: CatalogueProduct, platform: Platform): object | null {
  const link = linkFor(product, platform)
  if (!link) return null
  const { id, preview, entitlements } = product
  const oneTime = product.isConsumable ? 'consumable' : 'nonConsumable'
  const type = product.type === 'subscription' ? 'subscription' : oneTime
  return { id, type, store: storeFor(link, type), preview, entitlements }
}

function storeFor({ store, productId, basePlanId, purchaseOptionId, duration }: StoreLink, type: string): object {
  if (store === 'appstore') {
    const subscription = duration == null ? 'autoRenewable' : 'nonRenewing'
    const productType = type === 'subscription' ? subscription : type
    return { platform: 'apple_app_store', productId, productType }
  }
  return {
    ...{ platform: 'google_play', productId, productType: type },
    ...(basePlanId === null ? {} : { basePlanId }),
    ...(purchaseOptionId === null ? {} : { purchaseOptionId }),
  }
}
