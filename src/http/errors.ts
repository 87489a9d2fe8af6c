import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal, type RefusalDetail, refuse } from '../kernel/errors.ts'
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
  const { details, issues, param, retryAfterS } = refusal.detail
  if (refusal.status === 503 || refusal.status === 429) reply.header('retry-after', String(retryAfterS ?? 1))
  const common = { code: refusal.code, message: refusal.message }
  const body =
    style === 'app'
      ? { ...common, ...present({ details, issues }), request_id: request.id }
      : { error: { ...common, ...present({ param, issues, details }), request_id: request.id } }
  reply.code(refusal.status).header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(body))
}

function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

/** Refusals as they are, the framework's own errors in our words, anything else a bug. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const known = error as Partial<FastifyError>
  if (known.validation) return invalid(known.validation)
  const detail: RefusalDetail = { cause: error }
  switch (known.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refuse('payload_too_large', detail)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return refuse('invalid_request', { message: 'Content-Type must be application/json.' })
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return refuse('invalid_json', detail)
    default:
      return (known.statusCode ?? 500) < 500 ? refuse('invalid_request', detail) : refuse('internal_error', detail)
  }
}
