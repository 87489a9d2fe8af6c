import { getCustomer } from '../customers/index.ts'
import type { Tx } from '../db/pool.ts'
import { selectLedgerClock } from '../entitlements/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { deleteClaims, insertTransfer, selectTransfers } from './claim-store.ts'
import { giveTo } from './give-to.ts'
import { type Lineage, selectLineageById } from './lineage-store.ts'
import { selectPeriods } from './period-store.ts'
import type { LoadStoreApp } from './store-app.ts'
import { moveGrants } from './sync-grants.ts'

export interface Transferring {
  purchaseId: string
  customerId: string
  reason: string
  actor: string
}

/**
 * An operator gives a purchase to a customer, whatever the rules say: what it gave before is taken back, what is open is
 * given anew. In the caller's transaction. Throws `not_found`, and `conflict` when the customer has it already.
 */
export async function transferPurchase(
  tx: Tx,
  loadStoreApp: LoadStoreApp,
  scopes: Scope[],
  { purchaseId, customerId, reason, actor }: Transferring,
): Promise<{ before: Lineage; after: Lineage; scope: Scope }> {
  const lineage = await selectLineageById(tx, scopes, purchaseId, { lock: true })
  if (!lineage) throw refuse('not_found')
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === lineage.scopeId),
    'it was looked for in these scopes',
  )
  const customer = await getCustomer(tx, scope, customerId)
  if (lineage.ownerId === customer.id) throw refuse('conflict', { message: 'The customer has the purchase already.' })
  const app = await loadStoreApp(tx, scope, lineage.appId)
  const now = await selectLedgerClock(tx, scope)
  const periods = await selectPeriods(tx, lineage, periodsMax)
  const nth = (await selectTransfers(tx, lineage, transfersMax)).length + 1
  const ownerId = await giveTo(tx, scope, lineage, { customerId: customer.id, now })
  await moveGrants(tx, app, lineage, { periods, ownerId, now, nth })
  await insertTransfer(tx, lineage, {
    fromId: lineage.ownerId,
    toId: ownerId,
    cause: 'operator',
    actor,
    reason,
    at: now,
  })
  const { store, storeEnvironment, appId } = lineage
  await deleteClaims(
    tx,
    { scope, appId, store, storeEnvironment },
    periods.map(({ evidenceKey }) => evidenceKey),
  )
  return { before: lineage, after: { ...lineage, ownerId, ownerDeleted: false, attachedAt: now }, scope }
}

const periodsMax = 1000
const transfersMax = 1000
