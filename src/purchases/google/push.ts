import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { pushKeySetsMax, storeCallMsMax } from '../../kernel/limits.ts'
import type { StoreApp } from '../types.ts'
import { pushKeysUrl } from './access.ts'

/** Whether a Pub/Sub push comes from whom it says. */
export type PushVerdict =
  | 'genuine'
  | 'foreign'
  /** The keys could not be had: our trouble, not the sender's. */
  | 'undecided'
  | 'not_configured'

export type VerifyPush = (app: StoreApp, bearer: string) => Promise<PushVerdict>

const issuers = ['accounts.google.com', 'https://accounts.google.com']

/**
 * Verifies the bearer that Pub/Sub sends along. Anybody can have Google sign a token for an audience of their choice: whose
 * e-mail it carries is the gate. Its times are held against the wall clock.
 */
export function createVerifyPush(): VerifyPush {
  const keySets = new LRUCache<string, ReturnType<typeof createRemoteJWKSet>>({ max: pushKeySetsMax })

  return async (app, bearer) => {
    const { pushAudience: audience, pushEmail } = app.credentials.playstore ?? {}
    if (!audience || !pushEmail) return 'not_configured'
    const url = pushKeysUrl(app)
    const keys = keySets.get(url) ?? createRemoteJWKSet(new URL(url), { timeoutDuration: storeCallMsMax })
    keySets.set(url, keys)
    try {
      const { payload } = await jwtVerify(bearer, keys, {
        algorithms: ['RS256'],
        issuer: issuers,
        audience,
        clockTolerance: 60,
      })
      return isFrom(pushEmail, payload) ? 'genuine' : 'foreign'
    } catch (error) {
      return isOurTrouble(error) ? 'undecided' : 'foreign'
    }
  }
}

function isFrom(pushEmail: string, { email, email_verified: isVerified }: JWTPayload): boolean {
  return email === pushEmail && isVerified === true
}

/** Every finding about the token is one of jose's; what is none, or is about getting the keys, is the network's. */
function isOurTrouble(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return true
  return error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === 'ERR_JOSE_GENERIC'
}
