import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Scope } from '../tenancy/index.ts'
import type { AttachServices } from './attach.ts'
import type { Lineage } from './lineage-store.ts'
import { attachOnce, contextFor } from './purchase.ts'
import { getPurchase, type PurchaseRecord } from './read.ts'
import { refusePurchase } from './refuse.ts'
import type { LoadStoreApp } from './store-app.ts'
import type { Store, StoreApp, Verdict, VerifyContext } from './types.ts'

/** Asks a store how a lineage stands, by what is kept of it. */
export type Reread = (app: StoreApp, lineage: Lineage, context: VerifyContext) => Promise<Verdict>

export interface ReverifyServices extends AttachServices {
  pool: Pool
  clock: Clock
  loadStoreApp: LoadStoreApp
  rereads: Partial<Record<Store, Reread>>
  wake: () => void
}

/** An operator wants to know now. Throws `not_found` and the errors of purchases. */
export function createReverify(services: ReverifyServices) {
  return async (scopes: Scope[], purchaseId: string): Promise<PurchaseRecord> => {
    const { pool } = services
    const { lineage, scope } = await getPurchase(pool, scopes, purchaseId)
    const app = await services.loadStoreApp(pool, scope, lineage.appId)
    const context = contextFor(services, app, { store: lineage.store, customerId: lineage.ownerId })
    const verdict = (await services.rereads[lineage.store]?.(app, lineage, context)) ?? missing
    if (verdict.kind === 'refused') throw refusePurchase(lineage.store, verdict)
    if (verdict.kind === 'verified') {
      const attached = await attachOnce(services, app, verdict.purchase, null)
      if (attached.kind === 'refused') throw refusePurchase(lineage.store, attached)
      services.wake()
    }
    return getPurchase(pool, [scope], purchaseId)
  }
}

const missing: Verdict = { kind: 'refused', suffix: 'unavailable', detail: 'not_configured' }
