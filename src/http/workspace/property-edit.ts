import Type, { type Static } from 'typebox'
import type { PropertyEdit } from '../../customers/index.ts'
import { cleanJson, type JsonObject } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { customerPropertiesKeysMax } from '../../kernel/limits.ts'
import { closed } from '../schema.ts'

const values = Type.Record(Type.String(), Type.Unknown())

export const PropertyEditBody = closed({
  set: Type.Optional(values),
  set_once: Type.Optional(values),
  unset: Type.Optional(Type.Array(Type.String(), { maxItems: customerPropertiesKeysMax })),
  increment: Type.Optional(Type.Record(Type.String(), Type.Number())),
})

/** By the rules of event properties: the same bounds, and U+FFFD where text could not be stored. */
export function editOf({ set, set_once, unset, increment }: Static<typeof PropertyEditBody>): PropertyEdit {
  return {
    ...(set && { set: cleanProperties(set, 'properties.set') }),
    ...(set_once && { set_once: cleanProperties(set_once, 'properties.set_once') }),
    ...(increment && { increment: cleanProperties(increment, 'properties.increment') }),
    ...(unset && { unset: clean(unset, 'properties.unset') }),
  }
}

/** Throws `invalid_request`; `path` is what the caller calls the object. */
export function cleanProperties(properties: Record<string, unknown>, path: string): JsonObject {
  return clean(properties as JsonObject, path) // parsed from JSON
}

function clean<T extends JsonObject | string[]>(value: T, path: string): T {
  const cleaned = cleanJson(value, path)
  if (cleaned.ok) return cleaned.value
  const { path: at, message } = cleaned.issue
  throw refuse('invalid_request', { param: at, message: `${at}: ${message}`, issues: [{ path: at, message }] })
}
