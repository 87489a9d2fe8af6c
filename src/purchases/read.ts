import type { Sql } from '../db/pool.ts'
import { selectLedgerClock } from '../entitlements/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import type { Page } from '../kernel/page.ts'
import type { Scope } from '../tenancy/index.ts'
import { selectTransfers, type Transfer } from './claim-store.ts'
import { type Lineage, selectLineageById, selectLineagesOf } from './lineage-store.ts'
import { type Period, type StoredTransaction, selectPeriods, selectTransactions } from './period-store.ts'
import { isOpen } from './sync-grants.ts'

/** A purchase as the workspace sees it. */
export interface PurchaseRecord {
  lineage: Lineage
  scope: Scope
  /** Newest first, as many as are shown. */
  periods: Period[]
  active: boolean
  transactions: StoredTransaction[]
  transfers: Transfer[]
}

const shownMax = 50

/** Newest first, without the trail. */
export async function listPurchases(sql: Sql, scope: Scope, customerId: string, page: Page): Promise<PurchaseRecord[]> {
  const lineages = await selectLineagesOf(sql, scope, customerId, page)
  const now = await selectLedgerClock(sql, scope)
  const records: PurchaseRecord[] = []
  for (const lineage of lineages) {
    const periods = await selectPeriods(sql, lineage, shownMax)
    const active = periods.some((period) => isOpen(period, now))
    records.push({ lineage, scope, periods, active, transactions: [], transfers: [] })
  }
  return records
}

/** With everything that was verified of it. Throws `not_found`. */
export async function getPurchase(sql: Sql, scopes: Scope[], publicId: string): Promise<PurchaseRecord> {
  const lineage = await selectLineageById(sql, scopes, publicId, { lock: false })
  if (!lineage) throw refuse('not_found')
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === lineage.scopeId),
    'it was looked for in these scopes',
  )
  const periods = await selectPeriods(sql, lineage, shownMax)
  const now = await selectLedgerClock(sql, scope)
  return {
    ...{ lineage, scope, periods },
    active: periods.some((period) => isOpen(period, now)),
    transactions: await selectTransactions(sql, lineage, shownMax),
    transfers: await selectTransfers(sql, lineage, shownMax),
  }
}
