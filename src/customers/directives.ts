import type { EventPayload, Json, JsonObject, Warning } from '../events/index.ts'

/** The property directives of one event or one edit. Maps, because `__proto__` is a key like any other. */
export interface Directives {
  setOnce: Map<string, Json>
  set: Map<string, Json>
  /** Amounts as sent; what is no finite number is refused when it is applied. */
  increment: Map<string, Json>
  unset: Set<string>
}

/** The directives of an edit through the Workspace API. */
export interface PropertyEdit {
  set?: JsonObject
  set_once?: JsonObject
  increment?: JsonObject
  unset?: Json[]
}

/** Reads `properties` and the top level of an event, where the top level wins per key. Null: the event has none. */
export function directivesOf(payload: EventPayload, warnings: Warning[]): Directives | null {
  if (!hasDirectives(payload)) return null
  const inside = payload.properties
  return {
    setOnce: entriesOf(inside.$set_once, payload.$set_once),
    set: entriesOf(inside.$set, payload.$set),
    increment: entriesOf(inside.$increment, payload.$increment),
    unset: namesOf([inside.$unset, payload.$unset], warnings),
  }
}

export function hasDirectives(payload: EventPayload): boolean {
  const inside = payload.properties
  return (
    present(payload.$set ?? inside.$set) ||
    present(payload.$set_once ?? inside.$set_once) ||
    present(payload.$increment ?? inside.$increment) ||
    present(payload.$unset ?? inside.$unset)
  )
}

export function directivesOfEdit(edit: PropertyEdit, warnings: Warning[]): Directives {
  return {
    setOnce: entriesOf(edit.set_once),
    set: entriesOf(edit.set),
    increment: entriesOf(edit.increment),
    unset: namesOf([edit.unset], warnings),
  }
}

function present(value: Json | undefined): boolean {
  return value !== undefined && value !== null
}

function entriesOf(...sources: (Json | undefined)[]): Map<string, Json> {
  const entries = new Map<string, Json>()
  for (const source of sources) {
    if (typeof source !== 'object' || source === null || Array.isArray(source)) continue
    for (const [key, value] of Object.entries(source)) entries.set(key, value)
  }
  return entries
}

function namesOf(lists: (Json | undefined)[], warnings: Warning[]): Set<string> {
  const names = new Set<string>()
  for (const list of lists) {
    if (!Array.isArray(list)) continue
    for (const name of list) {
      if (typeof name === 'string') names.add(name)
      else warnings.push({ code: 'unset_entry_ignored', detail: `an entry of $unset is ${kindOf(name)}, not text` })
    }
  }
  return names
}

function kindOf(value: Json): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}
