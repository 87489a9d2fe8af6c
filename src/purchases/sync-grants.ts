import type { Tx } from '../db/pool.ts'
import { attachPurchase, endPurchase, getProduct, movePurchaseEnd } from '../entitlements/index.ts'
import type { Lineage } from './lineage-store.ts'
import { type Period, updateGranted } from './period-store.ts'
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
    }
  }
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
}

async function follow(tx: Tx, app: StoreApp, lineage: Lineage, period: Period, now: Ms): Promise<void> {
  const { grantRef, grantedUntil, accessUntil, paidUntil } = period
  if (grantRef === null) return
  if (!isStanding(period, now)) {
    await endPurchase(tx, app.scope, grantRef, { note: period.revokedAt === null ? 'superseded' : 'revoked' })
    await updateGranted(tx, lineage, { ...period, grantsEnded: true })
  } else if (grantedUntil !== accessUntil) {
    await movePurchaseEnd(tx, app.scope, grantRef, { expiresAt: accessUntil, paidUntil, note: null })
    await updateGranted(tx, lineage, { ...period, grantedUntil: accessUntil })
  }
}
