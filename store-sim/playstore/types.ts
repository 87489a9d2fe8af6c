import { type Static, Type } from 'typebox'
import type { AppBase } from '../world.ts'

const id = Type.String({ minLength: 1, maxLength: 200 })
const period = Type.String({ pattern: '^P[0-9YMWDTHS]+$' })
const strict = { additionalProperties: false }

/** In units and nanos, as Google writes money. */
const money = Type.Object(
  {
    currencyCode: Type.String({ pattern: '^[A-Z]{3}$' }),
    units: Type.String({ pattern: '^\\d+$' }),
    nanos: Type.Integer(),
  },
  strict,
)

const basePlan = Type.Object(
  {
    id,
    period,
    price: money,
    prepaid: Type.Optional(Type.Boolean()),
    grace: Type.Optional(period),
    hold: Type.Optional(period),
    offers: Type.Optional(
      Type.Array(Type.Object({ id, phase: Type.Enum(['free_trial', 'introductory']), period }, strict)),
    ),
  },
  strict,
)

const purchaseOption = Type.Object(
  {
    id,
    price: money,
    kind: Type.Optional(Type.Enum(['buy', 'rent', 'preorder'])),
    offers: Type.Optional(Type.Array(id)),
  },
  strict,
)

export const playProductShape = Type.Union([
  Type.Object(
    { productId: id, type: Type.Literal('subscription'), basePlans: Type.Array(basePlan, { minItems: 1 }) },
    strict,
  ),
  Type.Object(
    { productId: id, type: Type.Literal('one_time'), purchaseOptions: Type.Array(purchaseOption, { minItems: 1 }) },
    strict,
  ),
])
export type PlayProduct = Static<typeof playProductShape>
export type BasePlan = Static<typeof basePlan>
export type PurchaseOption = Static<typeof purchaseOption>
export type Money = Static<typeof money>

export interface PlayApp extends AppBase {
  store: 'playstore'
  products: PlayProduct[]
  subscriptions: Subscription[]
  oneTimes: OneTime[]
  voided: Voided[]
}

export interface PlayPurchaseBase {
  /** The simulator's name for it: tokens are too long for paths that people write. */
  id: string
  token: string
  account: string
  boughtAt: number
  isTest: boolean
  accountToken: string | null
  acknowledgedAt: number | null
  /** Not acknowledged until then: refunded and revoked. Null: nothing to acknowledge. */
  acknowledgeBy: number | null
}

export type SubscriptionState =
  | 'PENDING'
  | 'PENDING_PURCHASE_CANCELED'
  | 'ACTIVE'
  | 'IN_GRACE_PERIOD'
  | 'ON_HOLD'
  | 'PAUSED'
  | 'CANCELED'
  | 'EXPIRED'

export interface Subscription extends PlayPurchaseBase {
  state: SubscriptionState
  items: Item[]
  orders: Order[]
  linkedToken: string | null
  card: 'good' | 'declined'
  autoRenew: boolean
  canceled: { kind: 'user' | 'system' | 'developer' | 'replacement'; at: number } | null
  graceUntil: number | null
  holdUntil: number | null
  /** Paused from the end of the period on. */
  pause: { from: number; until: number } | null
  /** Replaced: still reads ACTIVE until then. */
  replacedAt: number | null
  expiredAt: number | null
  outOfApp: { token: string; accountToken: string | null } | null
  /** Applied with the first renewal after it was accepted. */
  priceIncrease: { newPrice: Money; accepted: boolean; applied: boolean } | null
  /** By a promo code: its first period has no order. */
  promoCode: boolean
}

export interface Item {
  productId: string
  basePlanId: string
  offerId: string | null
  /** Null: not owned yet. */
  expiresAt: number | null
  latestOrderId: string | null
  deferredTo: string | null
}

export interface OneTime extends PlayPurchaseBase {
  productId: string
  purchaseOptionId: string
  offerId: string | null
  quantity: number
  refundableQuantity: number
  state: 'PENDING' | 'PURCHASED' | 'CANCELLED'
  consumed: boolean
  completedAt: number | null
  orders: Order[]
}

export interface Order {
  id: string
  at: number
  productId: string
  price: Money
  /** The period paid, of subscriptions. */
  from: number
  until: number | null
  state: 'PROCESSED' | 'PARTIALLY_REFUNDED' | 'REFUNDED'
}

export interface Voided {
  token: string
  orderId: string
  purchasedAt: number
  at: number
  source: 0 | 1 | 2
  reason: number
  /** Of a partial refund by quantity. */
  quantity: number | null
  kind: 'subscription' | 'one_time'
}

export const playPurchaseShape = Type.Object(
  {
    app: Type.Optional(id),
    account: id,
    productId: id,
    basePlanId: Type.Optional(id),
    purchaseOptionId: Type.Optional(id),
    offer: Type.Optional(id),
    quantity: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    accountToken: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    /** Instead of accountToken: the distinct id that a device of the connected app makes it from. */
    customer: Type.Optional(Type.String({ minLength: 1, maxLength: 1024 })),
    pending: Type.Optional(Type.Boolean()),
    /** Subscriptions bought together with it, under one token. */
    addOns: Type.Optional(Type.Array(id, { maxItems: 10 })),
    /** A promo code: there is no order, of a subscription for its first period. */
    promoCode: Type.Optional(Type.Boolean()),
    tokenLength: Type.Optional(Type.Integer({ minimum: 60, maximum: 16_384 })),
    /** By a license tester, as Play marks it; false for a real one. */
    test: Type.Optional(Type.Boolean()),
  },
  strict,
)
export type PlayPurchase = Static<typeof playPurchaseShape>
