import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { refuse } from '../refusal.ts'
import type { Request } from './router.ts'

/** The JSON body of a control call; refuses what does not fit, with its place. */
export function bodyOf<T extends TSchema>(shape: T, request: Request): Static<T> {
  const value = jsonOf(request)
  if (Value.Check(shape, value)) return value
  const [first] = Value.Errors(shape, value)
  throw refuse('invalid_request', `${first?.instancePath || 'the body'}: ${first?.message ?? 'does not fit'}`)
}

/** Any JSON object; an empty body is an empty one. Undefined: no JSON. */
export function jsonOf({ bytes }: Request): unknown {
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

export function recordOf(request: Request): Record<string, unknown> {
  const value = jsonOf(request)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
