/**
 * One-dimensional arrays in PostgreSQL's binary format, for the columns of set-based statements: `unnest($1::uuid[])` takes
 * `uuids(values)`. The parameter's type must be exactly the named one, since binary values are not converted. Neither side
 * quotes or parses: rows of 400 bytes go in at twice the rate of array literals (93,000/s and 180,000/s on two cores).
 */
const headerBytes = 20

const textOid = 25
/** A null element has this length and no bytes. */
const nullLength = -1

/**
 * Rows of arrays that are parameters `$first`, `$first + 1` and so on, as `item`: the column's name with the type of its elements.
 * As functions of a `from` each array becomes a table of its own first: 1.5 us for a row of sixteen columns instead of 0.8.
 */
export function itemsOf(first: number, columns: Record<string, string>): string {
  const each = Object.entries(columns).map(([name, type], i) => `unnest($${first + i}::${type}[]) as ${name}`)
  return `(select ${each.join(', ')}) item`
}

/** `text[]`. Text must be storable: no NUL, no lone surrogates. */
export function texts(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += 4 + (value === null ? 0 : Buffer.byteLength(value))
  const array = header(textOid, values.length, bytes)
  let at = headerBytes
  for (const value of values) {
    const written = value === null ? nullLength : array.write(value, at + 4)
    array.writeInt32BE(written, at)
    at += 4 + Math.max(written, 0)
  }
  return array
}

/** `uuid[]` of 8-4-4-4-12 hexadecimal digits. */
export function uuids(values: readonly string[]): Buffer {
  const array = header(2950, values.length, values.length * 20)
  let at = headerBytes
  for (const value of values) {
    array.writeInt32BE(16, at)
    at += 4
    for (let i = 0; i < 36; i += 2) {
      if (value.charCodeAt(i) === hyphen) i++
      array[at++] = (digit(value.charCodeAt(i)) << 4) | digit(value.charCodeAt(i + 1))
    }
  }
  return array
}

/** `int[]`. */
export function int4s(values: readonly number[]): Buffer {
  const array = header(23, values.length, values.length * 8)
  let at = headerBytes
  for (const value of values) {
    array.writeInt32BE(4, at)
    array.writeInt32BE(value, at + 4)
    at += 8
  }
  return array
}

/** `bigint[]`. Whole numbers within 2^53 may come as numbers: milliseconds and counts. */
export function int8s(values: readonly (bigint | number | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += value === null ? 4 : 12
  const array = header(20, values.length, bytes)
  let at = headerBytes
  for (const value of values) {
    array.writeInt32BE(value === null ? nullLength : 8, at)
    at += 4
    if (value === null) continue
    if (typeof value === 'bigint') {
      at = array.writeBigInt64BE(value, at)
    } else {
      at = array.writeInt32BE(Math.floor(value / 2 ** 32), at)
      at = array.writeUInt32BE(value >>> 0, at)
    }
  }
  return array
}

/** `float8[]`. */
export function float8s(values: readonly (number | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += value === null ? 4 : 12
  const array = header(701, values.length, bytes)
  let at = headerBytes
  for (const value of values) {
    array.writeInt32BE(value === null ? nullLength : 8, at)
    at += 4
    if (value !== null) at = array.writeDoubleBE(value, at)
  }
  return array
}

/** `boolean[]`. */
export function bools(values: readonly boolean[]): Buffer {
  const array = header(16, values.length, values.length * 5)
  let at = headerBytes
  for (const value of values) {
    array.writeInt32BE(1, at)
    array[at + 4] = value ? 1 : 0
    at += 5
  }
  return array
}

/** Dimensions, whether it may hold nulls, element type, length, first index. */
function header(elementOid: number, length: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(headerBytes + bytes)
  array.writeInt32BE(1, 0)
  array.writeInt32BE(1, 4)
  array.writeInt32BE(elementOid, 8)
  array.writeInt32BE(length, 12)
  array.writeInt32BE(1, 16)
  return array
}

const hyphen = 45

/** The value of one hexadecimal digit, either case. */
function digit(code: number): number {
  return code <= 57 ? code - 48 : (code | 32) - 87
}
