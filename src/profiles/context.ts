import type { Json, JsonObject } from '../events/index.ts'
import type { DeclaredField, DeliveredRelease } from '../experiences/index.ts'

/** What a leg is given of what its journey knows; null where it requires something that is not there or has another type. */
export function contextOf(
  { inputs }: Pick<DeliveredRelease, 'inputs'>,
  { event, responses }: { event: JsonObject; responses: JsonObject },
): { event: JsonObject; responses: JsonObject } | null {
  const own = { event: take(inputs.eventFields, event), responses: take(inputs.responseFields, responses) }
  return own.event && own.responses ? { event: own.event, responses: own.responses } : null
}

/** In the order of the declaration. A device would refuse the leg silently for a value that does not fit. */
function take(fields: readonly DeclaredField[], values: JsonObject): JsonObject | null {
  const taken: [string, Json][] = []
  for (const field of fields) {
    const value = Object.hasOwn(values, field.key) ? values[field.key] : undefined
    if (value !== undefined && fits(field, value)) taken.push([field.key, value])
    else if (field.required) return null
  }
  return Object.fromEntries(taken)
}

function fits({ type, enum: words, options, min, max }: DeclaredField, value: Json): boolean {
  switch (type) {
    case 'number':
      return typeof value === 'number' && value >= (min ?? value) && value <= (max ?? value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'string':
      return typeof value === 'string' && (words?.includes(value) ?? true)
    case 'null':
      return value === null
    case 'json':
      return true
    case 'text':
    case 'date':
      return typeof value === 'string'
    case 'enum':
      return typeof value === 'string' && (options?.includes(value) ?? false)
    case 'multi_enum':
      return (
        Array.isArray(value) && new Set(value).size === value.length && value.every((one) => isOption(options, one))
      )
    default:
      return false
  }
}

function isOption(options: string[] | undefined, value: Json): boolean {
  return typeof value === 'string' && (options?.includes(value) ?? false)
}
