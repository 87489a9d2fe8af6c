import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { isRetryable } from '../db/pool.ts'
import { type ErrorCode, Refusal, type RefusalDetail, refuse } from '../kernel/errors.ts'
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
  if (refusal.status >= 500) {
    const level = refusal.status === 503 ? 'warn' : 'error'
    request.log[level](
      { err: refusal.cause ?? refusal, request_id: request.id, path: request.routeOptions.url },
      refusal.message,
    )
  }
  const { details, issues, param, reason, retryAfterS } = refusal.detail
  if (refusal.status === 503 || refusal.status === 429) reply.header('retry-after', String(retryAfterS ?? 1))
  const common = { code: refusal.code, message: refusal.message }
  const body =
    style === 'app'
      ? { ...common, ...present({ detail: reason, details, issues }), request_id: request.id }
      : { error: { ...common, ...present({ param, issues, details }), request_id: request.id } }
  reply.code(refusal.status).header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(body))
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
