import { hash } from 'node:crypto'
import { answers } from './answers.ts'
import {
  type At,
  type Check,
  exact,
  hold,
  id,
  into,
  is,
  isObject,
  list,
  type Mode,
  type Of,
  object,
  type Problem,
  parse,
  say,
  text,
} from './check.ts'
import type { Highest } from './newest.ts'
import { type Profile, readProfile } from './profile.ts'

/** One request to the App API and what came back. */
export interface Exchange {
  method: string
  path: string
  /** The body before compression, undefined when it is no JSON or was refused. */
  sent: unknown
  ifNoneMatch: string | undefined
  status: number
  headers: Headers
  bytes: Uint8Array
}

/** What an answer is held against beside the contract. */
export interface Expectations {
  keys: ReadonlyMap<string, Uint8Array>
  highest: Highest
}

export interface Verdict {
  problems: Problem[]
  profile?: Profile
}

const errorBody = exact(
  { code: id(), message: id(Number.MAX_SAFE_INTEGER), request_id: id() },
  { details: object, issues: list(exact({ path: text, message: text })) },
)
const purchaseError = exact(
  { code: id(), message: id(Number.MAX_SAFE_INTEGER), request_id: id() },
  { details: object, issues: list(exact({ path: text, message: text })), detail: text },
)

/** Every rule that the answer breaks. Other paths than those of the App API are not looked at. */
export function judge(exchange: Exchange, expected: Expectations): Verdict {
  const operation = `${exchange.method} ${exchange.path}`
  const check = answers[operation]
  if (check === undefined && operation !== 'POST /profile') return { problems: [] }
  const { status, headers, bytes } = exchange
  const at: At = { path: '$', found: [], ...speechOf(headers) }
  hold(at, !headers.has('content-encoding'), 'is not compressed')
  hold(at, (headers.get('x-request-id') ?? '') !== '', 'has an X-Request-Id')
  if (operation === 'POST /profile' && (status === 200 || status === 304)) return judgeProfile(exchange, expected, at)
  const body = parse(bytes, at)?.value
  if (status === 402) checkShort(exchange, body, check, at)
  else if (status >= 400) checkError(exchange, body, at)
  else if (status === 200) check?.({ body, sent: isObject(exchange.sent) ? exchange.sent : {}, at })
  else say(at, `answers 200 or an error, not ${status}`)
  return { problems: at.found }
}

function judgeProfile({ status, headers, bytes, ifNoneMatch }: Exchange, expected: Expectations, at: At): Verdict {
  const [appId, env] = [headers.get(`${at.namespace}-app-id`), headers.get(`${at.namespace}-app-environment`)]
  checkHeaders(headers, at)
  if (status === 304) {
    hold(at, bytes.length === 0, 'has no body')
    const tag = headers.get('etag') ?? ''
    const sent: readonly string[] = (ifNoneMatch ?? '').match(/(?:W\/)?"[^"]*"/g) ?? []
    hold(at, sent.includes(tag) || ifNoneMatch?.trim() === '*', 'repeats the tag as the client sent it')
    return { problems: at.found }
  }
  const tag = `"${hash('sha256', bytes, 'base64url')}"`
  hold(at, headers.get('etag') === tag, 'has the digest of its bytes as ETag')
  const authority = { appId: appId ?? '', environment: env ?? '' }
  const outcome = readProfile(bytes, { ...expected, namespace: at.namespace, mode: at.mode, authority })
  if ('profile' in outcome) return { problems: at.found, profile: outcome.profile }
  return { problems: [...at.found, ...outcome.problems] }
}

function checkHeaders(headers: Headers, at: At): void {
  const tag = headers.get('etag') ?? ''
  hold(at, /^(?:W\/)?"[!#-~]*"$/.test(tag) && tag.length <= 256, 'has an ETag of at most 256 bytes')
  const appId = headers.get(`${at.namespace}-app-id`) ?? ''
  const named = /^[!-~](?:[ -~]*[!-~])?$/.test(appId) && appId.length <= 128
  hold(at, named, 'names the app in at most 128 bytes')
  is('test', 'live')(headers.get(`${at.namespace}-app-environment`), into(at, 'environment'))
  hold(at, headers.get('cache-control') === 'private, no-cache', 'is private and to be asked about again')
}

/** A spend that even its purchase does not cover: the decision, and what every error has. */
function checkShort(
  { path, headers, sent }: Exchange,
  body: unknown,
  check: (typeof answers)[string] | undefined,
  at: At,
): void {
  const backed = path === '/feature/consume' && isObject(sent) && sent.purchase !== undefined
  hold(at, backed, 'is 402 only where a purchase came with the command')
  if (!backed || !isObject(body)) return
  const { message, request_id, ...decision } = body
  errorBody({ code: decision.code, message, request_id }, at)
  hold(into(at, 'request_id'), request_id === headers.get('x-request-id'), 'is that of the header')
  hold(into(at, 'code'), decision.code === 'insufficient_balance', 'is insufficient_balance')
  hold(into(at, 'accepted'), decision.accepted === false, 'is false')
  check?.({ body: decision, sent, at })
}

function checkError({ path, status, headers }: Exchange, body: unknown, at: At): void {
  const shape: Check<Of<typeof errorBody>> = path === '/purchase' ? purchaseError : errorBody
  if (!shape(body, at)) return
  hold(into(at, 'request_id'), body.request_id === headers.get('x-request-id'), 'is that of the header')
  if (status === 429 || status === 503) {
    hold(at, /^[1-9][0-9]*$/.test(headers.get('retry-after') ?? ''), 'says when to try again')
  }
  hold(at, path !== '/batch' || status !== 410, 'is not 410, on which a client would keep the batch for ever')
  hold(at, status === 409 || body.code !== 'operation_conflict', 'has operation_conflict with 409 alone')
}

/**
 * The token that the headers of a profile begin with, and whom it is for: the clients of the specification have the first of
 * all tokens. Other answers do not tell, and nothing in them depends on it.
 */
function speechOf(headers: Headers): { namespace: string; mode: Mode } {
  const header = [...headers.keys()].find((each) => each.endsWith('-app-environment'))
  const namespace = header?.slice(0, -'-app-environment'.length) ?? 'service'
  return { namespace, mode: namespace === 'service' ? 'spec' : 'clients' }
}
