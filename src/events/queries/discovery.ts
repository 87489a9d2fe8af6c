import { LRUCache } from 'lru-cache'
import { eventNamesRemembered, eventSeenEveryMs, propertyKeyCharsMax } from '../../kernel/limits.ts'
import type { Consumer, JsonObject, LaneEvent } from '../types.ts'
import { addNames, type FoundProperty, seenNames } from './discovery-store.ts'

/** What a slice tells of one event name. */
export interface FoundName {
  event: string
  /** The newest receipt, Unix milliseconds. */
  at: number
  /** Bits of the types of each property. */
  properties: Map<string, number>
}

/** Known to be stored: seen by an earlier transaction, and so committed. */
interface Known {
  at: number
  properties: Map<string, number>
}

/**
 * Keeps which names and properties there are. Most slices have none that is new, and cost no statement: what is stored is
 * remembered, but only once it was read back, since a slice may yet be rolled back.
 */
export function createDiscovery(): Consumer {
  const known = new LRUCache<string, Known>({
    maxSize: eventNamesRemembered,
    sizeCalculation: ({ properties }) => 1 + properties.size,
  })
  return async (tx, scope, slice) => {
    const names = namesOf(slice)
    const fresh = names.filter((found) => isNews(found, known.get(keyOf(scope.scopeId, found.event))))
    if (fresh.length === 0) return
    const stored = await seenNames(tx, scope, fresh)
    for (const [event, before] of stored) known.set(keyOf(scope.scopeId, event), before)
    const news = fresh.filter((found) => isNews(found, stored.get(found.event)))
    if (news.length > 0) await addNames(tx, scope, news, news.flatMap(propertiesOf(stored)))
  }
}

function keyOf(scopeId: number, event: string): string {
  return `${scopeId} ${event}`
}

/** What is not stored yet, or was seen last too long ago. */
function isNews({ at, properties }: FoundName, known: Known | undefined): boolean {
  if (!known || at >= known.at + eventSeenEveryMs) return true
  for (const [property, types] of properties) {
    const before = known.properties.get(property)
    if (before === undefined || (before | types) !== before) return true
  }
  return false
}

const propertiesOf =
  (stored: Map<string, Known>) =>
  ({ event, at, properties }: FoundName): FoundProperty[] => {
    const before = stored.get(event)
    const again = before === undefined || at >= before.at + eventSeenEveryMs
    return [...properties].flatMap(([property, types]) => {
      const had = before?.properties.get(property) ?? 0
      return again || (had | types) !== had ? [{ event, property, types, at }] : []
    })
  }

/** Sorted, as rows that two transactions may write have to be. */
export function namesOf(slice: readonly LaneEvent[]): FoundName[] {
  const found = new Map<string, FoundName>()
  for (const { name, receivedAt, payload } of slice) {
    let entry = found.get(name)
    if (!entry) {
      entry = { event: name, at: receivedAt, properties: new Map() }
      found.set(name, entry)
    }
    if (receivedAt > entry.at) entry.at = receivedAt
    addTypes(entry.properties, payload.properties)
  }
  return [...found.values()].toSorted((a, b) => (a.event < b.event ? -1 : 1))
}

function addTypes(types: Map<string, number>, properties: JsonObject): void {
  for (const key of Object.keys(properties)) {
    if (directives.has(key) || key.length > propertyKeyCharsMax) continue
    const bit = bitOf(properties[key])
    const before = types.get(key) ?? 0
    if ((before | bit) !== before) types.set(key, before | bit)
  }
}

/** They change customers; they are no properties of the event. */
const directives = new Set(['$set', '$set_once', '$unset', '$increment', '$anon_distinct_id'])

/** By the bits of event_property.types. */
export const typeNames = ['string', 'number', 'boolean', 'null', 'array', 'object'] as const

function bitOf(value: unknown): number {
  const names: readonly string[] = typeNames
  return 1 << names.indexOf(value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
}
