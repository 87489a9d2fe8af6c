import type { Json, Warning } from '../events/index.ts'
import { customerPropertiesBytesMax, customerPropertiesKeysMax, propertyKeyCharsMax } from '../kernel/limits.ts'
import { codePoints } from '../kernel/text.ts'
import type { Directives } from './directives.ts'
import { bytesOf, copyOf, entryBytes, jsonEqual, type PropertySet } from './property-set.ts'

/** When and how the directives arrived. `at` is the clamped event time in Unix milliseconds. */
export interface Arrival {
  at: number
  /** False for imports: they replace and remove only what is older than they are. */
  live: boolean
}

/**
 * Applies the directives of one event to `set`, in place, per key in the order set_once, set, increment, unset. A key that
 * can't be written is left as it was, with a warning; the others are applied. Returns whether anything differs afterwards.
 */
export function applyDirectives(
  set: PropertySet,
  directives: Directives,
  arrival: Arrival,
  warnings: Warning[],
): boolean {
  const { setOnce, set: replace, increment, unset } = directives
  const keys = new Set([...setOnce.keys(), ...replace.keys(), ...increment.keys(), ...unset])
  let changed = false
  for (const key of keys) {
    if (codePoints(key, propertyKeyCharsMax) > propertyKeyCharsMax) {
      // A name that can't be stored is an unknown name to $unset, which ignores those.
      if (setOnce.has(key) || replace.has(key) || increment.has(key)) warn(warnings, 'property_key_too_long', key)
      continue
    }
    const before = set.values.get(key)
    const after = outcomeOf(set, key, directives, arrival, warnings)
    if (jsonEqual(before, after)) continue
    if (after !== undefined && !fits(set, key, before, after)) {
      warn(warnings, 'customer_properties_full', key)
      continue
    }
    write(set, key, before, after, arrival)
    changed = true
  }
  return changed
}

/** What all directives together make of one key; undefined is absent. */
function outcomeOf(
  set: PropertySet,
  key: string,
  { setOnce, set: replace, increment, unset }: Directives,
  { at, live }: Arrival,
  warnings: Warning[],
): Json | undefined {
  const before = set.values.get(key)
  const newer = live || at > (set.times.get(key) ?? Number.NEGATIVE_INFINITY)
  let value = before
  if (newer) {
    if (value === undefined) value = setOnce.get(key)
    if (replace.has(key)) value = replace.get(key)
  } else if ((replace.has(key) && !jsonEqual(replace.get(key), before)) || (setOnce.has(key) && before === undefined)) {
    warn(warnings, 'historical_value_older', key)
  }
  const amount = increment.get(key)
  if (amount !== undefined) {
    const sum = incremented(value, amount)
    if (typeof sum === 'number') value = sum
    else warn(warnings, sum, key)
  }
  if (!unset.has(key)) return value
  if (newer) return undefined
  if (value !== undefined) warn(warnings, 'historical_value_older', key)
  return value
}

/** The sum, or why there is none. Whole sums are exact: beyond ±(2^53 − 1) a double no longer holds each of them. */
function incremented(
  current: Json | undefined,
  amount: Json,
): number | 'increment_invalid' | 'increment_not_number' | 'increment_out_of_range' {
  if (typeof amount !== 'number' || !Number.isFinite(amount)) return 'increment_invalid'
  if (current !== undefined && typeof current !== 'number') return 'increment_not_number'
  const sum = (current ?? 0) + amount
  return Math.abs(sum) <= Number.MAX_SAFE_INTEGER ? sum : 'increment_out_of_range'
}

/** Shrinking is always allowed, also for a set that a lowered limit left too large. */
function fits(set: PropertySet, key: string, before: Json | undefined, after: Json): boolean {
  if (before === undefined && set.values.size >= customerPropertiesKeysMax) return false
  const growth = entryBytes(key, after) - (before === undefined ? 0 : entryBytes(key, before))
  if (growth <= 0 || set.bytes + growth <= customerPropertiesBytesMax) return true
  set.bytes = bytesOf(set.values)
  return set.bytes + growth <= customerPropertiesBytesMax
}

function write(
  set: PropertySet,
  key: string,
  before: Json | undefined,
  after: Json | undefined,
  arrival: Arrival,
): void {
  if (before !== undefined) set.bytes -= entryBytes(key, before)
  if (after === undefined) set.values.delete(key)
  else {
    set.values.set(key, after)
    set.bytes += entryBytes(key, after)
  }
  set.times.set(key, timeOf(set.times.get(key), arrival))
  if (set.times.size - set.values.size > 2 * customerPropertiesKeysMax) forgetOldestRemovals(set)
}

/** An imported increment adds to a value that may be newer: it must not make that value look older. */
function timeOf(before: number | undefined, { at, live }: Arrival): number {
  return live ? at : Math.max(before ?? Number.NEGATIVE_INFINITY, at - 0.5)
}

/** Times of removed keys outlive the keys; without a bound, ever new names would grow the row for ever. */
function forgetOldestRemovals(set: PropertySet): void {
  const removed = [...set.times].filter(([key]) => !set.values.has(key))
  removed.sort((a, b) => a[1] - b[1] || byKey(a, b))
  for (const [key] of removed.slice(0, removed.length - customerPropertiesKeysMax)) set.times.delete(key)
}

/** `{...source, ...target}`: the target wins per key, counters too. Keys of the source that find no room are refused. */
export function joinPropertySets(source: PropertySet, target: PropertySet, warnings: Warning[]): PropertySet {
  const joined = copyOf(target)
  // In a fixed order: which keys find room must not depend on whether the source was just loaded or just written.
  for (const [key, value] of [...source.values].toSorted(byKey)) {
    if (joined.values.has(key)) continue
    if (!fits(joined, key, undefined, value)) {
      warn(warnings, 'customer_properties_full', key)
      continue
    }
    joined.values.set(key, value)
    joined.bytes += entryBytes(key, value)
  }
  for (const [key, time] of source.times) {
    if (target.values.has(key)) continue
    const removedFromBoth = !joined.values.has(key)
    joined.times.set(key, removedFromBoth ? Math.max(time, joined.times.get(key) ?? time) : time)
  }
  if (joined.times.size - joined.values.size > 2 * customerPropertiesKeysMax) forgetOldestRemovals(joined)
  return joined
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}

function warn(warnings: Warning[], code: string, key: string): void {
  warnings.push({ code, detail: key.slice(0, propertyKeyCharsMax).toWellFormed() })
}
