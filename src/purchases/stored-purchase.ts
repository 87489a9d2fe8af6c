import type { Sql } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { accountTokenIn } from './apple/claims.ts'
import { selectResult } from './claim-store.ts'
import { type Lineage, selectLineage } from './lineage-store.ts'
import { selectPeriods, selectTransactions } from './period-store.ts'
import type { AsStored, PurchaseIdentity, Store, StoreApp, VerifiedPurchase } from './types.ts'
import { usedUp } from './used-up.ts'

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

/** What the newest renewal carries matters as long as nobody has the purchase. */
async function renewalTokenOf(sql: Sql, lineage: Lineage): Promise<string | null> {
  if (lineage.store !== 'appstore' || lineage.ownerId !== null) return null
  const [newest] = await selectTransactions(sql, lineage, 1)
  return accountTokenIn(newest?.claims) ?? accountTokenIn(lineage.extra)
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
    ...{ accountToken: lineage.accountToken, familyShared: lineage.familyShared },
    renewalAccountToken: await renewalTokenOf(sql, lineage),
    ...{ status: lineage.status, autoRenews: lineage.autoRenews, pendingProduct: lineage.pendingProduct },
    ...{ nextCheckAt: lineage.nextCheckAt, transactions: [], outbox: [], extra: null },
    consumedElsewhere: lineage.ownerId === null && lineage.status === usedUp,
    result: (await selectResult(sql, place, evidenceKey)) ?? result ?? (await identityOf(sql, lineage)),
  }
}
