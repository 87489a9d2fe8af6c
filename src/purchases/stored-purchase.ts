import type { Sql } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { selectResult } from './claim-store.ts'
import { selectLineage } from './lineage-store.ts'
import type { AsStored, Store, StoreApp, VerifiedPurchase } from './types.ts'

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
    result: (await selectResult(sql, place, evidenceKey)) ?? result ?? {},
  }
}
