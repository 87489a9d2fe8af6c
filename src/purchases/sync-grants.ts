import { survivorsOf } from '../customers/index.ts'
import type { Tx } from '../db/pool.ts'
import {
  attachPurchase,
  endPurchase,
  getProduct,
  movePurchaseEnd,
  refundPart,
  restorePurchase,
} from '../entitlements/index.ts'
import type { Lineage } from './lineage-store.ts'
import { type Period, updateGranted, updateRefund } from './period-store.ts'
import type { Ms, StoreApp } from './types.ts'

/** Whether a period gives access, by what is stored alone. */
export function isOpen({ startsAt, accessUntil, revokedAt, supersededAt }: Period, now: Ms): boolean {
  const isOver = accessUntil !== null && (accessUntil <= now || accessUntil <= startsAt)
  return isStanding({ revokedAt, supersededAt }, now) && !isOver
}

function isStanding({ revokedAt, supersededAt }: Pick<Period, 'revokedAt' | 'supersededAt'>, now: Ms): boolean {
  return revokedAt === null && (supersededAt === null || supersededAt > now)
}

/**
 * Makes the ledger say what the periods say, for whoever owns them: each gives its grants once, moved and taken back as the
 * store says. In the caller's transaction, with the lineage locked.
 */
export async function syncGrants(
  tx: Tx,
  app: StoreApp,
  lineage: Lineage,
  { periods, ownerId, now }: { periods: readonly Period[]; ownerId: string; now: Ms },
): Promise<void> {
  // Oldest first: what a period rolls over is there before the next one begins.
  for (const period of periods.toReversed()) {
    if (period.grantedTo === null) {
      if (isOpen(period, now)) await grant(tx, app, lineage, period, { ownerId, nth: 0 })
    } else if (period.grantRef !== null && !period.grantsEnded) {
      await follow(tx, app, lineage, period, now)
    } else if (isOpen(period, now) && (await isOf(tx, app, period.grantedTo, ownerId))) {
      await reopen(tx, app, lineage, period)
    }
  }
}

/** Whether what was granted to one record is by now another one's: it was merged into that. */
async function isOf(tx: Tx, { scope }: StoreApp, grantedTo: string, ownerId: string): Promise<boolean> {
  return grantedTo === ownerId || (await survivorsOf(tx, scope, [grantedTo])).get(grantedTo) === ownerId
}

/** Takes back what the periods gave, and gives what of them is open to somebody else. */
export async function moveGrants(
  tx: Tx,
  app: StoreApp,
  lineage: Lineage,
  { periods, ownerId, now, nth }: { periods: readonly Period[]; ownerId: string; now: Ms; nth: number },
): Promise<void> {
  for (const period of periods.toReversed()) {
    if (period.grantRef !== null && !period.grantsEnded) {
      await endPurchase(tx, app.scope, period.grantRef, { note: 'transferred' })
      await updateGranted(tx, lineage, { ...period, grantsEnded: true })
    }
    if (isOpen(period, now)) await grant(tx, app, lineage, period, { ownerId, nth })
  }
}

async function grant(
  tx: Tx,
  app: StoreApp,
  lineage: Lineage,
  period: Period,
  { ownerId, nth }: { ownerId: string; nth: number },
): Promise<void> {
  const product = await getProduct(tx, [app.scope], period.productId)
  const grantRef = `purchase:${lineage.publicId}:${period.id}${nth === 0 ? '' : `:${nth}`}`
  await attachPurchase(tx, app.scope, {
    ...{ customerId: ownerId, product, ref: grantRef, rank: period.type === 'one_time' ? 1 : 0 },
    ...{ startsAt: period.startsAt, expiresAt: period.accessUntil, paidUntil: period.paidUntil },
    quantity: period.quantity - period.refundedQuantity,
  })
  await updateGranted(tx, lineage, {
    ...{ id: period.id, grantedTo: ownerId, grantRef, grantedUntil: period.accessUntil, grantsEnded: false },
  })
  const given = { ...period, grantRef, grantedQuantity: period.quantity - period.refundedQuantity, refundTaken: 0 }
  await updateRefund(tx, lineage, given)
  await followRefund(tx, app, lineage, given)
}

/** A refund was reversed: what it took, and was not spent, is there again. */
async function reopen(tx: Tx, app: StoreApp, lineage: Lineage, period: Period): Promise<void> {
  if (period.grantRef === null) return
  await restorePurchase(tx, app.scope, period.grantRef, 'refund reversed')
  const { accessUntil: expiresAt, paidUntil } = period
  await movePurchaseEnd(tx, app.scope, period.grantRef, { expiresAt, paidUntil, note: null })
  await updateGranted(tx, lineage, { ...period, grantedUntil: expiresAt, grantsEnded: false })
  await followRefund(tx, app, lineage, { ...period, refundTaken: 0 })
}

/** Takes back the part that was refunded since the last time, from what is left of it. */
async function followRefund(tx: Tx, app: StoreApp, lineage: Lineage, period: Period): Promise<void> {
  const { grantRef, grantedQuantity, refundTaken } = period
  const refunded = refundedPart(period)
  if (grantRef === null || grantedQuantity === null || refunded.parts === refundTaken) return
  // Less than before: a part was given back. All comes back, and then the rest is taken again.
  if (refunded.parts < refundTaken) await restorePurchase(tx, app.scope, grantRef, 'refund reversed')
  const parts = refunded.parts - (refunded.parts < refundTaken ? 0 : refundTaken)
  if (parts > 0) await refundPart(tx, app.scope, grantRef, { parts, of: refunded.of, note: 'refunded' })
  await updateRefund(tx, lineage, { ...period, refundTaken: refunded.parts })
}

/** The App Store names a share, Google Play how many are left of those bought. */
function refundedPart({ quantity, refundedQuantity, grantedQuantity, revocation }: Period): {
  parts: number
  of: number
} {
  if (revocation !== null && typeof revocation.share === 'number' && revocation.share < 1) {
    return { parts: Math.round(revocation.share * shareParts), of: shareParts }
  }
  const granted = Math.max(grantedQuantity ?? quantity, 1)
  return { parts: Math.min(Math.max(refundedQuantity - (quantity - granted), 0), granted), of: granted }
}

const shareParts = 100_000

async function follow(tx: Tx, app: StoreApp, lineage: Lineage, period: Period, now: Ms): Promise<void> {
  const { grantRef, grantedUntil, accessUntil, paidUntil } = period
  if (grantRef === null) return
  if (!isStanding(period, now)) {
    await endPurchase(tx, app.scope, grantRef, { note: period.revokedAt === null ? 'superseded' : 'revoked' })
    await updateGranted(tx, lineage, { ...period, grantsEnded: true })
    return
  }
  if (grantedUntil !== accessUntil) {
    await movePurchaseEnd(tx, app.scope, grantRef, { expiresAt: accessUntil, paidUntil, note: null })
    await updateGranted(tx, lineage, { ...period, grantedUntil: accessUntil })
  }
  await followRefund(tx, app, lineage, period)
}
