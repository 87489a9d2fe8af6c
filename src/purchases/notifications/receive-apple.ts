import { hash } from 'node:crypto'
import type { JsonObject } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { seal } from '../../kernel/seal.ts'
import type { AppStoreServices } from '../apple/genuine.ts'
import { verifyAppleJws } from '../apple/jws.ts'
import type { StoreApp } from '../types.ts'
import { aboutSigned } from './about.ts'
import { insertInbox } from './inbox-store.ts'
import { type InboxServices, inboxContext } from './receive.ts'

export interface AppStoreCall {
  appId: string
  body: unknown
}

/**
 * Takes one App Store Server Notification (version 2). Throws 400 for what is none, 401 for what the App Store did not sign for
 * this app, and 503 for our own faults, so that it comes again.
 */
export async function receiveAppStore(
  services: InboxServices & { appStore: AppStoreServices },
  { appId, body }: AppStoreCall,
): Promise<void> {
  const { signedPayload } = (body ?? {}) as { signedPayload?: unknown } // of any shape: looked at here
  if (typeof signedPayload !== 'string' || signedPayload === '') {
    throw refuse('invalid_request', { message: 'The body has no signedPayload.' })
  }
  const apps = await services.appsOf(appId, 'appstore')
  if (apps === null) throw refuse('not_found')
  if (apps.length === 0)
    throw refuse('service_unavailable', { message: 'The App Store is not configured for this app.' })
  const taken = await takeSigned(services, apps, signedPayload)
  if (taken === 'undecided') throw refuse('service_unavailable', { message: 'The signature cannot be verified now.' })
  if (taken === 'foreign') throw refuse('notification_unverified')
}

/** `foreign`: the App Store did not sign it for this app. `undecided`: that cannot be said now. */
export type Taken = 'new' | 'known' | 'foreign' | 'undecided'

/** Stores a notification that was sent, or that the history tells of: once, by its id. `apps`: see `appsOf`. */
export async function takeSigned(
  services: InboxServices & { appStore: AppStoreServices },
  apps: readonly StoreApp[],
  signedPayload: string,
): Promise<Taken> {
  const signed = await signedFor(services.appStore, apps, signedPayload)
  if (typeof signed === 'string') return signed
  const { app, payload } = signed
  const isNew = await insertInbox(services.pool, {
    ...{ scopeId: app.scope.scopeId, appId: app.appId, store: 'appstore', trust: app.scope.environment },
    notificationId: typeof payload.notificationUUID === 'string' ? payload.notificationUUID : '',
    kind: [payload.notificationType, payload.subtype]
      .filter((word) => typeof word === 'string')
      .join(' ')
      .slice(0, 200),
    payload: {
      ...{ sealed: seal(services.sealingKey, inboxContext, signedPayload), sha256: hash('sha256', signedPayload) },
      about: aboutSigned(dataOf(payload)),
    },
  })
  return isNew ? 'new' : 'known'
}

/** The environment whose roots it chains to: live first, for what only a test root signed may touch test data only. */
async function signedFor(
  appStore: AppStoreServices,
  apps: readonly StoreApp[],
  signedPayload: string,
): Promise<{ app: StoreApp; payload: JsonObject } | 'foreign' | 'undecided'> {
  let isOurFault = false
  for (const app of apps) {
    const payload = await readNotification(appStore, app, signedPayload)
    if (payload === 'no_trust') isOurFault = true
    else if (payload !== null) return { app, payload }
  }
  return isOurFault ? 'undecided' : 'foreign'
}

/** Null: not signed by whom the app trusts, or about another app. */
export async function readNotification(
  { clock, trusts, revocations }: AppStoreServices,
  app: StoreApp,
  signedPayload: string,
): Promise<JsonObject | null | 'no_trust'> {
  const trust = trusts.of(app)
  if (!trust) return 'no_trust'
  const wallNow = clock.now()
  const verdict = await verifyAppleJws(signedPayload, 'notification', {
    ...{ trust, now: wallNow + app.clockOffsetMs, wallNow, revoked: revocations.revoked() },
  })
  if (!verdict.ok) return null
  const data = dataOf(verdict.payload)
  // Without data it says nothing of a purchase.
  const isOurs = data === null || (data.bundleId === app.bundleId && isAppAppleId(app, data))
  return isOurs ? verdict.payload : null
}

/** Of the app in production; others carry none. */
function isAppAppleId({ credentials }: StoreApp, { environment, appAppleId }: JsonObject): boolean {
  const own = credentials.appstore?.appAppleId ?? null
  return environment !== 'Production' || own === null || appAppleId === own
}

export function dataOf({ data }: JsonObject): JsonObject | null {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? data : null
}
