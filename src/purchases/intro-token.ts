import { createPrivateKey, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { refuse } from '../kernel/errors.ts'
import type { AppScope } from '../tenancy/index.ts'
import { insertIntroToken, type NamedTransaction, ownersOfTransaction } from './intro-token-store.ts'
import type { LoadStoreApp } from './store-app.ts'

/** Who asks, and the offer that was found for them. */
export interface IntroQuestion {
  scope: AppScope
  customerId: string
  journeyId: string
  legId: string
  placementId: string
  storeProductId: string
  allow: boolean
  /** As the device names its transaction. */
  transactionId: string
}

interface IntroServices {
  pool: Pool
  clock: Clock
  loadStoreApp: LoadStoreApp
}

const retryAfterS = 60

/**
 * Signs what an App Store takes as the decision about an introductory offer, and writes down that it did. Throws `not_found`
 * for a transaction that is none or somebody else's, `service_unavailable` without a key of the App Store, and `rate_limited`.
 */
export function createIntroTokens({ pool, clock, loadStoreApp }: IntroServices) {
  return async (question: IntroQuestion): Promise<string> => {
    const { scope, customerId, storeProductId, allow, transactionId } = question
    const { appId } = scope
    if (!/^[0-9]{1,20}$/.test(transactionId)) throw refuse('not_found')
    if (await isOthers(pool, { scope, appId, transactionId }, customerId)) throw refuse('not_found')
    const { bundleId, credentials } = await loadStoreApp(pool, scope, appId)
    const key = credentials.appstore?.api
    if (!key || bundleId === null) throw refuse('service_unavailable', { ...missing, retryAfterS })
    const nonce = randomUUID()
    const token = await new SignJWT({
      ...{ bid: bundleId, nonce, productId: storeProductId, allowIntroductoryOffer: allow, transactionId },
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: key.keyId })
      .setIssuer(key.issuerId)
      .setAudience('introductory-offer-eligibility')
      .setIssuedAt(Math.floor(clock.now() / 1000))
      .sign(createPrivateKey(key.privateKey))
    const isWritten = await insertIntroToken(pool, { ...question, appId, nonce })
    if (!isWritten) throw refuse('rate_limited', { retryAfterS })
    return token
  }
}

const missing = { message: 'The app has no key of the App Store to sign with.' }

/** Unknown ones are nobody's: Apple holds them against the account. */
async function isOthers(pool: Pool, transaction: NamedTransaction, customerId: string): Promise<boolean> {
  const owners = await ownersOfTransaction(pool, transaction)
  return owners.length > 0 && !owners.includes(customerId)
}
