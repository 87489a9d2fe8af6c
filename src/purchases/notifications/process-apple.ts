import type { JsonObject } from '../../events/index.ts'
import { renewalInfo } from '../apple/fresh.ts'
import { type AppStoreServices, type Genuine, genuineOf } from '../apple/genuine.ts'
import { purchaseOf } from '../apple/purchase.ts'
import { isAccepted } from '../environment.ts'
import { attachOnce, contextFor, type StoreServices } from '../purchase.ts'
import type { StoreApp, Verdict, Verifier } from '../types.ts'
import type { Processed } from './process.ts'
import { refusedAs, togetherOf } from './process-play.ts'
import { dataOf, readNotification } from './receive-apple.ts'

export interface AppStoreLifecycle {
  services: StoreServices
  appStore: AppStoreServices
  verify: Verifier
}

/** Those that say something of access. What the others carry was, or will be, told by one of these. */
const telling = new Set<unknown>([
  ...['SUBSCRIBED', 'DID_RENEW', 'RENEWAL_EXTENDED', 'OFFER_REDEEMED', 'DID_CHANGE_RENEWAL_PREF'],
  ...['DID_CHANGE_RENEWAL_STATUS', 'DID_FAIL_TO_RENEW', 'GRACE_PERIOD_EXPIRED', 'EXPIRED'],
  ...['REFUND', 'REFUND_REVERSED', 'REVOKE', 'ONE_TIME_CHARGE'],
])

/** What a stored notification follows to: the state that it carries, or the one that the App Store has by now. */
export async function processAppStore(
  lifecycle: AppStoreLifecycle,
  apps: readonly StoreApp[],
  signedPayload: string,
): Promise<Processed> {
  const outcomes: Processed[] = []
  for (const app of apps) {
    const payload = await readNotification(lifecycle.appStore, app, signedPayload)
    if (payload === 'no_trust') return { kind: 'again', why: 'the trusted roots cannot be read' }
    const data = payload && dataOf(payload)
    if (!payload || !data || !telling.has(payload.notificationType)) continue
    outcomes.push(await followSigned(lifecycle, app, data))
  }
  return togetherOf(outcomes)
}

async function followSigned(
  { services, appStore, verify }: AppStoreLifecycle,
  app: StoreApp,
  data: JsonObject,
): Promise<Processed> {
  const { signedTransactionInfo, signedRenewalInfo, status } = data
  if (typeof signedTransactionInfo !== 'string') return { kind: 'ignored', why: 'no transaction' }
  const asking = contextFor(services, app, { store: 'appstore', customerId: null })
  const genuine = await genuineOf(appStore, app, signedTransactionInfo, asking.now)
  if ('kind' in genuine) return refusedAs(genuine)
  const { idPrefix, storeEnvironment, transaction } = genuine
  const held = (await asking.known(storeEnvironment, idPrefix + transaction.originalTransactionId)) !== null
  if (!isAccepted(app, storeEnvironment, { ...asking, held })) return { kind: 'ignored', why: 'environment' }
  // Asked at once, however lately it was: something has happened since.
  const context = { ...asking, held, known: async () => null }
  const verdict = app.credentials.appstore?.api
    ? await verify(app, { store: 'appstore', text: signedTransactionInfo, claims: {}, consume: false }, context)
    : await asSigned(appStore, app, genuine, { signedRenewalInfo, status }, context)
  if (verdict.kind === 'refused') return refusedAs(verdict)
  if (verdict.kind !== 'verified') return { kind: 'done' }
  const attached = await attachOnce(services, app, verdict.purchase, null)
  if (attached.kind === 'refused') return refusedAs(attached)
  services.wake()
  return { kind: 'done' }
}

/** Without a key to ask with, what was signed counts. Its parts are verified each on their own and have to agree. */
async function asSigned(
  appStore: AppStoreServices,
  app: StoreApp,
  genuine: Genuine,
  { signedRenewalInfo, status }: Record<string, unknown>,
  context: Parameters<Verifier>[2],
): Promise<Verdict> {
  const { now } = context
  const { transaction, signer } = genuine
  const info =
    typeof signedRenewalInfo === 'string'
      ? await renewalInfo(appStore, app, signedRenewalInfo, { transaction, now })
      : null
  if (info === null) return purchaseOf(app, genuine, null, context)
  const renewal = { status: typeof status === 'number' ? status : null, info }
  const fresh = { kind: 'read', newest: transaction, signer, renewal, readAt: now } as const
  const verdict = await purchaseOf(app, genuine, fresh, context)
  // Nobody was asked: whoever brings it next may ask at once.
  return verdict.kind === 'verified' ? { ...verdict, purchase: { ...verdict.purchase, readAt: null } } : verdict
}
