import type { StoreLink } from '../../entitlements/index.ts'
import type { JsonObject } from '../../events/index.ts'
import { addCalendarPeriod } from '../../kernel/calendar-period.ts'
import type { Ms, PeriodAccess, Revocation, Unsupported } from '../types.ts'
import type { TransactionClaims } from './claims.ts'

/** What Apple says of a subscription as a whole, beside its newest transaction. */
export interface Renewal {
  /** 1 active, 2 expired, 3 billing retry, 4 grace, 5 revoked; null: nobody was asked. */
  status: number | null
  /** Verified renewal info. */
  info: JsonObject | null
}

export interface Judged {
  access: PeriodAccess
  type: 'subscription' | 'one_time'
  consumable: boolean
  /** Without grace; null: no end. */
  paidUntil: Ms | null
  /** The word of the decision table. */
  status: string
}

/** The decision table of the App Store for one transaction. Pure. `renewal` only for the lineage's newest transaction. */
export function judge(
  transaction: TransactionClaims,
  { link, renewal, now }: { link: StoreLink; renewal: Renewal | null; now: Ms },
): Judged {
  const refused = refusedBecause(transaction, link)
  switch (transaction.type) {
    case 'Auto-Renewable Subscription': {
      const paidUntil = wholeOrNull(transaction.expiresDate)
      const access = refused ?? subscriptionAccess(transaction, { paidUntil, renewal, now })
      const status = access.kind === 'open' && renewal?.status === 4 ? 'grace' : statusOf(access)
      return { access, type: 'subscription', consumable: false, paidUntil, status }
    }
    case 'Non-Renewing Subscription': {
      const paidUntil =
        link.duration === null ? null : addCalendarPeriod(whole(transaction.purchaseDate), link.duration)
      const access = refused ?? lastingAccess(transaction, { paidUntil, now })
      return { access, type: 'subscription', consumable: false, paidUntil, status: statusOf(access) }
    }
    case 'Consumable':
    case 'Non-Consumable': {
      const access = refused ?? onceAccess(transaction)
      const consumable = transaction.type === 'Consumable'
      return { access, type: 'one_time', consumable, paidUntil: null, status: statusOf(access) }
    }
    default: {
      const access = closed('product_type')
      return { access, type: 'one_time', consumable: false, paidUntil: null, status: statusOf(access) }
    }
  }
}

/** Of the units of a transaction: absent is one. */
export function quantityOf({ quantity }: TransactionClaims): number {
  return typeof quantity === 'number' && Number.isSafeInteger(quantity) && quantity >= 1 && quantity <= quantityMax
    ? quantity
    : 1
}

/** StoreKit sells up to ten at once. */
const quantityMax = 10_000

export function revocationOf({ revocationDate, ...claims }: TransactionClaims): Revocation | null {
  if (typeof revocationDate !== 'number') return null
  const { revocationReason, revocationPercentage, revocationType } = claims
  // In thousandths of a per cent.
  const share = typeof revocationPercentage === 'number' ? revocationPercentage / 100_000 : 1
  return {
    at: whole(revocationDate),
    reason: typeof revocationReason === 'number' ? revocationReason : null,
    share: Math.min(Math.max(share, 0), 1),
    kind: revocationType === 'FAMILY_REVOKE' ? 'family' : 'refund',
  }
}

function refusedBecause(transaction: TransactionClaims, link: StoreLink): PeriodAccess | null {
  return transaction.inAppOwnershipType === 'FAMILY_SHARED' && !link.familySharing ? closed('family_shared') : null
}

function subscriptionAccess(
  transaction: TransactionClaims,
  { paidUntil, renewal, now }: { paidUntil: Ms | null; renewal: Renewal | null; now: Ms },
): PeriodAccess {
  const revocation = revocationOf(transaction)
  if (transaction.isUpgraded === true) return { kind: 'superseded', at: revocation?.at ?? now }
  if (revocation !== null || renewal?.status === 5) return closed('revoked', { revocation })
  if (renewal?.status === 3) return closed('billing_retry', { claim: true })
  if (renewal?.status === 4) {
    const graceUntil = wholeOrNull(renewal.info?.gracePeriodExpiresDate)
    return graceUntil !== null && graceUntil > now
      ? { kind: 'open', until: graceUntil }
      : closed('billing_retry', { claim: true })
  }
  const isOver = renewal?.status === 2 || paidUntil === null || paidUntil <= now
  return isOver ? closed('expired') : { kind: 'open', until: paidUntil }
}

function lastingAccess(
  transaction: TransactionClaims,
  { paidUntil, now }: { paidUntil: Ms | null; now: Ms },
): PeriodAccess {
  const revocation = revocationOf(transaction)
  if (revocation !== null) return closed('revoked', { revocation })
  if (paidUntil === null) return closed('duration_not_configured', { claim: true })
  return paidUntil <= now ? closed('expired') : { kind: 'open', until: paidUntil }
}

function onceAccess(transaction: TransactionClaims): PeriodAccess {
  const revocation = revocationOf(transaction)
  return revocation === null ? { kind: 'open', until: null } : closed('revoked', { revocation })
}

function closed(
  detail: Unsupported,
  { claim = false, revocation = null }: { claim?: boolean; revocation?: Revocation | null } = {},
): PeriodAccess {
  return { kind: 'closed', detail, claim, revocation }
}

function statusOf(access: PeriodAccess): string {
  if (access.kind === 'open') return 'active'
  return access.kind === 'closed' ? access.detail : 'superseded'
}

/** Xcode's instants may be fractional. */
export function whole(at: number): Ms {
  return Math.floor(at)
}

function wholeOrNull(at: unknown): Ms | null {
  return typeof at === 'number' && Number.isFinite(at) ? whole(at) : null
}
