import { type Static, Type } from 'typebox'
import type { AppBase } from '../world.ts'

const id = Type.String({ minLength: 1, maxLength: 200 })
const period = Type.String({ pattern: '^P[0-9YMWDTHS]+$' })

export const appleProductShape = Type.Object(
  {
    productId: id,
    type: Type.Enum(['subscription', 'consumable', 'non_consumable', 'non_renewing']),
    /** In thousandths of the currency's unit. */
    price: Type.Optional(Type.Integer({ minimum: 0 })),
    currency: Type.Optional(Type.String({ pattern: '^[A-Z]{3}$' })),
    group: Type.Optional(id),
    /** 1 is the highest service. */
    level: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    period: Type.Optional(period),
    grace: Type.Optional(period),
    familySharing: Type.Optional(Type.Boolean()),
    offers: Type.Optional(
      Type.Array(
        Type.Object(
          {
            id,
            type: Type.Enum(['intro', 'promo', 'code', 'win_back']),
            mode: Type.Enum(['free_trial', 'pay_as_you_go', 'pay_up_front']),
            period,
            price: Type.Optional(Type.Integer({ minimum: 0 })),
          },
          { additionalProperties: false },
        ),
      ),
    ),
  },
  { additionalProperties: false },
)
export type AppleProduct = Static<typeof appleProductShape>
export type AppleOffer = NonNullable<AppleProduct['offers']>[number]

export interface AppleApp extends AppBase {
  store: 'appstore'
  appAppleId: number
  products: AppleProduct[]
  lineages: Lineage[]
  pending: PendingPurchase[]
  /** Intro tokens serve once. */
  spentNonces: string[]
}

const environments = ['Sandbox', 'Production', 'Xcode', 'LocalTesting'] as const
export type AppleEnvironment = (typeof environments)[number]

/** On the developer's own machine: signed by Xcode, and the App Store never hears of it. */
export function isOfXcode(environment: unknown): boolean {
  return environment === 'Xcode' || environment === 'LocalTesting'
}

/** All transactions with one original transaction id: one purchase with its renewals, or a one-time purchase. */
export interface Lineage {
  id: string
  account: string
  /** Another account's, shared with this one. */
  sharedFrom: string | null
  environment: AppleEnvironment
  group: string | null
  boughtAt: number
  /** Oldest first; the last one is the present period. */
  transactions: Transaction[]
  renewal: Renewal | null
}

export interface Renewal {
  status: 'active' | 'grace' | 'retry' | 'expired' | 'revoked'
  autoRenew: boolean
  /** What renews next: another product after a downgrade. */
  productId: string
  card: 'good' | 'declined'
  graceUntil: number | null
  /** When trying the card again ends. */
  retryUntil: number | null
  expirationIntent: number | null
  priceIncrease: 'none' | 'pending' | 'accepted'
  price: number
  extensions: number
}

export interface Transaction {
  id: string
  webOrderLineItemId: string | null
  orderId: string
  productId: string
  purchasedAt: number
  expiresAt: number | null
  quantity: number
  reason: 'PURCHASE' | 'RENEWAL'
  price: number
  currency: string
  accountToken: string | null
  offer: AppleOffer | null
  isUpgraded: boolean
  finished: boolean
  /** In a family's lineage: the transaction of whoever paid. */
  mirrors: string | null
  revocation: { at: number; reason: 0 | 1; type: string; milliPercent: number | null } | null
}

export interface PendingPurchase {
  id: string
  purchase: ApplePurchase
  declined: boolean
}

export const applePurchaseShape = Type.Object(
  {
    app: Type.Optional(id),
    account: id,
    productId: id,
    offer: Type.Optional(id),
    quantity: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    accountToken: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    /** Instead of accountToken: the distinct id that a device of the connected app makes it from. */
    customer: Type.Optional(Type.String({ minLength: 1, maxLength: 1024 })),
    /** The accounts of the family it is shared with. */
    family: Type.Optional(Type.Array(id, { maxItems: 5 })),
    pending: Type.Optional(Type.Boolean()),
    introToken: Type.Optional(Type.String({ minLength: 1, maxLength: 8192 })),
    environment: Type.Optional(Type.Enum(environments)),
    signing: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
export type ApplePurchase = Static<typeof applePurchaseShape>

export const statusNumbers = { active: 1, expired: 2, retry: 3, grace: 4, revoked: 5 } as const
