import type { Json, JsonObject } from '../../events/index.ts'

export interface FillFrom {
  event: JsonObject
  responses: JsonObject
  properties: () => Readonly<JsonObject>
}

/** Puts what fields hold in the place of what names them, such as `{type: "Event.Field", key: "plan"}`; null: nothing. */
export function fill(template: Json, from: FillFrom): Json {
  if (Array.isArray(template)) return template.map((one) => fill(one, from))
  if (typeof template !== 'object' || template === null) return template
  const read = referenceIn(template, from)
  if (read) return Object.hasOwn(read.values, read.key) ? (read.values[read.key] ?? null) : null
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, fill(value, from)]))
}

/** A map whose keys are names, whatever they are called. */
export function fillAll(templates: unknown, from: FillFrom): JsonObject {
  // A map of JSON, or absent: validation found it right.
  const entries = Object.entries((templates ?? {}) as JsonObject)
  return Object.fromEntries(entries.map(([key, template]) => [key, fill(template, from)]))
}

function referenceIn(template: JsonObject, { event, responses, properties }: FillFrom) {
  const { type, key } = template
  if (typeof key !== 'string' || Object.keys(template).length !== 2) return null
  if (type === 'Event.Field') return { values: event, key }
  if (type === 'Response.Field') return { values: responses, key }
  return type === 'Customer.Field' ? { values: properties(), key } : null
}
