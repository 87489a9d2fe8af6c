import type { JsonObject } from '../../events/index.ts'
import type { Truth } from './leaf.ts'

/** When a customer has a Feature, as its ledger said last. Instants in Unix milliseconds; null: without end. */
export interface Access {
  /** Rises with every statement about the Feature. */
  version: string
  intervals: [number, number | null][]
}

/** The event by which the ledger says so. */
export const accessEvent = '$feature_access_changed'

/** What such an event states; null when it states nothing that can be read. */
export function readAccess({ feature, version, intervals }: JsonObject): { feature: string; access: Access } | null {
  if (typeof feature !== 'string' || typeof version !== 'string' || !/^[0-9]{1,30}$/.test(version)) return null
  if (!Array.isArray(intervals)) return null
  const read = intervals.filter(isInterval)
  return read.length === intervals.length ? { feature, access: { version, intervals: read } } : null
}

function isInterval(value: unknown): value is [number, number | null] {
  if (!Array.isArray(value) || value.length !== 2) return false
  const [from, until] = value as unknown[] // the narrowing gives any
  return typeof from === 'number' && (until === null || typeof until === 'number')
}

/** The statement that counts: the one of the highest version, in whatever order they arrive. */
export function newest(a: Access | undefined, b: Access): Access {
  if (a === undefined) return b
  const [x, y] = [BigInt(a.version), BigInt(b.version)]
  if (x !== y) return x > y ? a : b
  return JSON.stringify(a.intervals) >= JSON.stringify(b.intervals) ? a : b
}

export function isActive(access: Access | undefined, now: number): Truth {
  const intervals = access?.intervals ?? []
  const holds = intervals.some(([from, until]) => from <= now && (until === null || now < until))
  const edges = intervals.flat().filter((edge) => edge !== null && edge > now) as number[] // nulls are left out
  return { holds, until: edges.length > 0 ? Math.min(...edges) : null }
}
