import type { Sql } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { selectResult } from './claim-store.ts'
import { type Lineage, selectLineage } from './lineage-store.ts'
import { selectPeriods } from './period-store.ts'
import type { AsStored, PurchaseIdentity, Store, StoreApp, VerifiedPurchase } from './types.ts'

/** Of what nobody brought before: as the newest period says. Clients of Google Play need its product in every answer. */
async function identityOf(sql: Sql, lineage: Lineage): Promise<PurchaseIdentity> {
  const [period] = await selectPeriods(sql, lineage, 1)
  if (!period || lineage.store !== 'playstore') return {}
  return {
    ...(period.orderId === null ? {} : { orderId: period.orderId }),
    catalogProduct: {
      ...{ id: period.productId, store_product_id: period.storeProductId, base_plan_id: period.basePlanId },
      ...{ purchase_option_id: period.purchaseOptionId, offer_id: period.offerId, store_product_type: period.type },
    },
  }
}

/** A known purchase of which there is nothing new to say: it changes no row, and is judged by what is stored. */
export async function storedPurchase(
  sql: Sql,
  { scope, appId }: StoreApp,
  store: Store,
  { storeEnvironment, evidenceKey, result }: AsStored,
): Promise<VerifiedPurchase> {
  const place = { scope, appId, store, storeEnvironment }
  const found = await selectLineage(sql, place, { rootKey: evidenceKey, evidenceKeys: [evidenceKey], lock: false })
  const lineage = must(found, 'what is stored decides of known lineages only')
  return {
    ...{ store, storeEnvironment, evidenceKey, rootKey: lineage.rootKey, linkedKeys: [] },
    ...{ purchasedAt: lineage.createdAt, version: 0, readAt: null, unpolled: lineage.unpolled },
    ...{ accountToken: lineage.accountToken, renewalAccountToken: null, familyShared: lineage.familyShared },
    ...{ status: lineage.status, autoRenews: lineage.autoRenews, pendingProduct: lineage.pendingProduct },
    ...{ nextCheckAt: lineage.nextCheckAt, transactions: [], consumedElsewhere: false, outbox: [], extra: null },
    result: (await selectResult(sql, place, evidenceKey)) ?? result ?? (await identityOf(sql, lineage)),
  }
}
