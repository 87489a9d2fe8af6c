import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { Refusal } from '../kernel/errors.ts'
import { mappedClaimsAtOnce, mappedClaimWaitMs } from '../kernel/limits.ts'
import { unseal } from '../kernel/seal.ts'
import type { AttachServices } from './attach.ts'
import { type MappedClaim, postponeClaim, removeClaim, selectMappedClaims } from './mapped-claims-store.ts'
import { attachOnce, claimContext, contextFor, keepForCatalogue } from './purchase.ts'
import type { LoadStoreApp } from './store-app.ts'
import type { DeviceStore, Verifier } from './types.ts'

export interface MappedClaimServices extends AttachServices {
  pool: Pool
  clock: Clock
  loadStoreApp: LoadStoreApp
  verifiers: Partial<Record<DeviceStore, Verifier>>
}

/** Brings evidence again whose store product leads to a Product by now, or to one that says how long it lasts. Gives how many were tried. */
export async function attachMappedClaims(services: MappedClaimServices): Promise<number> {
  const { pool, clock } = services
  const claims = await selectMappedClaims(pool, { now: clock.now(), limit: mappedClaimsAtOnce })
  for (const claim of claims) {
    if (await isSettled(services, claim)) await removeClaim(pool, claim)
    else await postponeClaim(pool, claim, clock.now() + mappedClaimWaitMs)
  }
  return claims.length
}

/** Attached, or refused for good: nothing to wait for. */
async function isSettled(services: MappedClaimServices, claim: MappedClaim): Promise<boolean> {
  const { pool, loadStoreApp, sealingKey } = services
  const { scope, appId, store, evidenceKey, distinctId } = claim
  const text = unseal(sealingKey, claimContext(scope, appId, evidenceKey), claim.evidenceSealed)
  if (text === undefined) return true
  const app = await loadStoreApp(pool, scope, appId)
  const context = contextFor(services, app, { store, customerId: null })
  const verdict = await services.verifiers[store]?.(app, { store, text, claims: {}, consume: false }, context)
  if (verdict?.kind !== 'verified') return verdict?.kind === 'refused' && verdict.suffix === 'invalid'
  try {
    const attached = await attachOnce(services, app, verdict.purchase, distinctId)
    // It has a Product now, and no duration yet: it goes on waiting, for that.
    if (attached.kind === 'refused')
      await keepForCatalogue(services, app, { distinctId, evidence: { store, text } }, attached)
    return attached.kind !== 'refused' || attached.suffix !== 'reconciliation_retryable'
  } catch (error) {
    if (error instanceof Refusal && error.code === 'customer_deleted') return true
    throw error
  }
}
