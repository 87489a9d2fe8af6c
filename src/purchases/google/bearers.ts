import { createPrivateKey, hash } from 'node:crypto'
import { SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../kernel/clock.ts'
import { bearersKeptMax, storeCallMsMax } from '../../kernel/limits.ts'
import { callStore } from '../http.ts'
import type { PlayStoreCredential } from '../types.ts'

export type ServiceAccount = PlayStoreCredential['serviceAccount']

export type Bearer =
  | { kind: 'bearer'; token: string }
  /** Google does not take the key: an operator has to look. */
  | { kind: 'refused' }
  | { kind: 'silent' }

export interface Bearers {
  /** `silent` once `signal` ends; whoever else waits for the same bearer goes on waiting. */
  of: (account: ServiceAccount, signal: AbortSignal) => Promise<Bearer>
  /** Forgets this very bearer, so that the next caller gets a new one. */
  drop: (account: ServiceAccount, token: string) => void
}

const scope = 'https://www.googleapis.com/auth/androidpublisher'
const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** A bearer is not used in its last minutes, which the request it is for may outlive. */
const marginMs = 5 * 60_000

/** Bearers of service accounts, by the hash of all that a key file says; one request for each is under way at a time. */
export function createBearers(clock: Clock): Bearers {
  const kept = new LRUCache<string, { token: string; until: number }>({ max: bearersKeptMax })
  const underWay = new Map<string, Promise<Bearer>>()

  async function fetchBearer(account: ServiceAccount): Promise<Bearer> {
    const answer = await callStore(
      {
        method: 'POST',
        url: account.tokenUri,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ grant_type: grantType, assertion: await assertionOf(account) }).toString(),
      },
      // Not a caller's: others wait for the same bearer.
      AbortSignal.timeout(2 * storeCallMsMax),
    )
    if (answer.kind === 'silent' || answer.status === 429 || answer.status >= 500) return { kind: 'silent' }
    const { access_token: token, expires_in: seconds } = (answer.body ?? {}) as Record<string, unknown>
    if (answer.status !== 200) return { kind: 'refused' }
    if (typeof token !== 'string' || typeof seconds !== 'number') return { kind: 'silent' }
    kept.set(keyOf(account), { token, until: clock.now() + seconds * 1000 - marginMs })
    return { kind: 'bearer', token }
  }

  return {
    async of(account, signal) {
      const key = keyOf(account)
      const known = kept.get(key)
      if (known !== undefined && known.until > clock.now()) return { kind: 'bearer', token: known.token }
      const asking = underWay.get(key) ?? fetchBearer(account).finally(() => underWay.delete(key))
      underWay.set(key, asking)
      return Promise.race([asking, ended(signal)])
    },
    drop(account, token) {
      const key = keyOf(account)
      if (kept.peek(key)?.token === token) kept.delete(key)
    },
  }
}

function ended(signal: AbortSignal): Promise<Bearer> {
  return new Promise((resolve) => {
    const give = () => resolve({ kind: 'silent' })
    if (signal.aborted) give()
    else signal.addEventListener('abort', give, { once: true })
  })
}

function keyOf({ clientEmail, privateKeyId, privateKey, tokenUri }: ServiceAccount): string {
  return hash('sha256', JSON.stringify([clientEmail, privateKeyId, privateKey, tokenUri]))
}

/** Its times are those of the wall clock, whatever a test clock says: Google refuses an assertion from the future. */
async function assertionOf({ clientEmail, privateKeyId, privateKey, tokenUri }: ServiceAccount): Promise<string> {
  const header = { alg: 'RS256', typ: 'JWT' }
  return new SignJWT({ scope })
    .setProtectedHeader(privateKeyId === null ? header : { ...header, kid: privateKeyId })
    .setIssuer(clientEmail)
    .setAudience(tokenUri)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(createPrivateKey(privateKey))
}
