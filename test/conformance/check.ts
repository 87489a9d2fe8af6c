import { isDeepStrictEqual } from 'node:util'
import { parseStrict } from './strict-json.ts'

/** A rule that is broken, and the path of the value that breaks it: `$.armedLegs[0].binding`. */
export interface Problem {
  path: string
  rule: string
}

/** Which clients the answer is meant for: those in the field, which refuse the entry `always`, or those of the specification. */
export type Mode = 'clients' | 'spec'

/** Where the check stands, and what it found so far. */
export interface At {
  path: string
  found: Problem[]
  /** The token that all interface words begin with. */
  namespace: string
  mode: Mode
}

/** Says whether a value is of the shape, and why not in `at.found`: every problem of a value, not only the first. */
export type Check<T> = (value: unknown, at: At) => value is T
export type Of<C> = C extends Check<infer T> ? T : never

export function say(at: At, rule: string): false {
  at.found.push({ path: at.path, rule })
  return false
}

/** Says the rule unless it holds. */
export function hold(at: At, holds: boolean, rule: string): boolean {
  return holds || say(at, rule)
}

export function into(at: At, key: string | number): At {
  return { ...at, path: typeof key === 'number' ? `${at.path}[${key}]` : `${at.path}.${key}` }
}

/** The value of strict JSON; undefined, and said, when the bytes are none. */
export function parse(bytes: Uint8Array, at: At): { value: unknown } | undefined {
  try {
    return { value: parseStrict(bytes) }
  } catch (error) {
    say(at, `is strict JSON: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** Object, but neither array nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const anything: Check<unknown> = (_value): _value is unknown => true

export const object: Check<Record<string, unknown>> = (value, at): value is Record<string, unknown> =>
  hold(at, isObject(value), 'is an object')

export const text: Check<string> = (value, at): value is string => hold(at, typeof value === 'string', 'is a string')

export const flag: Check<boolean> = (value, at): value is boolean =>
  hold(at, typeof value === 'boolean', 'is true or false')

/** A string about which more is true. */
export function textWhich(holds: (value: string) => boolean, rule: string): Check<string> {
  return (value, at): value is string => hold(at, typeof value === 'string' && holds(value), rule)
}

export const matching = (pattern: RegExp): Check<string> =>
  textWhich((value) => pattern.test(value), `is a string like ${pattern.source}`)

/** Not empty, of at most so many UTF-16 units. */
export const id = (unitsMax = 256): Check<string> =>
  textWhich((value) => value !== '' && value.length <= unitsMax, `is a string of 1 to ${unitsMax} units`)

export const textUpTo = (unitsMax: number): Check<string> =>
  textWhich((value) => value.length <= unitsMax, `is a string of at most ${unitsMax} units`)

/** A string of so many UTF-8 bytes, at least one. */
export const utf8 = (bytesMax: number): Check<string> =>
  textWhich((value) => value !== '' && Buffer.byteLength(value) <= bytesMax, `is a string of 1 to ${bytesMax} bytes`)

export const rid = textWhich(
  (value) => value !== '' && value.length <= 128 && !value.includes('\0'),
  'is a string of 1 to 128 units without NUL',
)

export const jid = textWhich(
  (value) => value !== '' && value.length <= 256 && Buffer.byteLength(value) <= 256 && value.isWellFormed(),
  'is well-formed text of 1 to 256 bytes',
)

export const pid = textWhich(
  (value) => value !== '' && value.length <= 128 && value.trim() === value,
  'is a string of 1 to 128 units without white space at its ends',
)

export const name = textWhich(
  (value) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(value) && !['true', 'false', 'null'].includes(value),
  'is a name',
)

export const digest = matching(/^[a-f0-9]{64}$/)

export function integer(min = 0, max = Number.MAX_SAFE_INTEGER): Check<number> {
  return (value, at): value is number =>
    hold(at, Number.isInteger(value) && between(value, min, max), `is a whole number from ${min} to ${max}`)
}

export function number(min = -Number.MAX_VALUE, max = Number.MAX_VALUE): Check<number> {
  return (value, at): value is number =>
    hold(at, Number.isFinite(value) && between(value, min, max), `is a number from ${min} to ${max}`)
}

/** Greater than zero. */
export function positive(max = Number.MAX_VALUE): Check<number> {
  return (value, at): value is number =>
    hold(at, Number.isFinite(value) && value !== 0 && between(value, 0, max), `is a number above 0, at most ${max}`)
}

function between(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

/** RFC 3339 with seconds, and a day that the calendar has. */
export const time = textWhich((value) => {
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(value)
  if (parts === null) return false
  const [year = 0, month = 0, day = 0, ...clock] = parts.slice(1).map((part) => Number(part ?? 0))
  const [hour = 0, minute = 0, second = 0, offsetHours = 0, offsetMinutes = 0] = clock
  const days = new Date(Date.UTC(2000, month, 0))
  days.setUTCFullYear(year, month, 0)
  const dated = month >= 1 && month <= 12 && day >= 1 && day <= days.getUTCDate()
  return dated && hour < 24 && minute < 60 && second < 60 && offsetHours < 24 && offsetMinutes < 60
}, 'is a time of RFC 3339 with seconds')

export function is<const T extends string | number | boolean | null>(...words: T[]): Check<T> {
  const set = new Set<unknown>(words)
  return (value, at): value is T =>
    hold(at, set.has(value), `is ${words.map((each) => JSON.stringify(each)).join(' or ')}`)
}

export function nullOr<T>(check: Check<T>): Check<T | null> {
  return (value, at): value is T | null => value === null || check(value, at)
}

/** A string that follows from the namespace. */
export function word(of: (namespace: string) => string): Check<string> {
  return (value, at): value is string => hold(at, value === of(at.namespace), `is "${of(at.namespace)}"`)
}

interface Bounds {
  min?: number
  max?: number
}

export function list<T>(check: Check<T>, { min = 0, max = Number.POSITIVE_INFINITY }: Bounds = {}): Check<T[]> {
  return (value, at): value is T[] => {
    if (!Array.isArray(value)) return say(at, 'is an array')
    const counted = hold(at, value.length >= min && value.length <= max, `has ${min} to ${max} members`)
    // Beyond the limit nothing more is read: the answer is refused anyway.
    return counted && all(value.map((each, index) => check(each, into(at, index))))
  }
}

/** Keys of the object are data. */
export function record<T>(key: Check<string>, check: Check<T>): Check<Record<string, T>> {
  return (value, at): value is Record<string, T> => {
    if (!isObject(value)) return say(at, 'is an object')
    return all(
      Object.entries(value).flatMap(([each, inner]) => [key(each, into(at, each)), check(inner, into(at, each))]),
    )
  }
}

type Fields = Record<string, Check<unknown>>
type Fixed<R extends Fields, O extends Fields> = { [K in keyof R]: Of<R[K]> } & { [K in keyof O]?: Of<O[K]> }

/** Exactly these keys; those of `optional` may be absent, but are never null for it. */
export function exact<R extends Fields, O extends Fields = Record<never, never>>(
  required: R,
  optional?: O,
): Check<Fixed<R, O>> {
  const known = new Map<string, Check<unknown>>(Object.entries({ ...required, ...optional }))
  return (value, at): value is Fixed<R, O> => {
    if (!isObject(value)) return say(at, 'is an object')
    const missing = Object.keys(required).filter((key) => !Object.hasOwn(value, key))
    return all([
      ...missing.map((key) => say(into(at, key), 'is there')),
      ...Object.entries(value).map(([key, inner]) => {
        const check = known.get(key)
        return check === undefined ? say(into(at, key), 'is no key of this object') : check(inner, into(at, key))
      }),
    ])
  }
}

/** The fields of one variant beside the key that names it. */
export interface Variant {
  required: Fields
  optional: Fields
}

export function fields(required: Fields = {}, optional: Fields = {}): Variant {
  return { required, optional }
}

export type Tagged<K extends string, V extends string> = { [key in K]: V } & Record<string, unknown>

/** An object whose `key` says which further keys it has. */
export function tagged<K extends string, V extends string>(key: K, variants: Record<V, Variant>): Check<Tagged<K, V>> {
  const checks = new Map<unknown, Check<unknown>>(
    Object.entries<Variant>(variants).map(([each, { required, optional }]) => [
      each,
      exact({ [key]: text, ...required }, optional),
    ]),
  )
  return (value, at): value is Tagged<K, V> => {
    if (!isObject(value)) return say(at, 'is an object')
    const check = Object.hasOwn(value, key) ? checks.get(value[key]) : undefined
    return check === undefined ? say(into(at, key), `is one of ${[...checks.keys()].join(' ')}`) : check(value, at)
  }
}

/** The check, and then what else is true of a value of this shape. */
export function also<T>(check: Check<T>, more: (value: T, at: At) => unknown): Check<T> {
  return (value, at): value is T => {
    if (!check(value, at)) return false
    const before = at.found.length
    more(value, at)
    return at.found.length === before
  }
}

/** The check is looked up when it is first needed: for shapes that contain themselves. */
export function later<T>(check: () => Check<T>): Check<T> {
  return (value, at): value is T => check()(value, at)
}

/** Strictly ascending by code unit, and so without repetition; `key` is what is compared. */
export function ascending<T>(check: Check<T[]>, key: (item: T) => string, rule: string): Check<T[]> {
  return also(check, (items, at) => {
    const keys = items.map(key)
    hold(
      at,
      keys.every((each, index) => index === 0 || (keys[index - 1] ?? '') < each),
      `ascends by ${rule}`,
    )
  })
}

export const asc = (check: Check<string>, bounds: Bounds = {}): Check<string[]> =>
  ascending(list(check, bounds), (each) => each, 'code unit')

export function distinct<T>(check: Check<T[]>, key: (item: T) => string, rule: string): Check<T[]> {
  return also(check, (items, at) => hold(at, areDistinct(items.map(key)), `has each ${rule} once`))
}

export function areDistinct(keys: readonly string[]): boolean {
  return new Set(keys).size === keys.length
}

export function sameSet(one: Iterable<string>, other: Iterable<string>): boolean {
  return isDeepStrictEqual(new Set(one), new Set(other))
}

function all(results: boolean[]): boolean {
  return results.every(Boolean)
}
