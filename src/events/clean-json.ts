import { propertyDepthMax, propertyKeysMax } from '../kernel/limits.ts'
import { isStorable } from '../kernel/text.ts'
import { type CodedIssue, issue, type ReasonCode } from './reasons.ts'
import type { Json, JsonObject } from './types.ts'

export type Cleaned<Value> = { ok: true; value: Value; replaced: boolean } | { ok: false; issue: CodedIssue }

/**
 * Checks depth, number of keys and range of numbers of a JSON tree, and puts U+FFFD where text has NUL or lone surrogates,
 * which jsonb refuses. What needs no replacing is given back as it came, not copied. `path` names the tree in an issue.
 */
export function cleanJson<Value extends JsonObject | Json[]>(value: Value, path: string): Cleaned<Value> {
  const walk: Walk = { keys: 0, replaced: false, code: null, path: [] }
  const cleaned = cleanTree(walk, value, 1)
  if (walk.code !== null) return { ok: false, issue: issue(walk.code, [path, ...walk.path].join('.')) }
  // A tree keeps its kind: an array stays an array, an object an object.
  return { ok: true, value: cleaned as Value, replaced: walk.replaced }
}

/** The text with U+FFFD for every NUL and lone surrogate. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

interface Walk {
  keys: number
  replaced: boolean
  /** Set by the first thing that is wrong; the walk unwinds and collects where it was. */
  code: ReasonCode | null
  path: (string | number)[]
}

function cleanValue(walk: Walk, value: Json, depth: number): Json {
  if (typeof value === 'string') {
    if (isStorable(value)) return value
    walk.replaced = true
    return storable(value)
  }
  if (typeof value === 'number' && !Number.isFinite(value)) walk.code = 'number_out_of_range'
  return typeof value === 'object' && value !== null ? cleanTree(walk, value, depth) : value
}

function cleanTree(walk: Walk, value: JsonObject | Json[], depth: number): JsonObject | Json[] {
  if (depth > propertyDepthMax) {
    walk.code = 'properties_too_deep'
    return value
  }
  return Array.isArray(value) ? cleanArray(walk, value, depth) : cleanObject(walk, value, depth)
}

function cleanArray(walk: Walk, array: Json[], depth: number): Json[] {
  let copy: Json[] | null = null
  for (let i = 0; i < array.length; i++) {
    const value = array[i] ?? null
    const cleaned = cleanValue(walk, value, depth + 1)
    if (walk.code !== null) {
      walk.path.unshift(i)
      return array
    }
    if (cleaned !== value) {
      copy ??= array.slice()
      copy[i] = cleaned
    }
  }
  return copy ?? array
}

function cleanObject(walk: Walk, object: JsonObject, depth: number): JsonObject {
  const keys = Object.keys(object)
  walk.keys += keys.length
  if (walk.keys > propertyKeysMax) {
    walk.code = 'properties_too_many_keys'
    return object
  }
  let copy: JsonObject | null = null
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] ?? ''
    const value = object[key] ?? null
    const cleaned = cleanValue(walk, value, depth + 1)
    if (walk.code !== null) {
      walk.path.unshift(storable(key))
      return object
    }
    const cleanKey = isStorable(key) ? key : storable(key)
    if (cleaned !== value || cleanKey !== key) {
      copy ??= copyOf(object, keys.slice(0, i))
      walk.replaced = true
    }
    if (copy !== null) copy[cleanKey] = cleaned
  }
  return copy ?? object
}

/** Without a prototype, so that `__proto__` is a plain key. */
function copyOf(object: JsonObject, keys: string[]): JsonObject {
  const copy: JsonObject = Object.create(null)
  for (const key of keys) copy[key] = object[key] ?? null
  return copy
}
