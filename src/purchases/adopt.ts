import type { Tx } from '../db/pool.ts'
import { selectLedgerClock } from '../entitlements/index.ts'
import { deleteClaims } from './claim-store.ts'
import { giveTo } from './give-to.ts'
import { lockLineageById } from './lineage-store.ts'
import { selectPeriods } from './period-store.ts'
import { isOpen, syncGrants } from './sync-grants.ts'
import type { StoreApp } from './types.ts'
import { usedUp } from './used-up.ts'

const periodsMax = 50

/** Gives a purchase that nobody has to a customer, as far as it gives access now. In the caller's transaction. */
export async function adopt(tx: Tx, app: StoreApp, lineageId: bigint, customerId: string): Promise<void> {
  const lineage = await lockLineageById(tx, app.scope, lineageId)
  if (!lineage || lineage.ownerId !== null || lineage.ownerDeleted || lineage.status === usedUp) return
  const periods = await selectPeriods(tx, lineage, periodsMax)
  const now = await selectLedgerClock(tx, app.scope)
  if (!periods.some((period) => isOpen(period, now))) return
  const ownerId = await giveTo(tx, app.scope, lineage, { customerId, now })
  await syncGrants(tx, app, lineage, { periods, ownerId, now })
  const { store, storeEnvironment, appId } = lineage
  const place = { scope: app.scope, appId, store, storeEnvironment }
  await deleteClaims(
    tx,
    place,
    periods.map(({ evidenceKey }) => evidenceKey),
  )
}
