import type { JsonObject } from '../../events/index.ts'
import type {
  Evidence,
  MappedProduct,
  Ms,
  OutboxItem,
  PeriodAccess,
  PurchaseIdentity,
  Refused,
  Verdict,
  VerifiedPeriod,
  VerifiedTransaction,
} from '../types.ts'
import { usedUp } from '../used-up.ts'
import { type Chain, tokenKeyOf } from './chain.ts'
import { claimedItem } from './claims.ts'
import { acknowledgeBy, nextCheckAt } from './due.ts'
import { claimable, type PlayItem, type PlayPurchase } from './purchase.ts'

/** What a verdict is made of. */
export interface Reading {
  packageName: string
  token: string
  purchase: PlayPurchase
  /** For each line item the Product that it leads to. */
  mapped: (MappedProduct | null)[]
  chain: Chain
  /** The instant before the store was asked, by the wall clock. */
  readAt: Ms
  /** The same by the app's. */
  now: Ms
  leaseMs: number
  /** Orders that the store voided, and when. */
  voided: ReadonlyMap<string, Ms>
  /** Something of this token is stored already, from before it was consumed. */
  isKnown: boolean
}

type Wish = Pick<Evidence, 'claims' | 'consume'>

/** From what the store said to what we believe. Pure: every row of the decision table of Google Play is in here. */
export function interpret(reading: Reading, { claims, consume }: Wish): Verdict {
  const { purchase, chain, token, readAt, now, mapped } = reading
  const { items } = purchase
  if (items.length === 0 || items.some(({ standing }) => standing.kind === 'unsettled')) {
    return refused('reconciliation_retryable', 'unsettled')
  }
  if (namesTwoPredecessors(purchase)) return refused('conflict', 'two_predecessors')
  const item = claimedItem(claims, purchase, reading.packageName)
  if (item === null) return refused('invalid', 'contradicted')
  const meant = mapped[items.indexOf(item)]
  const evidenceKey = tokenKeyOf(token)
  const storeEnvironment = purchase.isTest ? 'sandbox' : 'production'
  if (!meant) {
    const unmapped = { storeEnvironment, evidenceKey, storeProductId: item.productId } as const
    return { ...refused('invalid', 'unmapped_product'), unmapped }
  }
  if (consume && !(meant.link.consumable && purchase.kind === 'one_time')) return refused('invalid', 'not_consumable')

  // What a purchase in the Play app continues says whose it is only where nothing nearer does.
  const continued = continuedBy(purchase)
  const transactions = transactionsOf(reading, evidenceKey)
  const consumedElsewhere = !reading.isKnown && items.every(({ isConsumed }) => isConsumed)
  return {
    kind: 'verified',
    purchase: {
      store: 'playstore',
      ...{ storeEnvironment, evidenceKey },
      rootKey: chain.rootKey,
      linkedKeys: [...chain.linked.map(({ key }) => key), ...(continued === null ? [] : [tokenKeyOf(continued)])],
      purchasedAt: purchase.startsAt ?? now,
      ...{ version: readAt, readAt, unpolled: false },
      accountToken: purchase.accountId,
      renewalAccountToken: purchase.outOfApp?.accountId ?? null,
      familyShared: false,
      status: consumedElsewhere ? usedUp : wordFor(purchase, transactions[0]?.periods ?? []),
      autoRenews: item.autoRenews,
      pendingProduct: null,
      nextCheckAt: nextCheckAt(purchase, now),
      transactions,
      consumedElsewhere,
      outbox: outboxOf(reading, { item, evidenceKey, consume }),
      result: identityOf(item, meant, purchase),
      extra: null,
    },
  }
}

/** Access that the store calls canceled is active until it ends. */
function wordFor({ status }: PlayPurchase, periods: readonly VerifiedPeriod[]): string {
  const accesses = periods.map(({ access }) => access)
  if (accesses.some(({ kind }) => kind === 'open')) return status === 'grace' ? 'grace' : 'active'
  const closed = accesses.find((access) => access.kind === 'closed')
  return closed?.detail ?? status
}

function refused(suffix: Refused['suffix'], detail: string): Refused {
  return { kind: 'refused', suffix, detail }
}

/** A plan change and a purchase in the Play app cannot both be where one token comes from. */
function namesTwoPredecessors({ linkedToken, outOfApp }: PlayPurchase): boolean {
  return linkedToken !== null && (outOfApp?.token ?? linkedToken) !== linkedToken
}

/** A purchase that is not paid, or never was, replaces nothing yet. */
const unpaid: ReadonlySet<string> = new Set(['pending', 'pending_canceled'])

function transactionsOf(reading: Reading, evidenceKey: string): VerifiedTransaction[] {
  const { token, purchase, chain, readAt } = reading
  const own = { evidenceKey, version: readAt, token, supersededBy: null, claims: claimsOf(purchase) }
  const replaced = unpaid.has(purchase.status) ? [] : chain.linked
  // It has expired, says the store, whenever we hear that of itself: what it still had to give begins no later period.
  const continued = unpaid.has(purchase.status) ? null : continuedBy(purchase)
  return [
    { ...own, periods: periodsOf(reading) },
    ...replaced.map(({ key, token: old }, i) => ({
      evidenceKey: key,
      version: readAt,
      token: old,
      supersededBy: chain.linked[i - 1]?.key ?? evidenceKey,
      ...{ periods: [], claims: {} },
    })),
    ...(continued === null || chain.linked.some((link) => link.token === continued)
      ? []
      : [
          {
            ...{ evidenceKey: tokenKeyOf(continued), version: readAt, token: continued, supersededBy: evidenceKey },
            ...{ periods: [], claims: {} },
          },
        ]),
  ]
}

/** The expired purchase that one in the Play app goes on from. */
function continuedBy({ accountId, outOfApp }: PlayPurchase): string | null {
  return accountId === null ? (outOfApp?.token ?? null) : null
}

function periodsOf(reading: Reading): VerifiedPeriod[] {
  const { purchase, mapped, now } = reading
  return purchase.items.flatMap((item, i): VerifiedPeriod[] => {
    const found = mapped[i]
    if (!found) return []
    const { productId, basePlanId, purchaseOptionId, offerId, orderId, expiresAt, quantity, refundable } = item
    return [
      {
        ...{ storeProductId: productId, basePlanId, purchaseOptionId, offerId, orderId },
        line: productId,
        key: periodKeyOf(item, purchase),
        type: purchase.kind,
        consumable: found.link.consumable && purchase.kind === 'one_time',
        mapped: found,
        quantity,
        refundedQuantity: quantity - refundable,
        startsAt: purchase.startsAt ?? now,
        paidUntil: expiresAt,
        inGrace: purchase.status === 'grace',
        prepaid: item.isPrepaid,
        access: accessOf(item, reading),
      },
    ]
  })
}

/** Every order of a subscription is a period of its own; what is bought once has one. Promo codes have no order. */
function periodKeyOf({ orderId }: PlayItem, { kind }: PlayPurchase): string {
  return kind === 'one_time' ? 'once' : (orderId ?? 'promo')
}

function accessOf(
  { standing, orderId, isRefunded }: PlayItem,
  { purchase, voided, leaseMs, now }: Reading,
): PeriodAccess {
  const voidedAt = orderId === null ? undefined : voided.get(orderId)
  // Of what was bought once the state says it too, in a word of its own.
  const isTold = purchase.kind === 'one_time' && standing.kind === 'none'
  if (voidedAt !== undefined) return closed(isTold ? standing.detail : 'revoked', voidedAt)
  switch (standing.kind) {
    case 'access':
      return {
        kind: 'open',
        until: standing.isLate && standing.until !== null ? standing.until + leaseMs : standing.until,
      }
    case 'none':
      return isRefunded ? closed(standing.detail, now) : closed(standing.detail, null)
    case 'unsettled':
      throw new Error('an unsettled purchase has no periods')
  }
}

function closed(detail: Extract<PeriodAccess, { kind: 'closed' }>['detail'], refundedAt: Ms | null): PeriodAccess {
  const revocation = refundedAt === null ? null : ({ at: refundedAt, reason: null, share: 1, kind: 'refund' } as const)
  return { kind: 'closed', detail, claim: revocation === null && claimable.has(detail), revocation }
}

/** Nothing is acknowledged that gives nothing: the outbox is written with the grants, or not at all. */
function outboxOf(
  { purchase }: Reading,
  { item, evidenceKey, consume }: { item: PlayItem; evidenceKey: string; consume: boolean },
): OutboxItem[] {
  const payload = { productId: item.productId, kind: purchase.kind }
  const of = (kind: OutboxItem['kind']) => ({
    kind,
    key: evidenceKey,
    payload,
    deadline: acknowledgeBy(purchase, item),
  })
  if (item.standing.kind !== 'access') return []
  if (consume) return item.isConsumed ? [] : [of('consume')]
  return purchase.isAcknowledged ? [] : [of('ack')]
}

/** The only place that says how a purchase is called on the wire: consumables are one-time purchases too. */
function identityOf(item: PlayItem, { product }: MappedProduct, { kind }: PlayPurchase): PurchaseIdentity {
  return {
    ...(item.orderId === null ? {} : { orderId: item.orderId }),
    catalogProduct: {
      id: product.publicId,
      store_product_id: item.productId,
      base_plan_id: item.basePlanId,
      purchase_option_id: item.purchaseOptionId,
      offer_id: item.offerId,
      store_product_type: kind,
    },
  }
}

/** What is kept of the store's answer. No token is in it. */
function claimsOf({ kind, status, isTest, isAcknowledged, startsAt, items }: PlayPurchase): JsonObject {
  return {
    ...{ kind, status, isTest, isAcknowledged, startsAt },
    items: items.map((item) => ({
      ...{ productId: item.productId, basePlanId: item.basePlanId, purchaseOptionId: item.purchaseOptionId },
      ...{ offerId: item.offerId, orderId: item.orderId, expiresAt: item.expiresAt, autoRenews: item.autoRenews },
      ...{
        isPrepaid: item.isPrepaid,
        quantity: item.quantity,
        refundable: item.refundable,
        isConsumed: item.isConsumed,
      },
    })),
  }
}
