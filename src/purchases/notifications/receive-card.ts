import { refuse } from '../../kernel/errors.ts'
import { isSigned } from '../card/signature.ts'
import { insertInbox } from './inbox-store.ts'
import type { InboxServices } from './receive.ts'

export interface CardCall {
  appId: string
  /** Of the header Stripe-Signature; null: none. */
  signature: string | null
  /** The bytes that were signed, and what they say. */
  raw: Buffer
  body: Record<string, unknown>
}

/**
 * Takes one event of Stripe. Throws 400 for what is none, 401 for what was not signed for this app within five minutes, and 503
 * for our own faults, so that it comes again. Of what it says only the id of its object is kept: the object is read again.
 */
export async function receiveCard(
  services: InboxServices & { now: () => number },
  { appId, signature, raw, body }: CardCall,
): Promise<void> {
  const { id, type, data } = body as { id?: unknown; type?: unknown; data?: unknown } // of any shape: looked at here
  const object = (data as { object?: unknown } | null | undefined)?.object as Record<string, unknown> | null | undefined
  const isEvent = isName(id) && isName(type) && typeof object === 'object' && object !== null
  if (!isEvent) throw refuse('invalid_request', { message: 'The body is no event of Stripe.' })
  const apps = await services.appsOf(appId, 'stripe')
  if (apps === null) throw refuse('not_found')
  if (apps.length === 0) throw refuse('service_unavailable', { message: 'Stripe is not configured for this app.' })
  // Live first: what only the test secret signed may touch test data only.
  const app = apps.find(({ credentials }) => {
    const secret = credentials.stripe?.webhookSecret
    return secret !== undefined && signature !== null && isSigned(raw, signature, { secret, now: services.now() })
  })
  if (!app) throw refuse('notification_unverified')
  await insertInbox(services.pool, {
    ...{ scopeId: app.scope.scopeId, appId, store: 'stripe', notificationId: id, trust: app.scope.environment },
    ...{ kind: type, payload: isName(object.id) ? { object: object.id } : {} },
  })
}

/** Ids and names of Stripe are short. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,255}$/.test(value)
}
