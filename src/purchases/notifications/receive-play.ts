import { refuse } from '../../kernel/errors.ts'
import { seal } from '../../kernel/seal.ts'
import { tokenKeyOf } from '../google/chain.ts'
import { type Push, readPush, withoutToken } from '../google/notification.ts'
import type { VerifyPush } from '../google/push.ts'
import type { StoreApp } from '../types.ts'
import { insertInbox } from './inbox-store.ts'
import { type InboxServices, inboxContext } from './receive.ts'

export interface PlayPushCall {
  appId: string
  /** Of the header Authorization; null: none. */
  bearer: string | null
  body: unknown
}

/**
 * Takes one push of Google Play's real-time developer notifications. Throws 400 for what is none, 401 for what nobody vouches
 * for, and 503 for our own faults, so that it comes again. What is genuine and yet not for us is told to the log only.
 */
export async function receivePlay(
  services: InboxServices & { verifyPush: VerifyPush },
  { appId, bearer, body }: PlayPushCall,
): Promise<void> {
  const push = readPush(body)
  if (push === null) throw refuse('invalid_request', { message: 'The body is no Pub/Sub push.' })
  const apps = await services.appsOf(appId, 'playstore')
  if (apps === null) throw refuse('not_found')
  const app = await vouchedFor(services.verifyPush, apps, bearer)
  const trust = app.scope.environment
  const why = foreignBecause(app, push)
  if (why !== undefined) {
    services.log.warn({ app_id: appId, message_id: push.messageId, why }, 'a notification of Google Play was left out')
    return
  }
  const { notification } = push.message ?? {}
  if (!notification) return
  const token = notification.kind === 'other' ? {} : sealed(services.sealingKey, notification.token)
  await insertInbox(services.pool, {
    ...{ scopeId: app.scope.scopeId, appId, store: 'playstore', notificationId: push.messageId, trust },
    kind: notification.name,
    payload: { ...withoutToken(notification), ...token },
  })
}

function sealed(sealingKey: Buffer, token: string) {
  return { sealed: seal(sealingKey, inboxContext, token), about: [tokenKeyOf(token)] }
}

/** The app in the environment whose sender it is: live first, for what only a test trust takes may touch test data only. */
async function vouchedFor(verifyPush: VerifyPush, apps: readonly StoreApp[], bearer: string | null): Promise<StoreApp> {
  if (bearer === null) throw refuse('notification_unverified')
  const verdicts = new Set<string>()
  for (const app of apps) {
    const verdict = await verifyPush(app, bearer)
    if (verdict === 'genuine') return app
    verdicts.add(verdict)
  }
  if (verdicts.has('undecided')) throw refuse('service_unavailable', { message: 'The sender cannot be verified now.' })
  if (verdicts.has('foreign')) throw refuse('notification_unverified')
  throw refuse('service_unavailable', { message: 'Notifications of Google Play are not configured for this app.' })
}

function foreignBecause({ packageName, credentials }: StoreApp, { subscription, message }: Push): string | undefined {
  const expected = credentials.playstore?.pubsubSubscription
  if (expected && subscription !== expected) return 'of another subscription'
  if (message === null) return 'unreadable'
  return message.packageName === packageName ? undefined : 'of another package'
}
