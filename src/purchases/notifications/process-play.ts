import { tokenKeyOf } from '../google/chain.ts'
import type { PlayKind } from '../google/play-api.ts'
import type { createPlayReread } from '../google/verify.ts'
import { insertVoidedOrders } from '../google/voided-store.ts'
import { isHeld } from '../lifecycle-store.ts'
import { attachOnce, contextFor, type StoreServices } from '../purchase.ts'
import { storedPurchase } from '../stored-purchase.ts'
import type { Refused, StoreApp } from '../types.ts'
import type { Processed } from './process.ts'

export interface PlayLifecycle {
  services: StoreServices
  reread: ReturnType<typeof createPlayReread>
}

/** What a notification or a list of Google Play told us to look at. */
export interface PlayHint {
  token: string
  bought: PlayKind | null
  voided: { orderId: string; at: number } | null
}

/**
 * Reads the purchase again wherever it is held, else for the first environment that takes it: the purchase itself says which
 * one that is. `apps` are those that the sender may speak of, live first.
 */
export async function followPlay(
  lifecycle: PlayLifecycle,
  apps: readonly StoreApp[],
  hint: PlayHint,
): Promise<Processed> {
  const { services } = lifecycle
  const key = tokenKeyOf(hint.token)
  const holding: StoreApp[] = []
  for (const app of apps) if (await isHeld(services.pool, app, 'playstore', key)) holding.push(app)
  const outcomes: Processed[] = []
  for (const app of holding.length > 0 ? holding : apps) {
    const outcome = await followIn(lifecycle, app, hint)
    outcomes.push(outcome)
    // All that hold it are told; of the others, the first that takes it is enough.
    if (holding.length === 0 && outcome.kind !== 'ignored') break
  }
  return togetherOf(outcomes)
}

/** Of several environments: one that has to be asked again speaks for all, for the others are told twice without harm. */
export function togetherOf(outcomes: readonly Processed[]): Processed {
  return (
    outcomes.find(({ kind }) => kind === 'again') ??
    outcomes.find(({ kind }) => kind === 'done') ??
    outcomes.at(-1) ?? { kind: 'ignored', why: 'nobody takes it' }
  )
}

async function followIn({ services, reread }: PlayLifecycle, app: StoreApp, hint: PlayHint): Promise<Processed> {
  // Kept first: a purchase that is read later, by whomever, is known to be refunded.
  if (hint.voided !== null) await insertVoidedOrders(services.pool, app, [hint.voided])
  const context = contextFor(services, app, { store: 'playstore', customerId: null })
  const verdict = await reread(app, { token: hint.token, kind: hint.bought }, context)
  if (verdict.kind === 'refused') return refusedAs(verdict)
  const purchase =
    verdict.kind === 'verified' ? verdict.purchase : await storedPurchase(services.pool, app, 'playstore', verdict)
  const attached = await attachOnce(services, app, purchase, null)
  if (attached.kind === 'refused') return refusedAs(attached)
  services.wake()
  return { kind: 'done' }
}

/** What will be another answer later is asked again; anything else is what the store thinks of it. */
export function refusedAs({ suffix, detail, retryAfterS }: Refused): Processed {
  const isTemporary = suffix === 'unavailable' || suffix === 'reconciliation_retryable'
  if (!isTemporary) return { kind: 'ignored', why: `${suffix}: ${detail}` }
  return { kind: 'again', why: `${suffix}: ${detail}`, ...(retryAfterS && { afterMs: retryAfterS * 1000 }) }
}
