import { storeVerdictMsMax } from '../../kernel/limits.ts'
import { isAccepted } from '../environment.ts'
import type { StoreApp, Verdict, Verifier, VerifyContext } from '../types.ts'
import { readFresh } from './fresh.ts'
import { type AppStoreServices, type Genuine, genuineOf, invalid, storeProductOf, unavailable } from './genuine.ts'
import { purchaseOf } from './purchase.ts'

/** Verifies a signed transaction, and asks the App Store how things stand now where the app has a key for that. */
export function createAppStoreVerifier(services: AppStoreServices): Verifier {
  return async (app, { text }, context) => {
    if (app.bundleId === null) return unavailable('the app has no bundle_id')
    const genuine = await genuineOf(services, app, text, context.now)
    if ('kind' in genuine) return genuine
    const { transaction, storeEnvironment } = genuine
    if (!isAccepted(app, storeEnvironment, context)) return invalid('not of an environment that the key takes')
    if (storeEnvironment === 'production' && typeof app.credentials.appstore?.appAppleId !== 'number') {
      return unavailable('app_apple_id is missing')
    }
    const mapped = await context.productFor(storeProductOf(transaction))
    if (!mapped) return unmapped(genuine)

    const evidenceKey = genuine.idPrefix + transaction.transactionId
    const known = await context.known(storeEnvironment, evidenceKey)
    if (isFresh(services, app, known)) {
      // The string alone says less than what was read: nothing of grace, retries and what came after it.
      const result = { transactionId: transaction.transactionId }
      return { kind: 'as_stored', storeEnvironment, evidenceKey, result }
    }
    const fresh = needsReading(app, { genuine, known, now: context.now })
      ? await readFresh(services, app, genuine, { ...context, signal: AbortSignal.timeout(storeVerdictMsMax) })
      : null
    if (fresh?.kind === 'refused') return fresh
    return purchaseOf(app, genuine, fresh, context)
  }
}

const freshMs = 10 * 60_000
const readAgainMs = 60_000

type Known = Awaited<ReturnType<VerifyContext['known']>>

/** This very transaction was told of by the store a moment ago. */
function isFresh({ clock }: AppStoreServices, app: StoreApp, known: Known): boolean {
  if (!app.credentials.appstore?.api || known === null || known.lastReadAt === null) return false
  return clock.now() - known.lastReadAt < readAgainMs
}

function needsReading(
  app: StoreApp,
  { genuine, known, now }: { genuine: Genuine; known: Known; now: number },
): boolean {
  if (!app.credentials.appstore?.api || genuine.storeEnvironment === 'xcode') return false
  const { type, signedDate } = genuine.transaction
  return type === 'Auto-Renewable Subscription' || now - signedDate > freshMs || known?.revoked === true
}

function unmapped({ transaction, storeEnvironment, idPrefix }: Genuine): Verdict {
  const evidenceKey = idPrefix + transaction.transactionId
  return {
    ...invalid('the product leads to no Product'),
    unmapped: { storeEnvironment, evidenceKey, storeProductId: transaction.productId },
  }
}
