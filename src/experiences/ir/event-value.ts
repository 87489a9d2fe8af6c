import type { Json, JsonObject } from '../../events/index.ts'
import { isObject } from '../draft/shape.ts'
import type { EventFact } from './facts.ts'

/** What an event has under a key; null when nothing. One leading `$` is dropped, as clients do. */
export function eventValue(event: EventFact, key: string): Json {
  const name = key.startsWith('$') ? key.slice(1) : key
  switch (name) {
    case 'name':
    case 'event':
      return event.name
    case 'timestamp':
      return event.occurredAtMs / 1000
    case 'distinctId':
    case 'distinct_id':
      return event.distinctId
    default:
      return name.startsWith('properties.')
        ? walk(event.properties, name.split('.').slice(1))
        : (own(event.properties, name) ?? null)
  }
}

function walk(object: Readonly<JsonObject>, keys: string[]): Json {
  let value: Json = object
  for (const key of keys) value = isObject(value) ? ((own(value, key) as Json | undefined) ?? null) : null
  return value
}

function own<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
