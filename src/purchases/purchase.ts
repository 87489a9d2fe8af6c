import { hash } from 'node:crypto'
import { isRetryable, type Pool, sqlState, type Tx } from '../db/pool.ts'
import { findLinkedProduct, isChanged } from '../entitlements/index.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { claimDays, dayMs, lineageWaitMsMax } from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'
import { seal } from '../kernel/seal.ts'
import type { Platform, Scope } from '../tenancy/index.ts'
import { type Attached, type AttachServices, attach } from './attach.ts'
import { selectResult, upsertClaim } from './claim-store.ts'
import type { Guard } from './guard.ts'
import { selectLineage } from './lineage-store.ts'
import { isStable, refusePurchase } from './refuse.ts'
import type { LoadStoreApp } from './store-app.ts'
import { storedPurchase } from './stored-purchase.ts'
import type {
  DeviceStore,
  Evidence,
  PurchaseAnswer,
  PurchaseCommand,
  Refused,
  Store,
  StoreApp,
  VerifiedPurchase,
  Verifier,
  VerifyContext,
} from './types.ts'
import { usedUp } from './used-up.ts'

export interface PurchaseServices extends AttachServices {
  pool: Pool
  clock: Clock
  loadStoreApp: LoadStoreApp
  /** Absent: the store's purchases are not taken yet. */
  verifiers: Partial<Record<DeviceStore, Verifier>>
  guard: Guard
  /** The record that an id names by now. Throws `customer_deleted`. */
  whois: (query: { scope: Scope; distinctId: string }) => Promise<{ customerId: string | undefined }>
  /** Something has to be told to a store. */
  wake: () => void
}

/** What does not serve callers needs no names of theirs. */
export type StoreServices = Omit<PurchaseServices, 'whois' | 'guard' | 'verifiers'>

const platforms: Record<DeviceStore, Platform> = { appstore: 'ios', playstore: 'android' }
const attemptsMax = 2

/**
 * Brings a purchase: verified outside of any transaction, then attached in one. Throws `scope_mismatch`, `customer_deleted`
 * and the errors of purchases.
 */
export function createPurchase(services: PurchaseServices): (command: PurchaseCommand) => Promise<PurchaseAnswer> {
  return async (command) => {
    checkPlatform(command)
    const { app, purchase } = await verified(services, command)
    const attached = await attachOnce(services, app, purchase, command.distinctId)
    if (attached.kind === 'refused') await keepForCatalogue(services, app, command, attached)
    if (attached.kind !== 'attached') throw refusal(purchase.store, attached)
    services.wake()
    return { customerId: attached.customerId, replay: attached.replay, ...attached.identity }
  }
}

/** Throws `scope_mismatch` where the key is of an app that such evidence can't come from. */
export function checkPlatform({ scope, evidence }: PurchaseCommand): void {
  if (scope.platform !== platforms[evidence.store]) throw refuse('scope_mismatch')
}

/** What the evidence proves, outside of any transaction. Throws `customer_deleted` and the errors of purchases. */
export async function verified(
  services: PurchaseServices,
  { scope, distinctId, evidence }: PurchaseCommand,
): Promise<{ app: StoreApp; purchase: VerifiedPurchase }> {
  const { store } = evidence
  const { customerId } = await services.whois({ scope, distinctId })
  const evidenceHash = hash('sha256', `${scope.scopeId} ${evidence.text}`)
  const waitS = services.guard.enter(evidenceHash, `${scope.scopeId} ${customerId ?? distinctId}`)
  if (waitS > 0) throw refusePurchase(store, { ...resting, retryAfterS: waitS })

  const app = await services.loadStoreApp(services.pool, scope, scope.appId)
  const context = contextFor(services, app, { store, customerId: customerId ?? null })
  const verify = services.verifiers[store]
  const verdict = verify ? await verify(app, evidence, context) : missing
  if (verdict.kind === 'refused') {
    await keepForCatalogue(services, app, { distinctId, evidence }, verdict)
    if (isStable(verdict.suffix)) services.guard.rest(evidenceHash)
    throw refusePurchase(store, verdict)
  }
  const purchase =
    verdict.kind === 'verified' ? verdict.purchase : await storedPurchase(services.pool, app, store, verdict)
  return { app, purchase }
}

/** What the caller is told of a purchase that was not attached. */
export function refusal(store: Store, attached: Exclude<Attached, { kind: 'attached' }>): Refusal {
  return refusePurchase(store, attached.kind === 'refused' ? attached : unsettled)
}

const resting = { kind: 'refused', suffix: 'unavailable', detail: 'rate_limited' } as const
const missing: Refused = { kind: 'refused', suffix: 'unavailable', detail: 'not_configured' }
const unsettled: Refused = {
  kind: 'refused',
  suffix: 'reconciliation_retryable',
  detail: 'claimed by others meanwhile',
}

/** What a verifier asks about while it works, from rows as they are now. */
export function contextFor(
  { pool, clock }: Pick<PurchaseServices, 'pool' | 'clock'>,
  app: StoreApp,
  { store, customerId }: { store: Store; customerId: string | null },
): VerifyContext {
  const { scope, appId } = app
  return {
    now: clock.now() + app.clockOffsetMs,
    customerId,
    productFor: ({ storeProductId, ...rest }) =>
      findLinkedProduct(pool, scope, store, { productId: storeProductId, ...rest }),
    async known(storeEnvironment, evidenceKey) {
      const place = { scope, appId, store, storeEnvironment }
      const which = { rootKey: evidenceKey, evidenceKeys: [evidenceKey], lock: false }
      const lineage = await selectLineage(pool, place, which)
      if (!lineage) return null
      const { rootKey, lastReadAt, version, status, ownerId } = lineage
      const attached = ownerId !== null
      return {
        rootKey,
        lastReadAt,
        version,
        revoked: status === 'revoked',
        attached,
        usedUp: !attached && status === usedUp,
      }
    },
    async saved(storeEnvironment, evidenceKey) {
      return (await selectResult(pool, { scope, appId, store, storeEnvironment }, evidenceKey)) ?? null
    },
  }
}

/** One transaction; when others were in its way, once more, and then the caller is asked to come back. */
export function attachOnce(
  services: Pick<PurchaseServices, 'pool'> & AttachServices,
  app: StoreApp,
  purchase: VerifiedPurchase,
  distinctId: string | null,
): Promise<Attached> {
  return settle(services.pool, (tx) => attach(tx, services, app, purchase, distinctId))
}

/** The same for anything that is done in the transaction of an attach. */
export async function settle<T>(pool: Pool, work: (tx: Tx) => Promise<T>): Promise<T | Refused> {
  let cause: unknown
  for (let attempts = 0; attempts < attemptsMax; attempts++) {
    try {
      return await pool.transaction(async (tx) => {
        await tx.query(`set local lock_timeout = '${lineageWaitMsMax}ms'`)
        return work(tx)
      })
    } catch (error) {
      if (!isRetryable(error) && !isChanged(error) && sqlState(error) !== uniqueViolation) throw error
      cause = error
    }
  }
  return { ...unsettled, retryAfterS: retryAfterS(), cause }
}

const uniqueViolation = '23505'

/** Authentic, but nobody has said yet what it buys, or for how long: kept, so that the link that says so attaches it. */
export async function keepForCatalogue(
  { pool, clock, sealingKey }: Pick<PurchaseServices, 'pool' | 'clock' | 'sealingKey'>,
  { scope, appId }: StoreApp,
  { distinctId, evidence }: Pick<PurchaseCommand, 'distinctId'> & { evidence: Pick<Evidence, 'store' | 'text'> },
  { unmapped, unmeasured }: Refused,
): Promise<void> {
  const awaited = unmapped ?? unmeasured
  if (!awaited) return
  const { storeEnvironment, evidenceKey, storeProductId } = awaited
  const now = clock.now()
  await upsertClaim(
    pool,
    { scope, appId, store: evidence.store, storeEnvironment },
    {
      ...{ evidenceKey, customerId: null, distinctId, storeProductId },
      reason: unmapped ? 'unmapped_product' : 'duration_not_configured',
      evidenceSealed: seal(sealingKey, claimContext(scope, appId, evidenceKey), evidence.text),
      ...{ now, expiresAt: now + claimDays * dayMs },
    },
  )
}

/** What sealed evidence of a claim is bound to. */
export function claimContext({ projectId, environment }: Scope, appId: string, evidenceKey: string): string {
  return JSON.stringify(['pending-claim', appId, projectId, environment, evidenceKey])
}
