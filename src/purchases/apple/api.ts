import { createPrivateKey, hash } from 'node:crypto'
import { SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../kernel/clock.ts'
import { bearersKeptMax } from '../../kernel/limits.ts'
import { callStore, type StoreAnswer } from '../http.ts'
import type { StoreCalls } from '../store-calls.ts'
import type { AppStoreCredential, StoreApp, StoreEnvironment } from '../types.ts'

export type AppStoreAnswer =
  | { kind: 'ok'; body: unknown }
  /** Apple does not know it, or not yet. */
  | { kind: 'missing' }
  /** Our key is not taken, or can't be read: an operator has to look. */
  | { kind: 'refused' }
  | { kind: 'silent'; retryAfterS: number | null }

/** Of a span of time, in Unix milliseconds. */
export interface HistoryPage {
  startDate: number
  endDate: number
  onlyFailures: boolean
  /** Null: the first page. */
  paginationToken: string | null
}

export interface AppStoreApi {
  /** Reads `path`, asked once more where Apple says that it may only be late. */
  read: (app: StoreApp, environment: StoreEnvironment, path: string, signal: AbortSignal) => Promise<AppStoreAnswer>
  write: (
    app: StoreApp,
    environment: StoreEnvironment,
    request: { path: string; body: object },
    signal: AbortSignal,
  ) => Promise<AppStoreAnswer>
  /** Up to twenty notifications. Declined: it takes neither the span nor the page as they are. */
  history: (
    app: StoreApp,
    environment: StoreEnvironment,
    page: HistoryPage,
    signal: AbortSignal,
  ) => Promise<AppStoreAnswer | { kind: 'declined' }>
}

const bases = {
  production: 'https://api.storekit.apple.com',
  sandbox: 'https://api.storekit-sandbox.apple.com',
} as const
const bearerKeptMs = 4 * 60_000
/** Not found for now, says Apple: transaction, account, app, original transaction, and its own trouble. */
const lateCodes = new Set([4040010, 4040002, 4040004, 4040006, 5000001])

type ApiKey = NonNullable<AppStoreCredential['api']>

export function createAppStoreApi(clock: Clock, calls: StoreCalls): AppStoreApi {
  const bearers = new LRUCache<string, { token: string; until: number }>({ max: bearersKeptMax })

  async function bearerOf(app: StoreApp, key: ApiKey): Promise<string | undefined> {
    const name = hash('sha256', JSON.stringify([key, app.bundleId]))
    const kept = bearers.get(name)
    const now = clock.now()
    if (kept && kept.until > now) return kept.token
    try {
      const token = await new SignJWT({ bid: app.bundleId })
        .setProtectedHeader({ alg: 'ES256', kid: key.keyId, typ: 'JWT' })
        .setIssuer(key.issuerId)
        .setAudience('appstoreconnect-v1')
        .setIssuedAt(Math.floor(now / 1000))
        .setExpirationTime(Math.floor(now / 1000) + 300)
        .sign(createPrivateKey(key.privateKey))
      bearers.set(name, { token, until: now + bearerKeptMs })
      return token
    } catch {
      return undefined
    }
  }

  async function ask(
    app: StoreApp,
    environment: StoreEnvironment,
    { method, path, body }: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: object },
    signal: AbortSignal,
  ): Promise<Judged> {
    const base = app.credentials.endpoints?.appstoreApi ?? (environment === 'xcode' ? undefined : bases[environment])
    const key = app.credentials.appstore?.api
    const token = key && (await bearerOf(app, key))
    if (base === undefined || token === undefined) return { kind: 'refused' }
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const request = { method, url: `${base.replace(/\/+$/, '')}${path}`, headers, ...sent }
    const line = { scope: app.scope, appId: app.appId, store: 'appstore', url: base } as const
    const answer = await calls.through(line, signal, async () => judge(await callStore(request, signal)))
    return answer.kind === 'resting' ? { kind: 'silent', retryAfterS: answer.retryAfterS } : answer
  }

  return {
    async read(app, environment, path, signal) {
      const answer = await ask(app, environment, { method: 'GET', path }, signal)
      return answer.isLate && !signal.aborted ? ask(app, environment, { method: 'GET', path }, signal) : answer
    },
    write: (app, environment, { path, body }, signal) => ask(app, environment, { method: 'PUT', path, body }, signal),
    async history(app, environment, { paginationToken, ...body }, signal) {
      const query = paginationToken === null ? '' : `?${new URLSearchParams({ paginationToken }).toString()}`
      const path = `/inApps/v1/notifications/history${query}`
      const answer = await ask(app, environment, { method: 'POST', path, body }, signal)
      return answer.status === 400 ? { kind: 'declined' } : answer
    },
  }
}

type Judged = AppStoreAnswer & { isLate?: boolean; status?: number }

function judge(answer: StoreAnswer): Judged {
  if (answer.kind === 'silent') return { kind: 'silent', retryAfterS: null }
  const { status, retryAfterS } = answer
  if (status === 200 || status === 202 || status === 204) return { kind: 'ok', body: answer.body }
  const { errorCode } = (answer.body ?? {}) as { errorCode?: unknown } // of any shape: read, never trusted
  const isLate = lateCodes.has(Number(errorCode))
  if (status === 404 || isLate) return { kind: 'missing', isLate }
  if (status === 401 || status === 403) return { kind: 'refused' }
  return { kind: 'silent', retryAfterS, status }
}
