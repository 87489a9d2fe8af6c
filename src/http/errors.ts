import type { FastifyBaseLogger, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { isRetryable } from '../db/pool.ts'
import { type ErrorCode, Refusal, type RefusalDetail, refuse } from '../kernel/errors.ts'
import { type Answer, sendAnswer } from './answer.ts'
import { invalid } from './validator.ts'

/** `App API`: `{code, message, request_id, details?, issues?}`; `Workspace API`: `{error: {…}}`. */
export type ErrorStyle = 'app' | 'workspace'

export function styleOf(request: FastifyRequest): ErrorStyle {
  return request.url.startsWith('/v1/') ? 'workspace' : 'app'
}

export function errorHandler(style: ErrorStyle) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    sendRefusal(style, toRefusal(error), request, reply)
  }
}

export function sendRefusal(style: ErrorStyle, refusal: Refusal, request: FastifyRequest, reply: FastifyReply): void {
  logRefusal(request.log, refusal, { requestId: request.id, path: request.routeOptions.url })
  sendAnswer(reply, answerOf(style, refusal, request.id))
}

/** What went wrong on our side is told to whoever operates the service. */
export function logRefusal(
  log: Pick<FastifyBaseLogger, 'warn' | 'error'>,
  refusal: Refusal,
  { requestId, path }: { requestId: string; path: string | undefined },
): void {
  if (refusal.status < 500) return
  const level = refusal.status === 503 ? 'warn' : 'error'
  log[level]({ err: refusal.cause ?? refusal, request_id: requestId, path }, refusal.message)
}

export function answerOf(style: ErrorStyle, refusal: Refusal, requestId: string): Answer {
  const { details, issues, param, reason, retryAfterS } = refusal.detail
  const common = { code: refusal.code, message: refusal.message }
  const body =
    style === 'app'
      ? { ...common, ...present({ detail: reason, details, issues }), request_id: requestId }
      : { error: { ...common, ...present({ param, issues, details }), request_id: requestId } }
  const answer = { status: refusal.status, body: JSON.stringify(body) }
  const isLater = refusal.status === 503 || refusal.status === 429
  return isLater ? { ...answer, headers: { 'retry-after': String(retryAfterS ?? 1) } } : answer
}

function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

/** Refusals as they are, the framework's own errors in our words, a database that is away a 503, anything else a bug. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const known = error as Partial<FastifyError>
  if (known.validation) return invalid(known.validation)
  const translation = translations.get(known.code ?? '')
  if (translation) return refuse(translation.code, { cause: error, ...translation.detail })
  if (known.statusCode === undefined && isRetryable(error)) return refuse('service_unavailable', { cause: error })
  return refuse((known.statusCode ?? 500) < 500 ? 'invalid_request' : 'internal_error', { cause: error })
}

/** The framework's own errors in our words. */
const translations = new Map<string, { code: ErrorCode; detail?: RefusalDetail }>([
  ['FST_ERR_CTP_BODY_TOO_LARGE', { code: 'payload_too_large' }],
  [
    'FST_ERR_CTP_INVALID_MEDIA_TYPE',
    { code: 'invalid_request', detail: { message: 'Content-Type must be application/json.' } },
  ],
  ['FST_ERR_CTP_EMPTY_JSON_BODY', { code: 'invalid_json' }],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', { code: 'invalid_json' }],
])
