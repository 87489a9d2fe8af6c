import { callStore, type StoreAnswer, type StoreRequest } from '../http.ts'
import type { StoreCalls } from '../store-calls.ts'
import type { Ms, StoreApp } from '../types.ts'

/** What Stripe said. `sentAt`: the instant before it was asked. */
export type CardAnswer =
  | { kind: 'ok'; body: Record<string, unknown>; sentAt: Ms }
  | { kind: 'missing' }
  /** It does not take what was asked for; `word` is its code. */
  | { kind: 'declined'; word: string }
  /** It does not take the key. */
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterS: number | null }
  /** `answered`: with a failure of its own, which it remembers under the idempotency key. */
  | { kind: 'silent'; why: string; answered: boolean; retryAfterS?: number }

export interface CardApi {
  get: (app: StoreApp, path: string, query: Query, signal: AbortSignal) => Promise<CardAnswer>
  /** Done once for an idempotency key, however often it is asked for. */
  post: (app: StoreApp, path: string, form: Query, once: { key: string; signal: AbortSignal }) => Promise<CardAnswer>
}

/** Names as Stripe writes them: `line_items[0][price]`. */
export type Query = readonly (readonly [name: string, value: string])[]

const liveBase = 'https://api.stripe.com'
/** The shape that `session.ts` and `subscription.ts` read, whatever the account is set to. */
const version = '2024-06-20'

/** The two things that are done with Stripe: reading, and opening a page. In live it is always Stripe's own host. */
export function createCardApi(calls: StoreCalls): CardApi {
  async function ask(app: StoreApp, request: Omit<StoreRequest, 'url'>, path: string, signal: AbortSignal) {
    const base = baseOf(app)
    const line = { scope: app.scope, appId: app.appId, store: 'stripe', url: base } as const
    const url = `${base}${path}`
    const answer = await calls.through(line, signal, async () => answerOf(await callStore({ ...request, url }, signal)))
    return answer.kind === 'resting'
      ? ({ ...answer, kind: 'silent', why: 'calls rest', answered: false } as const)
      : answer
  }

  return {
    async get(app, path, query, signal) {
      const search = query.length === 0 ? '' : `?${encoded(query)}`
      return ask(app, { method: 'GET', headers: headersOf(app) }, `${path}${search}`, signal)
    },
    async post(app, path, form, { key, signal }) {
      const headers = {
        ...headersOf(app),
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': key,
      }
      return ask(app, { method: 'POST', headers, body: encoded(form) }, path, signal)
    },
  }
}

function baseOf({ scope, credentials }: StoreApp): string {
  const base = scope.environment === 'test' ? credentials.endpoints?.stripeApi : null
  return (base ?? liveBase).replace(/\/+$/, '')
}

function headersOf({ credentials }: StoreApp): Record<string, string> {
  return { authorization: `Bearer ${credentials.stripe?.secretKey ?? ''}`, 'stripe-version': version }
}

function encoded(query: Query): string {
  return new URLSearchParams(query.map(([name, value]): [string, string] => [name, value])).toString()
}

function answerOf(answer: StoreAnswer): CardAnswer {
  if (answer.kind === 'silent') return { ...answer, answered: false }
  const { status, body, retryAfterS, sentAt } = answer
  const object = isObject(body) ? body : null
  if (status === 200)
    return object ? { kind: 'ok', body: object, sentAt } : { kind: 'silent', why: 'no object', answered: false }
  if (status === 404) return { kind: 'missing' }
  if (status === 401 || status === 403) return { kind: 'refused' }
  // 409: another request with the key is under way.
  if (status === 429 || status === 409) return { kind: 'limited', retryAfterS }
  if (status >= 500 || status < 400) return { kind: 'silent', why: `status ${status}`, answered: true }
  const error = object && isObject(object.error) ? object.error : {}
  const word = error.code ?? error.type
  return { kind: 'declined', word: typeof word === 'string' ? word.slice(0, 100) : `status ${status}` }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
