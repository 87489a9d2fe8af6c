import type { Json, JsonObject } from '../events/index.ts'
import { joinPropertySets } from './properties.ts'
import { bytesOf, copyOf, emptyPropertySet, jsonEqual, type PropertySet } from './property-set.ts'

/** What the journal keeps of a merge, as far as its split looks at it. */
export interface MovedRecord {
  how: 'birth' | 'attach_source' | 'attach_target' | 'join'
  /** The ids that are the source's. */
  distinctIds: string[]
  source: RecordImage | null
  target: RecordImage | null
  /** By participant. */
  elsewhere: JsonObject
}

export interface RecordImage {
  identified: boolean
  /** Unix milliseconds. */
  createdAt: number
  properties: PropertySet
}

/** A customer while it is one, and the two that come out of it. */
export interface Whole {
  properties: PropertySet
  createdAt: number
}

export interface SplitParts {
  source: { properties: PropertySet; createdAt: number; identified: boolean }
  target: { properties: PropertySet; createdAt: number }
}

/**
 * Takes a merge back. The source is what it was. The target keeps what was written since the merge, and for the rest is what
 * it was before it: what the merge copied leaves, as far as nobody wrote it again.
 */
export function decideSplit(
  moved: MovedRecord,
  whole: Whole,
  { firstSeenAt, identified }: { firstSeenAt: number; identified: boolean },
): SplitParts {
  const source = moved.source?.properties ?? emptyPropertySet()
  const before = moved.target?.properties ?? (moved.source ? emptyPropertySet() : null)
  return {
    source: {
      properties: copyOf(source),
      createdAt: moved.source?.createdAt ?? firstSeenAt,
      // Whoever logged in as one of the ids meanwhile stays protected.
      identified: identified || (moved.source?.identified ?? false),
    },
    target: {
      properties: before ? withoutCopies(whole.properties, source, before) : whole.properties,
      createdAt: moved.target?.createdAt ?? whole.createdAt,
    },
  }
}

function withoutCopies(now: PropertySet, source: PropertySet, before: PropertySet): PropertySet {
  const joined = joinPropertySets(source, before, [])
  const left = copyOf(now)
  for (const key of new Set([...joined.values.keys(), ...joined.times.keys()])) {
    const untouched =
      now.times.get(key) === joined.times.get(key) && jsonEqual(now.values.get(key), joined.values.get(key))
    if (!untouched) continue
    restore(left.values, key, before.values.get(key))
    restore(left.times, key, before.times.get(key))
  }
  left.bytes = bytesOf(left.values)
  return left
}

function restore<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

/** Null for a merge that keeps too little to be taken back. */
export function movedRecordOf(moved: JsonObject | null): MovedRecord | null {
  if (moved === null) return null
  const { how, distinct_ids: ids, source, target, elsewhere } = moved
  if (!isHow(how) || !Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) return null
  if (how === 'join' && !(isObject(source) && isObject(target))) return null
  if (how === 'attach_target' && !isObject(source)) return null
  return {
    how,
    distinctIds: ids,
    source: imageOf(source),
    target: imageOf(target),
    elsewhere: isObject(elsewhere) ? elsewhere : {},
  }
}

function isHow(how: Json | undefined): how is MovedRecord['how'] {
  return how === 'birth' || how === 'attach_source' || how === 'attach_target' || how === 'join'
}

function imageOf(image: Json | undefined): RecordImage | null {
  if (!isObject(image)) return null
  const values = isObject(image.properties) ? image.properties : {}
  const times = isObject(image.props_at) ? image.props_at : {}
  const properties: PropertySet = {
    values: new Map(Object.entries(values)),
    times: new Map(Object.entries(times).map(([key, at]) => [key, Number(at)])),
    bytes: 0,
  }
  properties.bytes = bytesOf(properties.values)
  return { identified: image.identified === true, createdAt: Number(image.created_at_ms), properties }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
