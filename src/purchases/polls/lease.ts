import { selectLedgerClock } from '../../entitlements/index.ts'
import { hourMs } from '../../kernel/limits.ts'
import { type DueLineage, extendLeases } from '../lifecycle-store.ts'
import { type Lineage, lockLineageById } from '../lineage-store.ts'
import { selectPeriods } from '../period-store.ts'
import type { PurchaseServices } from '../purchase.ts'
import { syncGrants } from '../sync-grants.ts'
import type { Ms, StoreApp } from '../types.ts'

type Services = Pick<PurchaseServices, 'pool'>

const periodsLookedAt = 50

export function lineageOf({ pool }: Services, app: StoreApp, { id }: DueLineage): Promise<Lineage | undefined> {
  return pool.transaction((tx) => lockLineageById(tx, app.scope, id))
}

/** The store could not be asked about a subscription that may have been renewed: it goes on for the lease, once. */
export async function lease({ pool }: Services, app: StoreApp, { id }: DueLineage): Promise<void> {
  await pool.transaction(async (tx) => {
    const lineage = await lockLineageById(tx, app.scope, id)
    if (!lineage) return
    // After the lock, as in applyState.
    const now = await selectLedgerClock(tx, app.scope)
    const extended = await extendLeases(tx, lineage, { now, leaseMs: app.settings.pollLeaseHours * hourMs })
    if (extended.length === 0 || lineage.ownerId === null) return
    const periods = await selectPeriods(tx, lineage, periodsLookedAt)
    await syncGrants(tx, app, lineage, { periods, ownerId: lineage.ownerId, now })
  })
}

/** When the newest paid period ends; null: none ends. */
export async function endOfPaid({ pool }: Services, app: StoreApp, { id }: DueLineage): Promise<Ms | null> {
  return pool.transaction(async (tx) => {
    const lineage = await lockLineageById(tx, app.scope, id)
    const periods = lineage ? await selectPeriods(tx, lineage, periodsLookedAt) : []
    const ends = periods.flatMap(({ paidUntil }) => paidUntil ?? [])
    return ends.length === 0 ? null : Math.max(...ends)
  })
}
