import type { JsonObject } from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { retryAfterS } from '../../kernel/retry-after.ts'
import { storeEnvironmentOf } from '../environment.ts'
import type { Refused, StoreApp, StoreEnvironment } from '../types.ts'
import type { AppStoreApi } from './api.ts'
import type { TransactionClaims } from './claims.ts'
import { verifyAppleJws } from './jws.ts'
import type { Revocations } from './revocations.ts'
import type { Trusts } from './trusts.ts'

export interface AppStoreServices {
  clock: Clock
  api: AppStoreApi
  trusts: Trusts
  revocations: Revocations
}

/** A transaction whose signature, app, environment and Product are right. */
export interface Genuine {
  transaction: TransactionClaims
  storeEnvironment: StoreEnvironment
  /** Before the ids of Xcode: they are unique for one pinned certificate only. */
  idPrefix: string
  /** Hex SHA-256 of Apple's certificate that signed it; null: stored earlier, or signed by Xcode. */
  signer: string | null
}

/** Everything that a signature can tell: also for what notifications and reads carry. */
export async function genuineOf(
  { clock, trusts, revocations }: Pick<AppStoreServices, 'clock' | 'trusts' | 'revocations'>,
  app: StoreApp,
  text: string,
  now: number,
): Promise<Genuine | Refused> {
  const trust = trusts.of(app)
  if (!trust) return unavailable('the trusted roots cannot be read')
  const verdict = await verifyAppleJws(text, 'transaction', {
    ...{ trust, now, wallNow: clock.now(), revoked: revocations.revoked() },
  })
  if (!verdict.ok) return invalid(verdict.reason)
  const { payload, signer } = verdict
  if (signer.kind === 'apple') {
    revocations.seen(signer.chain)
    if (app.settings.revocation === 'strict' && !revocations.isGood(signer.chain)) {
      return unavailable('the revocation of a certificate is not known')
    }
  }
  const transaction = payload as TransactionClaims // its claims were judged
  if (transaction.bundleId !== app.bundleId) return invalid('of another app')
  const idPrefix = signer.kind === 'xcode' ? `${signer.fingerprint.slice(0, 16)}:` : ''
  const leaf = signer.kind === 'apple' ? signer.chain.fingerprints[0] : null
  return { transaction, storeEnvironment: storeEnvironmentOf(payload.environment), idPrefix, signer: leaf }
}

export function storeProductOf({ productId }: JsonObject & { productId: string }) {
  return { storeProductId: productId, basePlanId: null, purchaseOptionId: null, offerId: null }
}

export function invalid(detail: string) {
  return { kind: 'refused', suffix: 'invalid', detail } as const
}

export function unavailable(detail: string, waitS: number | null = null) {
  return { kind: 'refused', suffix: 'unavailable', detail, retryAfterS: waitS ?? retryAfterS() } as const
}
