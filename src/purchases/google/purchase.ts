import type { Ms, Unsupported } from '../types.ts'
import type { PlayKind } from './play-api.ts'

/** What Google Play says about one purchase token, whichever of its two kinds of purchase that is. */
export interface PlayPurchase {
  kind: PlayKind
  /** The store's word for the whole, shortened: active, grace, canceled … */
  status: string
  /** Bought by a license tester, at no cost. */
  isTest: boolean
  /** The hash of a distinct id that the app gave the store; absent when it gave none. */
  accountId: string | null
  /** The token that this one replaces. */
  linkedToken: string | null
  /** Of a purchase made in the Play app; gone once it is acknowledged. */
  outOfApp: { accountId: string | null; token: string | null } | null
  isAcknowledged: boolean
  startsAt: Ms | null
  items: PlayItem[]
}

export interface PlayItem {
  productId: string
  basePlanId: string | null
  purchaseOptionId: string | null
  offerId: string | null
  /** Null for promo codes: never a key. */
  orderId: string | null
  /** Of a subscription. */
  expiresAt: Ms | null
  autoRenews: boolean | null
  isPrepaid: boolean
  /** As bought. */
  quantity: number
  /** Of it, not refunded. */
  refundable: number
  isConsumed: boolean
  /** Bought, and given back whole. */
  isRefunded: boolean
  standing: Standing
}

/** What a line item gives, before ownership. `until` null is without end. */
export type Standing =
  | { kind: 'access'; until: Ms | null; isLate: boolean }
  | { kind: 'none'; detail: PlayDetail }
  /** The store has not made up its mind: what we hold stays as it is. */
  | { kind: 'unsettled' }

export type PlayDetail = Extract<
  Unsupported,
  'expired' | 'on_hold' | 'paused' | 'purchase_pending' | 'purchase_canceled' | 'preorder' | 'rental'
>

/** Those that may still become access with no client call: who claims them is remembered. */
export const claimable: ReadonlySet<Unsupported> = new Set<PlayDetail>(['on_hold', 'paused', 'purchase_pending'])
