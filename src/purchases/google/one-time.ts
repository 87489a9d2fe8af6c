import { storeLinesMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'
import {
  countOr,
  type Fields,
  instantOrNull,
  list,
  object,
  objectOrNull,
  text,
  textOrNull,
  Unreadable,
} from './fields.ts'
import type { PlayItem, PlayPurchase, Standing } from './purchase.ts'

/**
 * A ProductPurchaseV2 as a purchase. Pure. Throws `Unreadable` for what is none.
 * Source: the resource purchases.productsv2 of the Android Publisher API, v3.
 */
export function readOneTime(body: unknown, now: Ms): PlayPurchase {
  const answer = object(body)
  const state = objectOrNull(answer.purchaseStateContext)?.purchaseState
  const lines = list(answer.productLineItem ?? []).map(object)
  if (lines.length > storeLinesMax) throw new Unreadable('it has too many line items')
  const paidAt = instantOrNull(answer.purchaseCompletionTime)
  const orderId = textOrNull(answer.orderId)
  return {
    kind: 'one_time',
    status: typeof state === 'string' ? state.toLowerCase().slice(0, 40) : 'unknown',
    isTest: objectOrNull(answer.testPurchaseContext) !== null,
    accountId: textOrNull(answer.obfuscatedExternalAccountId),
    ...{ linkedToken: null, outOfApp: null },
    isAcknowledged: answer.acknowledgementState === 'ACKNOWLEDGEMENT_STATE_ACKNOWLEDGED',
    startsAt: paidAt,
    items: lines.map((line) => itemOf(line, { state, orderId, isPaid: paidAt !== null && paidAt <= now })),
  }
}

interface Whole {
  state: unknown
  orderId: string | null
  isPaid: boolean
}

function itemOf(line: Fields, whole: Whole): PlayItem {
  const offer = objectOrNull(line.productOfferDetails)
  const quantity = Math.max(1, countOr(offer?.quantity, 1))
  return {
    productId: text(line.productId),
    basePlanId: null,
    purchaseOptionId: textOrNull(offer?.purchaseOptionId),
    offerId: textOrNull(offer?.offerId),
    orderId: whole.orderId,
    ...{ expiresAt: null, autoRenews: null, isPrepaid: false },
    quantity,
    refundable: Math.min(quantity, countOr(offer?.refundableQuantity, quantity)),
    isRefunded: whole.state === 'CANCELLED' || offer?.refundableQuantity === 0,
    isConsumed: offer?.consumptionState === 'CONSUMPTION_STATE_CONSUMED',
    standing: standingOf(whole, offer),
  }
}

/** The decision table. */
function standingOf({ state, isPaid }: Whole, offer: Fields | null): Standing {
  switch (state) {
    case 'PURCHASED':
      // Refunded whole, though the store did not take it back.
      if (offer?.refundableQuantity === 0) return { kind: 'none', detail: 'purchase_canceled' }
      if (objectOrNull(offer?.rentOfferDetails) !== null) return { kind: 'none', detail: 'rental' }
      // A preorder is paid when it is released.
      if (objectOrNull(offer?.preorderOfferDetails) !== null && !isPaid) return { kind: 'none', detail: 'preorder' }
      return { kind: 'access', until: null, isLate: false }
    case 'PENDING':
      return { kind: 'none', detail: 'purchase_pending' }
    case 'CANCELLED':
      return { kind: 'none', detail: 'purchase_canceled' }
    default:
      return { kind: 'unsettled' }
  }
}
