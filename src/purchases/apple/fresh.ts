import type { JsonObject } from '../../events/index.ts'
import { retryAfterS } from '../../kernel/retry-after.ts'
import type { Refused, StoreApp } from '../types.ts'
import type { AppStoreAnswer } from './api.ts'
import type { TransactionClaims } from './claims.ts'
import { type AppStoreServices, type Genuine, genuineOf, unavailable } from './genuine.ts'
import type { Renewal } from './judge.ts'
import { verifyAppleJws } from './jws.ts'

/** How things stand, by the App Store's own word; `unpolled`: it knows nothing of an old purchase, so the string alone counts. */
export type Fresh =
  | { kind: 'read'; newest: TransactionClaims; signer: string | null; renewal: Renewal | null; readAt: number }
  | { kind: 'unpolled' }

/** Longer than that no purchase takes to appear. */
const appearsWithinMs = 15 * 60_000

export async function readFresh(
  services: AppStoreServices,
  app: StoreApp,
  genuine: Genuine,
  { now, signal }: { now: number; signal: AbortSignal },
): Promise<Fresh | Refused> {
  const { transaction, storeEnvironment } = genuine
  const isSubscription = transaction.type === 'Auto-Renewable Subscription'
  const path = isSubscription
    ? `/inApps/v1/subscriptions/${encodeURIComponent(transaction.originalTransactionId)}`
    : `/inApps/v1/transactions/${encodeURIComponent(transaction.transactionId)}`
  const readAt = services.clock.now()
  const answer = await services.api.read(app, storeEnvironment, path, signal)
  if (answer.kind !== 'ok') return unread(answer, { signedAt: transaction.signedDate, now })
  const read = isSubscription ? subscriptionIn(answer.body, transaction) : { ...once, signed: signedIn(answer.body) }
  if (read === null) return unread({ kind: 'missing' }, { signedAt: transaction.signedDate, now })

  // The store answers with strings that are as good as those of a client: verified, and of the same purchase.
  const newest = await genuineOf(services, app, read.signed ?? '', now)
  const agrees =
    !('kind' in newest) &&
    newest.storeEnvironment === storeEnvironment &&
    newest.transaction.originalTransactionId === transaction.originalTransactionId &&
    (isSubscription || newest.transaction.transactionId === transaction.transactionId)
  if (!agrees) return unavailable('the App Store answered about something else')
  const info = read.renewal === null ? null : await renewalInfo(services, app, read.renewal, { transaction, now })
  if (read.renewal !== null && info === null) return unavailable('the App Store answered about something else')
  const renewal = isSubscription ? { status: read.status, info } : null
  return { kind: 'read', newest: newest.transaction, signer: newest.signer, renewal, readAt }
}

function unread(
  answer: Exclude<AppStoreAnswer, { kind: 'ok' }>,
  { signedAt, now }: { signedAt: number; now: number },
): Fresh | Refused {
  switch (answer.kind) {
    case 'missing':
      if (now - signedAt >= appearsWithinMs) return { kind: 'unpolled' }
      return {
        ...{ kind: 'refused', suffix: 'reconciliation_retryable' },
        ...{ detail: 'the App Store does not know it yet', retryAfterS: retryAfterS() },
      }
    case 'refused':
      return unavailable("the App Store does not take the app's key")
    case 'silent':
      return unavailable('the App Store does not answer', answer.retryAfterS)
  }
}

interface Signed {
  status: number | null
  signed: string | null
  renewal: string | null
}

const once = { status: null, renewal: null }

function signedIn(body: unknown): string | null {
  const { signedTransactionInfo } = fields(body)
  return typeof signedTransactionInfo === 'string' ? signedTransactionInfo : null
}

/** Null: the answer does not speak of the lineage. */
function subscriptionIn(body: unknown, { originalTransactionId }: TransactionClaims): Signed | null {
  const groups = listOf(fields(body).data)
  const items = groups.flatMap((group) => listOf(fields(group).lastTransactions)).map(fields)
  const item = items.find((each) => each.originalTransactionId === originalTransactionId)
  if (!item) return null
  const { status, signedRenewalInfo } = item
  return {
    status: typeof status === 'number' ? status : null,
    signed: signedIn(item),
    renewal: typeof signedRenewalInfo === 'string' ? signedRenewalInfo : null,
  }
}

export async function renewalInfo(
  { clock, trusts, revocations }: AppStoreServices,
  app: StoreApp,
  text: string,
  { transaction, now }: { transaction: TransactionClaims; now: number },
): Promise<JsonObject | null> {
  const trust = trusts.of(app)
  if (!trust) return null
  const verdict = await verifyAppleJws(text, 'renewal', {
    ...{ trust, now, wallNow: clock.now(), revoked: revocations.revoked() },
  })
  if (!verdict.ok) return null
  const { originalTransactionId, environment } = verdict.payload
  const agrees = originalTransactionId === transaction.originalTransactionId && environment === transaction.environment
  return agrees ? verdict.payload : null
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {} // read, never trusted
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
