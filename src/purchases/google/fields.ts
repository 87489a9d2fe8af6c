/**
 * Reading what a store answered. A field of another type than documented makes the whole answer unreadable: then there is no
 * verdict, instead of a guess.
 */
export class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

export type Fields = Record<string, unknown>

export function object(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Unreadable('an object is missing')
  return value as Fields // by the test above
}

export function objectOrNull(value: unknown): Fields | null {
  return value === undefined || value === null ? null : object(value)
}

export function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Unreadable('a list is missing')
  return value
}

/** Empty text is none, as in the store's own encoding. */
export function textOrNull(value: unknown): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw new Unreadable('a text has another type')
  return value
}

export function text(value: unknown): string {
  const found = textOrNull(value)
  if (found === null) throw new Unreadable('a text is missing')
  return found
}

export function flag(value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new Unreadable('a flag has another type')
  return value
}

export function countOr(value: unknown, absent: number): number {
  if (value === undefined || value === null) return absent
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new Unreadable('a count is none')
  return value
}

/** An instant in RFC 3339, to whole milliseconds. */
export function instantOrNull(value: unknown): number | null {
  const found = textOrNull(value)
  if (found === null) return null
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(found)) {
    throw new Unreadable('an instant is not RFC 3339')
  }
  const at = Date.parse(found.replace(/(\.\d{3})\d+/, '$1'))
  if (!Number.isFinite(at)) throw new Unreadable('an instant is none')
  return at
}
