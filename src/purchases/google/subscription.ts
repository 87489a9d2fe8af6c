import { storeLinesMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'
import { type Fields, flag, instantOrNull, list, object, objectOrNull, text, textOrNull, Unreadable } from './fields.ts'
import type { PlayItem, PlayPurchase, Standing } from './purchase.ts'

/**
 * A SubscriptionPurchaseV2 as a purchase, judged at `now`. Pure. Throws `Unreadable` for what is none.
 * Source: the resource purchases.subscriptionsv2 of the Android Publisher API, v3.
 */
export function readSubscription(body: unknown, now: Ms): PlayPurchase {
  const answer = object(body)
  const state = stateOf(answer.subscriptionState)
  const lines = list(answer.lineItems ?? []).map(object)
  if (lines.length > storeLinesMax) throw new Unreadable('it has too many line items')
  const owned = lines.filter((line) => isOwned(line, lines))
  // While any item runs on, one that ended has ended; when none does, the store is late with a renewal.
  const isLate = owned.every((line) => (instantOrNull(line.expiryTime) ?? 0) <= now)
  const account = objectOrNull(answer.externalAccountIdentifiers)
  return {
    kind: 'subscription',
    status: state,
    isTest: objectOrNull(answer.testPurchase) !== null,
    accountId: textOrNull(account?.obfuscatedExternalAccountId),
    linkedToken: textOrNull(answer.linkedPurchaseToken),
    outOfApp: outOfAppOf(answer.outOfAppPurchaseContext),
    isAcknowledged: answer.acknowledgementState === 'ACKNOWLEDGEMENT_STATE_ACKNOWLEDGED',
    startsAt: instantOrNull(answer.startTime),
    // What nobody owns yet still says what is being bought: a pending purchase has no order.
    items: (owned.length > 0 ? owned : lines).map((line) => itemOf(line, state, { now, isLate })),
  }
}

type State =
  | 'active'
  | 'grace'
  | 'canceled'
  | 'expired'
  | 'hold'
  | 'paused'
  | 'pending'
  | 'pending_canceled'
  | 'unknown'

const states = new Map<unknown, State>([
  ['SUBSCRIPTION_STATE_ACTIVE', 'active'],
  ['SUBSCRIPTION_STATE_IN_GRACE_PERIOD', 'grace'],
  ['SUBSCRIPTION_STATE_CANCELED', 'canceled'],
  ['SUBSCRIPTION_STATE_EXPIRED', 'expired'],
  ['SUBSCRIPTION_STATE_ON_HOLD', 'hold'],
  ['SUBSCRIPTION_STATE_PAUSED', 'paused'],
  ['SUBSCRIPTION_STATE_PENDING', 'pending'],
  ['SUBSCRIPTION_STATE_PENDING_PURCHASE_CANCELED', 'pending_canceled'],
])

function stateOf(value: unknown): State {
  return states.get(value) ?? 'unknown'
}

/** An item that a deferred change will bring has neither an end nor an order yet; a promo code never has an order. */
function isOwned(line: Fields, lines: Fields[]): boolean {
  const productId = text(line.productId)
  const isDeferred = lines.some((other) => objectOrNull(other.deferredItemReplacement)?.productId === productId)
  const isPaid = textOrNull(line.latestSuccessfulOrderId) !== null || objectOrNull(line.signupPromotion) !== null
  return !isDeferred && isPaid && textOrNull(line.expiryTime) !== null
}

function itemOf(line: Fields, state: State, at: { now: Ms; isLate: boolean }): PlayItem {
  const offer = objectOrNull(line.offerDetails)
  const renewing = objectOrNull(line.autoRenewingPlan)
  const expiresAt = instantOrNull(line.expiryTime)
  return {
    productId: text(line.productId),
    basePlanId: textOrNull(offer?.basePlanId),
    purchaseOptionId: null,
    offerId: textOrNull(offer?.offerId),
    orderId: textOrNull(line.latestSuccessfulOrderId),
    expiresAt,
    autoRenews: renewing && flag(renewing.autoRenewEnabled),
    isPrepaid: objectOrNull(line.prepaidPlan) !== null,
    ...{ quantity: 1, refundable: 1, isConsumed: false, isRefunded: false },
    standing: standingOf(state, expiresAt, at),
  }
}

/** The decision table, per line item. */
function standingOf(state: State, until: Ms | null, { now, isLate }: { now: Ms; isLate: boolean }): Standing {
  switch (state) {
    case 'active':
      if (until === null) return { kind: 'unsettled' }
      if (until > now) return { kind: 'access', until, isLate: false }
      return isLate ? { kind: 'access', until, isLate: true } : { kind: 'none', detail: 'expired' }
    case 'grace':
      // Google moves the end of grace forward: one that is past is about to become another state.
      return until !== null && until > now ? { kind: 'access', until, isLate: false } : { kind: 'unsettled' }
    case 'canceled':
      return until !== null && until > now
        ? { kind: 'access', until, isLate: false }
        : { kind: 'none', detail: 'expired' }
    case 'expired':
      return { kind: 'none', detail: 'expired' }
    case 'hold':
      return { kind: 'none', detail: 'on_hold' }
    case 'paused':
      return { kind: 'none', detail: 'paused' }
    case 'pending':
      return { kind: 'none', detail: 'purchase_pending' }
    case 'pending_canceled':
      return { kind: 'none', detail: 'purchase_canceled' }
    case 'unknown':
      return { kind: 'unsettled' }
  }
}

function outOfAppOf(value: unknown): PlayPurchase['outOfApp'] {
  const context = objectOrNull(value)
  if (context === null) return null
  const expired = objectOrNull(context.expiredExternalAccountIdentifiers)
  return {
    accountId: textOrNull(expired?.obfuscatedExternalAccountId),
    token: textOrNull(context.expiredPurchaseToken),
  }
}
