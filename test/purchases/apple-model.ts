import type { JsonObject } from '../../src/events/index.ts'
import type { TransactionClaims } from '../../src/purchases/apple/claims.ts'

const dayMs = 24 * 3600_000
const monthMs = 30 * dayMs
export const graceMs = 6 * dayMs

/** What happens to a subscription next; `days` says how long it takes, or when in the period it is. */
export interface Step {
  kind:
    | 'renew'
    | 'grace'
    | 'retry'
    | 'cancel'
    | 'resubscribe'
    | 'upgrade'
    | 'downgrade'
    | 'refund'
    | 'refund_before'
    | 'reverse'
    | 'extend'
  days: number
}

/** How the App Store would show all of it from `at` on. */
interface Moment {
  at: number
  status: number
  /** Renewal info, but for its signing. */
  info: JsonObject
  /** In the order in which they were bought: the last one is the newest. They are signed anew whenever they are read. */
  transactions: TransactionClaims[]
  /** What its notification carries: the newest, but for refunds. */
  about: number
}

/** One subscription of `ada` from its purchase until `end`. */
export interface History {
  moments: Moment[]
  /** What is paid, and not refunded or upgraded, at the very end. */
  paidAtEnd: boolean
  /** Every transaction, and until when it pays. */
  paid: Map<string, { until: number }>
}

interface Bought {
  id: string
  product: string
  from: number
  until: number
  revokedAt: number | null
  isUpgraded: boolean
}

/** Builds the history of a subscription group. Pure. */
export function historyOf(
  name: string,
  steps: readonly Step[],
  { begins, end, accountToken }: { begins: number; end: number; accountToken: string },
): History {
  const moments: Moment[] = []
  const bought: Bought[] = []
  let product = 'monthly'
  let nextProduct = product
  let renews = true
  let status = 1
  let graceUntil: number | null = null
  let at = begins
  let refunded: Bought | null = null

  const newest = () => bought.at(-1) as Bought // one is bought before anybody asks
  const claimsOf = ({ id, product: productId, from, until, revokedAt, isUpgraded }: Bought): TransactionClaims => ({
    ...{ transactionId: id, originalTransactionId: `${name}-0`, bundleId: 'com.example.app', productId },
    ...{ type: 'Auto-Renewable Subscription', purchaseDate: from, expiresDate: until, environment: 'Sandbox' },
    ...{
      signedDate: from,
      inAppOwnershipType: 'PURCHASED',
      appAccountToken: accountToken,
      subscriptionGroupIdentifier: 'g',
    },
    ...(isUpgraded ? { isUpgraded } : {}),
    ...(revokedAt === null ? {} : { revocationDate: revokedAt, revocationReason: 0 }),
  })
  const show = (when: number, about = newest()) => {
    at = when
    moments.push({
      ...{ at, status, transactions: bought.map(claimsOf), about: bought.indexOf(about) },
      info: {
        ...{ originalTransactionId: `${name}-0`, autoRenewProductId: nextProduct, productId: product },
        ...{ autoRenewStatus: renews ? 1 : 0, environment: 'Sandbox', isInBillingRetryPeriod: status === 3 },
        ...(graceUntil === null ? {} : { gracePeriodExpiresDate: graceUntil }),
      },
    })
  }
  const buy = (from: number, when = from) => {
    product = nextProduct
    const id = `${name}-${bought.length}`
    bought.push({ id, product, from, until: from + monthMs, revokedAt: null, isUpgraded: false })
    ;[status, renews, graceUntil] = [1, true, null]
    show(when)
  }
  const isLive = () => status === 1 && newest().revokedAt === null

  buy(begins)
  for (const { kind, days } of steps) {
    const due = newest().until
    const within = Math.min(at + (days % 28) * dayMs + dayMs / 2, due - dayMs / 4)
    const isNow = isLive() && within > at && within < end - dayMs
    const isDue = isLive() && renews && due < end - 4 * dayMs
    switch (kind) {
      case 'renew':
        if (isDue) buy(due)
        break
      case 'grace':
        if (!isLive() || !renews || due > end - 5 * dayMs) break
        ;[status, graceUntil] = [4, due + graceMs]
        show(due)
        if (days % 3 === 0 && refunded !== null && refunded.revokedAt !== null) {
          refunded.revokedAt = null
          show(due + dayMs / 2, refunded)
        }
        // Paid within grace, the period is the one that was due.
        buy(due, due + (1 + (days % 4)) * dayMs)
        break
      case 'retry': {
        if (!isDue) break
        status = 3
        show(due)
        const back = due + (1 + (days % 20)) * dayMs
        if (back < end - dayMs) buy(back)
        break
      }
      case 'cancel':
        if (!isNow) break
        renews = false
        show(within)
        if (due > end - dayMs) break
        status = 2
        show(due)
        break
      case 'resubscribe': {
        const back = Math.max(at, due) + (1 + (days % 20)) * dayMs
        if (status !== 1 && back < end - dayMs) buy(back)
        break
      }
      case 'upgrade':
        if (!isNow) break
        newest().isUpgraded = true
        nextProduct = product === 'monthly' ? 'yearly' : 'monthly'
        buy(within)
        break
      case 'downgrade':
        if (!isNow || !renews) break
        nextProduct = product === 'monthly' ? 'yearly' : 'monthly'
        show(within)
        break
      case 'refund':
        if (!isNow) break
        refunded = newest()
        refunded.revokedAt = within
        ;[status, renews] = [5, false]
        show(within)
        break
      case 'refund_before': {
        const before = bought.at(-2)
        if (!isNow || !before || before.revokedAt !== null || before.isUpgraded) break
        refunded = before
        before.revokedAt = within
        show(within, before)
        break
      }
      case 'reverse': {
        if (refunded === null || refunded.revokedAt === null) break
        const back = Math.max(at, refunded.revokedAt) + (1 + (days % 5)) * dayMs
        if (back >= end - dayMs || (refunded === newest() && back >= due - dayMs)) break
        refunded.revokedAt = null
        if (refunded === newest()) [status, renews] = [1, true]
        if (refunded !== newest() && status === 1 && back >= due) break
        show(back, refunded)
        break
      }
      case 'extend':
        if (!isNow) break
        newest().until += (1 + (days % 10)) * dayMs
        show(within)
        break
    }
  }
  while (isLive() && renews && newest().until <= end) buy(newest().until)
  if (isLive() && newest().until <= end) {
    status = 2
    show(newest().until)
  }
  return {
    moments,
    paidAtEnd: isLive() && newest().until > end,
    paid: new Map(bought.map(({ id, until }) => [id, { until }])),
  }
}

/** What the App Store would answer at an instant. */
export function shownAt({ moments }: History, at: number): Moment {
  return moments.findLast((moment) => moment.at <= at) ?? (moments[0] as Moment) // one is bought at the beginning
}
