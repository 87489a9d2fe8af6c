import type { Tx } from '../db/pool.ts'
import { findLinkedProduct } from '../entitlements/index.ts'
import type { Lineage } from './lineage-store.ts'
import { type Period, selectTransactions } from './period-store.ts'
import type { StoreApp, VerifiedPurchase } from './types.ts'

/** Whether units were sold: by what was verified, or, where nothing new was told, by what is stored. */
export async function isConsumable(
  tx: Tx,
  app: StoreApp,
  { transactions }: VerifiedPurchase,
  { lineage, periods }: { lineage: Lineage; periods: readonly Period[] },
): Promise<boolean> {
  if (transactions.length > 0) return transactions.some((each) => each.periods.some(({ consumable }) => consumable))
  const [period] = periods
  if (period?.type !== 'one_time') return false
  if (lineage.store === 'appstore') {
    const [newest] = await selectTransactions(tx, lineage, 1)
    return newest?.claims.type === 'Consumable'
  }
  const { storeProductId: productId, basePlanId, purchaseOptionId, offerId } = period
  const sold = { productId, basePlanId, purchaseOptionId, offerId }
  const found = await findLinkedProduct(tx, app.scope, lineage.store, sold)
  // Without its link nobody can say that it was none.
  return found?.link.consumable ?? true
}
