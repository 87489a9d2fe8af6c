import type { Tx } from '../db/pool.ts'
import type { Lineage } from './lineage-store.ts'
import { startOf } from './period-start.ts'
import { type StoredAccess, supersedeByLater, supersedeOthers, upsertPeriod } from './period-store.ts'
import { cutOthers, endUnlisted, selectLine } from './supersede-store.ts'
import type { Ms, VerifiedPeriod, VerifiedPurchase, VerifiedTransaction } from './types.ts'

/** Writes the periods of one transaction, as far as they are news. */
export async function applyPeriods(
  tx: Tx,
  lineage: Lineage,
  purchase: VerifiedPurchase,
  written: { transaction: VerifiedTransaction; id: bigint; isNewest: boolean; isSuperseded: boolean; now: Ms },
): Promise<void> {
  const { transaction, id, isNewest, isSuperseded, now } = written
  if (!isNewest) return
  for (const period of transaction.periods) {
    // Of what another purchase took the place of, only a refund is news.
    if (isSuperseded && !(period.access.kind === 'closed' && period.access.revocation)) continue
    const startsAt = lineage.store === 'playstore' ? await playStart(tx, lineage, period, now) : period.startsAt
    await upsertPeriod(tx, lineage, id, { ...period, startsAt, stored: storedAccess(period, now), now })
    if (isCurrentOfApple(purchase, period, now)) {
      await supersedeOthers(tx, lineage, {
        transactionId: id,
        at: period.startsAt,
        isOpen: period.access.kind === 'open',
      })
      if (period.access.kind === 'open') await supersedeByLater(tx, lineage, { transactionId: id, now })
    }
    if (lineage.store === 'playstore' && period.type === 'subscription') {
      await cutOthers(tx, lineage, { line: period.line, key: period.key, at: startsAt })
    }
  }
  // A subscription of Stripe is told whole: what it no longer names has ended.
  if (lineage.store === 'stripe')
    await endUnlisted(tx, lineage, { transactionId: id, periods: transaction.periods, now })
}

async function playStart(tx: Tx, lineage: Lineage, period: VerifiedPeriod, now: Ms): Promise<Ms> {
  if (period.type !== 'subscription') return period.startsAt
  return startOf(period, await selectLine(tx, lineage, period.line), now)
}

/** Access that is not, or no longer, there has an end that has passed. */
function storedAccess({ access, paidUntil, startsAt, type, consumable }: VerifiedPeriod, now: Ms): StoredAccess {
  const none = { revokedAt: null, revocation: null, supersededAt: null }
  if (access.kind === 'open') return { ...none, accessUntil: access.until }
  if (access.kind === 'superseded') return { ...none, accessUntil: paidUntil, supersededAt: access.at }
  if (access.revocation !== null) {
    const { at, reason, share, kind } = access.revocation
    const revocation = { reason, share, kind }
    // Of units, a part may be given back: the rest stays.
    if (type === 'one_time' && consumable && share < 1) return { ...none, accessUntil: null, revocation }
    return { ...none, accessUntil: paidUntil, revokedAt: at, revocation }
  }
  if (access.detail === 'revoked') return { ...none, accessUntil: paidUntil, revokedAt: now }
  return { ...none, accessUntil: Math.min(paidUntil ?? startsAt, now) }
}

/**
 * One lineage of the App Store has one current period, whatever product it is for. One that is over by the time we hear of it
 * ended those before it all the same.
 */
function isCurrentOfApple({ store }: VerifiedPurchase, { type, access, startsAt }: VerifiedPeriod, now: Ms): boolean {
  return store === 'appstore' && type === 'subscription' && access.kind !== 'superseded' && startsAt <= now
}
