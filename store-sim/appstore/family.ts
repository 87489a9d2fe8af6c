import { numberId } from '../ids.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { latestOf, productOf } from './app.ts'
import { notify } from './notify.ts'
import type { AppleApp, Lineage, Transaction } from './types.ts'

/** A member of the family has transactions of their own, without account tokens, that follow the payer's. */
export function shareWith(sim: Sim, app: AppleApp, owner: Lineage, account: string, at: number): Lineage {
  const product = productOf(app, latestOf(owner).productId)
  if (product.familySharing !== true)
    throw refuse('not_shareable', `${product.productId} is not shared with families`, 409)
  const shared: Lineage = { ...structuredClone(owner), id: '', account, sharedFrom: owner.id, transactions: [] }
  app.lineages.push(shared)
  mirror(sim, shared, latestOf(owner))
  notify(
    sim,
    app,
    shared,
    shared.renewal === null ? { type: 'ONE_TIME_CHARGE' } : { type: 'SUBSCRIBED', subtype: 'INITIAL_BUY' },
    at,
  )
  return shared
}

export function familyOf(app: AppleApp, owner: Lineage): Lineage[] {
  return app.lineages.filter(({ sharedFrom }) => sharedFrom === owner.id)
}

/** After anything that changed the payer's purchase. */
export function followOwner(sim: Sim, app: AppleApp, owner: Lineage, at: number): void {
  for (const shared of familyOf(app, owner)) {
    if (latestOf(shared).revocation !== null) continue
    shared.renewal = structuredClone(owner.renewal)
    const latest = latestOf(owner)
    if (latestOf(shared).mirrors !== latest.id) mirror(sim, shared, latest)
    const transaction = latestOf(shared)
    transaction.expiresAt = latest.expiresAt
    if (latest.revocation !== null) revokeShared(sim, app, shared, at)
  }
}

export function revokeShared(sim: Sim, app: AppleApp, shared: Lineage, at: number): void {
  const transaction = latestOf(shared)
  transaction.revocation = { at, reason: 0, type: 'FAMILY_REVOKE', milliPercent: null }
  if (shared.renewal !== null) shared.renewal.status = 'revoked'
  notify(sim, app, shared, { type: 'REVOKE', transaction }, at)
}

function mirror(sim: Sim, shared: Lineage, paid: Transaction): void {
  const transaction = {
    ...structuredClone(paid),
    id: numberId(sim.world, 'transaction', '2000', 8),
    accountToken: null,
    mirrors: paid.id,
  }
  shared.id ||= transaction.id
  shared.transactions.push(transaction)
}
