import { callStore, type StoreAnswer, type StoreRequest } from '../http.ts'
import type { StoreCalls, StoreLine } from '../store-calls.ts'
import type { Bearers, ServiceAccount } from './bearers.ts'

/** What to call Google Play with, for one app in one environment. */
export interface PlayAccess {
  /** Whose credential it is. */
  whose: Pick<StoreLine, 'scope' | 'appId'>
  account: ServiceAccount
  /** Without a slash at its end. */
  base: string
  /** The app's own: a token of another package is not looked for there. */
  packageName: string
}

/** Google Play's answer, reduced to what the decision tables tell apart. */
export type PlayAnswer =
  | { kind: 'ok'; body: unknown; sentAt: number }
  /** 400 of another kind: an invalid value, a token of another package; also an address too long for Google. */
  | { kind: 'invalid' }
  | { kind: 'unknown' }
  /** Dead 60 days after the end: 410, or 400 FAILED_PRECONDITION. */
  | { kind: 'gone' }
  /** 401 twice, 403, or a key that Google does not take: an operator has to look. */
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterS: number | null }
  | { kind: 'silent'; retryAfterS?: number }

export type PlayKind = 'subscription' | 'one_time'

export interface PlayApi {
  /** The purchase as it is now. A 404 is asked once more. */
  read: (access: PlayAccess, kind: PlayKind, token: string, signal: AbortSignal) => Promise<PlayAnswer>
  acknowledge: (access: PlayAccess, kind: PlayKind, sold: Sold, signal: AbortSignal) => Promise<PlayAnswer>
  consume: (access: PlayAccess, sold: Sold, signal: AbortSignal) => Promise<PlayAnswer>
  /** One page of what was refunded, revoked or charged back since `startMs`. */
  voided: (access: PlayAccess, page: VoidedPage, signal: AbortSignal) => Promise<PlayAnswer>
}

export interface Sold {
  productId: string
  token: string
}

export interface VoidedPage {
  startMs: number
  pageToken: string | null
}

const readPath = { subscription: 'subscriptionsv2', one_time: 'productsv2' } as const
const actPath = { subscription: 'subscriptions', one_time: 'products' } as const

export function createPlayApi(bearers: Bearers, calls: StoreCalls): PlayApi {
  async function ask(access: PlayAccess, request: Request, signal: AbortSignal): Promise<PlayAnswer> {
    const line = { ...access.whose, store: 'playstore', url: access.base } as const
    const answer = await calls.through(line, signal, () => askNow(access, request, signal))
    return answer.kind === 'resting' ? { ...answer, kind: 'silent' } : answer
  }

  async function askNow(access: PlayAccess, request: Request, signal: AbortSignal): Promise<PlayAnswer> {
    const { account, base, packageName } = access
    const url = `${base}/androidpublisher/v3/applications/${encodeURIComponent(packageName)}/purchases/${request.path}`
    for (let attempt = 0; attempt < 2; attempt++) {
      const bearer = await bearers.of(account, signal)
      if (bearer.kind !== 'bearer') return bearer
      if (signal.aborted) return { kind: 'silent' }
      const answer = await callStore({ ...request, url, headers: headersOf(bearer.token, request) }, signal)
      if (answer.kind === 'silent' || answer.status !== 401) return judge(answer)
      bearers.drop(account, bearer.token)
    }
    return { kind: 'refused' }
  }

  const act = (kind: PlayKind, verb: 'acknowledge' | 'consume', { productId, token }: Sold): Request => ({
    method: 'POST',
    path: `${actPath[kind]}/${encodeURIComponent(productId)}/tokens/${encodeURIComponent(token)}:${verb}`,
    body: '{}',
  })

  return {
    async read(access, kind, token, signal) {
      const request: Request = { method: 'GET', path: `${readPath[kind]}/tokens/${encodeURIComponent(token)}` }
      const answer = await ask(access, request, signal)
      return answer.kind === 'unknown' && !signal.aborted ? ask(access, request, signal) : answer
    },
    acknowledge: (access, kind, sold, signal) => ask(access, act(kind, 'acknowledge', sold), signal),
    consume: (access, sold, signal) => ask(access, act('one_time', 'consume', sold), signal),
    voided(access, { startMs, pageToken }, signal) {
      const query = new URLSearchParams({
        ...{ type: '1', includeQuantityBasedPartialRefund: 'true', startTime: String(startMs), maxResults: '1000' },
        ...(pageToken === null ? {} : { token: pageToken }),
      })
      return ask(access, { method: 'GET', path: `voidedpurchases?${query.toString()}` }, signal)
    },
  }
}

type Request = Omit<StoreRequest, 'url' | 'headers'> & { path: string }

function headersOf(token: string, { body }: Request): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
}

function judge(answer: StoreAnswer): PlayAnswer {
  if (answer.kind === 'silent') return { kind: 'silent' }
  const { status, body, retryAfterS, sentAt } = answer
  if (status === 200 || status === 204) return { kind: 'ok', body, sentAt }
  if (status === 400) return { kind: statusOf(body) === 'FAILED_PRECONDITION' ? 'gone' : 'invalid' }
  if (status === 404) return { kind: 'unknown' }
  if (status === 410) return { kind: 'gone' }
  if (status === 414 || status === 431) return { kind: 'invalid' }
  if (status === 403) return { kind: 'refused' }
  if (status === 429) return { kind: 'limited', retryAfterS }
  return { kind: 'silent' }
}

function statusOf(body: unknown): unknown {
  const { error } = (body ?? {}) as { error?: { status?: unknown } } // of any shape: read, never trusted
  return error?.status
}
