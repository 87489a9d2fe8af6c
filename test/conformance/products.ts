import {
  type At,
  also,
  areDistinct,
  asc,
  ascending,
  type Check,
  exact,
  flag,
  hold,
  integer,
  into,
  is,
  isObject,
  list,
  nullOr,
  number,
  type Of,
  rid,
  utf8,
} from './check.ts'

const atMost = { max: 256 }
export const intervals = [
  ...(['lifetime', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'semiAnnual', 'year'] as const),
]
const productType = is('subscription', 'consumable', 'nonConsumable')

const appleStore = exact({
  platform: is('apple_app_store'),
  productId: utf8(256),
  productType: is('autoRenewable', 'nonRenewing', 'consumable', 'nonConsumable'),
})
const googleStore = exact(
  { platform: is('google_play'), productId: utf8(256), productType },
  { basePlanId: utf8(256), purchaseOptionId: utf8(256) },
)
type Store = Of<typeof appleStore> | Of<typeof googleStore>

const store: Check<Store> = (value, at): value is Store =>
  (isObject(value) && value.platform === 'google_play' ? googleStore : appleStore)(value, at)

const preview = exact({
  name: utf8(512),
  description: utf8(2048),
  price: utf8(128),
  period: utf8(64),
  periodLabel: utf8(128),
  trialLabel: utf8(256),
  introOfferLabel: utf8(256),
  renewalLabel: utf8(256),
  periodCount: integer(0, 10_000),
  hasTrial: flag,
})

const entitlement = exact({
  id: rid,
  featureId: nullOr(rid),
  featureExternalId: nullOr(utf8(256)),
  purchaseUsageFeatureIds: asc(utf8(256), atMost),
  allowanceType: nullOr(is('fixed', 'unlimited')),
  allowance: nullOr(number(0)),
  interval: nullOr(is(...intervals)),
})

const product = exact({
  id: rid,
  type: productType,
  store,
  preview,
  entitlements: ascending(list(entitlement, atMost), (each) => each.id, 'id'),
})
type Product = Of<typeof product>
const consistent = also(product, ({ type, store: sold }, at) => checkStore(type, sold, into(at, 'store')))

export const products = also(
  ascending(list(consistent, atMost), (each) => each.id, 'id'),
  (all, at) => hold(at, areDistinct(all.map((each) => identityOf(each.store))), 'sells each store product once'),
)

const placement = exact(
  { id: rid, productId: rid },
  {
    appStore: exact({
      introEligibility: is('automatic', 'alwaysEligible', 'alwaysIneligible'),
      billingPlan: is('default', 'upFront', 'monthly'),
    }),
    googlePlay: exact({ offerId: utf8(256) }),
  },
)
export const placements = ascending(list(placement, atMost), (each) => each.id, 'id')

/** Each placement sells a product of the release, with an offer of its own store only. */
export function checkPlacements(sold: readonly Product[], all: Of<typeof placements>, at: At): void {
  all.forEach(({ productId, googlePlay }, index) => {
    const of = sold.find((each) => each.id === productId)
    const here = into(at, index)
    hold(into(here, 'productId'), of !== undefined, 'is a product of the release')
    const fits = googlePlay === undefined || of?.store.platform === 'google_play'
    hold(into(here, 'googlePlay'), fits, 'belongs to a Google product')
  })
}

function checkStore(type: Product['type'], sold: Store, at: At): void {
  if (sold.platform === 'apple_app_store') {
    const ofSubscription = sold.productType === 'autoRenewable' || sold.productType === 'nonRenewing'
    const fits = type === 'subscription' ? ofSubscription : sold.productType === type
    hold(into(at, 'productType'), fits, 'agrees with the type of the product')
    return
  }
  hold(into(at, 'productType'), sold.productType === type, 'is the type of the product')
  hold(
    into(at, 'basePlanId'),
    (sold.basePlanId !== undefined) === (type === 'subscription'),
    'is there exactly for a subscription',
  )
  hold(
    into(at, 'purchaseOptionId'),
    sold.purchaseOptionId === undefined || type !== 'subscription',
    'is not for a subscription',
  )
}

function identityOf(sold: Store): string {
  const more = sold.platform === 'google_play' ? [sold.basePlanId ?? null, sold.purchaseOptionId ?? null] : []
  return JSON.stringify([sold.platform, sold.productId, ...more])
}
