import { type Account, get } from './account.ts'
import { openPage } from './open-page.ts'
import { read } from './read.ts'

export interface CardCall {
  method: string
  /** Behind `/v1`. */
  path: string
  query: URLSearchParams
  authorization: string | undefined
  idempotencyKey: string | undefined
  body: string
}

/** Whatever the service asks of Stripe. */
export function answerCard(account: Account, call: CardCall): { status: number; body: object } {
  const { method, path, query, body } = call
  if (call.authorization !== `Bearer ${account.held.secretKey}`) {
    return { status: 401, body: { error: { type: 'invalid_request_error', message: 'Invalid API Key provided' } } }
  }
  if (method === 'POST' && path === '/checkout/sessions') return openOnce(account, call.idempotencyKey ?? '', body)
  const found = method === 'GET' ? read(account, path, query) : undefined
  if (found !== undefined) return { status: 200, body: found }
  return { status: 404, body: { error: { type: 'invalid_request_error', code: 'resource_missing' } } }
}

/** What was answered to a key is answered again; the same key for something else is refused. */
function openOnce(account: Account, key: string, form: string): { status: number; body: object } {
  const { answered } = account.held
  const known = answered[key]
  if (known !== undefined && known.form !== form) return { status: 400, body: { error: { type: 'idempotency_error' } } }
  const session = known ? get(account, known.sessionId) : openPage(account, new URLSearchParams(form))
  answered[key] = { form, sessionId: session.id }
  const { lines: _lines, carried: _carried, ...shown } = session
  return { status: 200, body: shown }
}
