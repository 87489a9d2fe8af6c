import type { Json, JsonObject } from '../events/index.ts'

/**
 * A customer's properties while they are being changed. Maps, because `__proto__` is a key like any other, and null is a
 * value: a key is absent only when `values` does not have it.
 */
export interface PropertySet {
  values: Map<string, Json>
  /**
   * Event time of each key's last write or removal, in Unix milliseconds. An imported event's time is stored half a
   * millisecond earlier: at equal times live data then stays and the later of two imported events wins, by one comparison.
   */
  times: Map<string, number>
  /** Upper bound of the set's size as JSON in UTF-8; exact once it came near the limit. */
  bytes: number
}

export function emptyPropertySet(): PropertySet {
  return { values: new Map(), times: new Map(), bytes: 2 }
}

/** From the JSON text of the two columns. */
export function parsePropertySet(properties: string, times: string): PropertySet {
  return {
    values: new Map(Object.entries(JSON.parse(properties) as JsonObject)), // the column holds objects only
    times: new Map(Object.entries(JSON.parse(times) as Record<string, number>)), // written by `jsonText` below
    bytes: 3 * properties.length, // no UTF-16 unit takes more than three bytes
  }
}

export function copyOf({ values, times, bytes }: PropertySet): PropertySet {
  return { values: new Map(values), times: new Map(times), bytes }
}

/** An object without prototype: no key can reach anything inherited. */
export function toObject<Value extends Json>(map: Map<string, Value>): { [key: string]: Value } {
  const object: { [key: string]: Value } = Object.create(null)
  for (const [key, value] of map) object[key] = value
  return object
}

export function jsonText(map: Map<string, Json>): string {
  return JSON.stringify(toObject(map))
}

/** Size of the set as compact JSON in UTF-8. */
export function bytesOf(values: Map<string, Json>): number {
  return Buffer.byteLength(jsonText(values))
}

/** What one entry adds to the size: key, colon, value, comma. */
export function entryBytes(key: string, value: Json): number {
  return Buffer.byteLength(JSON.stringify(key)) + Buffer.byteLength(JSON.stringify(value)) + 2
}

/** Deep equality of JSON; the order of keys does not count, absent differs from everything. */
export function jsonEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, i) => jsonEqual(item, b[i]))
  }
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]))
}
