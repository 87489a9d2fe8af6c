import { storePollLeaseMs, storePollsAtOnce } from '../../kernel/limits.ts'
import { afterEndOf } from '../google/due.ts'
import { type DueLineage, postponeLineage, takeDueLineages } from '../lifecycle-store.ts'
import type { Processed } from '../notifications/process.ts'
import { refusedAs } from '../notifications/process-play.ts'
import { attachOnce, contextFor, type StoreServices } from '../purchase.ts'
import type { Reread } from '../reverify.ts'
import type { Store, StoreApp } from '../types.ts'
import { endOfPaid, lease, lineageOf } from './lease.ts'

export interface PollParts {
  services: StoreServices
  rereads: Partial<Record<Store, Reread>>
  appOf: (scopeId: number, appId: string) => Promise<StoreApp | null>
  log: { warn: (detail: object, words: string) => void }
}

/** Reads again what is due, from any number of processes. Gives how many were looked at. */
export async function pollDue(parts: PollParts): Promise<number> {
  const due = await takeDueLineages(parts.services.pool, { max: storePollsAtOnce, leaseMs: storePollLeaseMs })
  await Promise.all(
    due.map((one) =>
      poll(parts, one).catch((error: unknown) =>
        parts.log.warn({ err: error, app_id: one.app_id }, 'a purchase could not be read again'),
      ),
    ),
  )
  return due.length
}

const retryMs = 3600_000
const retryMsMax = 24 * 3600_000

async function poll(parts: PollParts, due: DueLineage): Promise<void> {
  const { services } = parts
  const app = await parts.appOf(due.scope_id, due.app_id)
  if (app === null) return postponeLineage(services.pool, due, null)
  const processed = await readAgain(parts, app, due)
  // What was read says itself when to look again.
  if (processed.kind === 'done') return
  const now = services.clock.now() + app.clockOffsetMs
  if (processed.kind !== 'again') return postponeLineage(services.pool, due, null)
  await lease(services, app, due)
  const ended = await endOfPaid(services, app, due)
  const next = ended === null || ended > now ? now + retryMs : afterEndOf(ended, now)
  await postponeLineage(services.pool, due, Math.min(next, now + retryMsMax))
}

async function readAgain({ services, rereads }: PollParts, app: StoreApp, due: DueLineage): Promise<Processed> {
  const lineage = await lineageOf(services, app, due)
  if (!lineage) return { kind: 'ignored', why: 'gone' }
  const context = contextFor(services, app, { store: lineage.store, customerId: lineage.ownerId })
  const verdict = await rereads[lineage.store]?.(app, lineage, context)
  if (verdict === undefined || verdict.kind === 'as_stored') return { kind: 'ignored', why: 'nobody knows more' }
  if (verdict.kind === 'refused') return refusedAs(verdict)
  const attached = await attachOnce(services, app, verdict.purchase, null)
  services.wake()
  return attached.kind === 'refused' ? refusedAs(attached) : { kind: 'done' }
}
