import { completeCheckout } from '../card/checkout-store.ts'
import type { CardHint } from '../card/read.ts'
import type { createCardReread } from '../card/verify.ts'
import { attachOnce, contextFor, type StoreServices } from '../purchase.ts'
import type { StoreApp } from '../types.ts'
import type { Processed } from './process.ts'
import { refusedAs } from './process-play.ts'

export interface CardLifecycle {
  services: StoreServices
  reread: ReturnType<typeof createCardReread>
}

/** What each event is about. Every other one is stored and says nothing of access. */
const objectsOf: readonly (readonly [prefix: string, object: CardHint['object']])[] = [
  ['checkout.session.completed', 'checkout.session'],
  ['checkout.session.async_payment_succeeded', 'checkout.session'],
  ['invoice.paid', 'invoice'],
  ['customer.subscription.updated', 'subscription'],
  ['customer.subscription.deleted', 'subscription'],
  ['charge.refunded', 'charge'],
  ['charge.dispute.', 'dispute'],
]

/** Reads again what an event named, and gives it to whoever opened the page that it was paid on. */
export async function followCard(
  { services, reread }: CardLifecycle,
  app: StoreApp,
  { kind, objectId }: { kind: string; objectId: unknown },
): Promise<Processed> {
  const [, object] =
    objectsOf.find(([prefix]) => kind === prefix || (prefix.endsWith('.') && kind.startsWith(prefix))) ?? []
  if (object === undefined || typeof objectId !== 'string') return { kind: 'ignored', why: 'it says nothing of access' }
  const context = contextFor(services, app, { store: 'stripe', customerId: null })
  const verdict = await reread(app, { object, id: objectId }, context)
  if (verdict.kind === 'refused') return refusedAs(verdict)
  if (verdict.kind !== 'verified') return { kind: 'done' }
  const { purchase } = verdict
  const attached = await attachOnce(services, app, purchase, null)
  if (attached.kind === 'refused') return refusedAs(attached)
  if (purchase.accountToken !== null) {
    await completeCheckout(services.pool, app.scope, purchase.accountToken, services.clock.now())
  }
  return { kind: 'done' }
}
