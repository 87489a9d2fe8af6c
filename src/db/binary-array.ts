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
  const { array, view } = open(textOid, values.length, bytes)
  let at = headerBytes
  for (const value of values) {
    const written = value === null ? nullLength : array.write(value, at + 4)
    view.setInt32(at, written)
    at += 4 + Math.max(written, 0)
  }
  return array
}

/** `uuid[]` of 8-4-4-4-12 hexadecimal digits. */
export function uuids(values: readonly string[]): Buffer {
  const { array, view } = open(2950, values.length, values.length * 20)
  let at = headerBytes
  for (const value of values) {
    view.setInt32(at, 16)
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
  const { array, view } = open(23, values.length, values.length * 8)
  let at = headerBytes
  for (const value of values) {
    view.setInt32(at, 4)
    view.setInt32(at + 4, value)
    at += 8
  }
  return array
}

/** `bigint[]`. Whole numbers within 2^53 may come as numbers: milliseconds and counts. */
export function int8s(values: readonly (bigint | number | null)[]): Buffer {
  return eights(20, values, (view, at, value) => {
    if (typeof value === 'bigint') return view.setBigInt64(at, value)
    view.setInt32(at, Math.floor(value / 2 ** 32))
    view.setUint32(at + 4, value >>> 0)
  })
}

/** `float8[]`. */
export function float8s(values: readonly (number | null)[]): Buffer {
  return eights(701, values, (view, at, value) => view.setFloat64(at, value))
}

/** Elements of eight bytes. By index: what iterates over an array of numbers makes an object of each. */
function eights<T>(
  elementOid: number,
  values: readonly (T | null)[],
  write: (view: DataView, at: number, value: T) => void,
): Buffer {
  let nulls = 0
  for (let i = 0; i < values.length; i++) if (values[i] === null) nulls++
  const { array, view } = open(elementOid, values.length, values.length * 12 - nulls * 8)
  let at = headerBytes
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as T | null // within its length
    view.setInt32(at, value === null ? nullLength : 8)
    at += 4
    if (value === null) continue
    write(view, at, value)
    at += 8
  }
  return array
}

/** `boolean[]`. */
export function bools(values: readonly boolean[]): Buffer {
  const { array, view } = open(16, values.length, values.length * 5)
  let at = headerBytes
  for (const value of values) {
    view.setInt32(at, 1)
    array[at + 4] = value ? 1 : 0
    at += 5
  }
  return array
}

/** With its header: dimensions, whether it may hold nulls, element type, length, first index. Written through a view, which leaves no objects behind. */
function open(elementOid: number, length: number, bytes: number): { array: Buffer; view: DataView } {
  const array = Buffer.allocUnsafe(headerBytes + bytes)
  const view = new DataView(array.buffer, array.byteOffset, array.length)
  view.setInt32(0, 1)
  view.setInt32(4, 1)
  view.setInt32(8, elementOid)
  view.setInt32(12, length)
  view.setInt32(16, 1)
  return { array, view }
}

const hyphen = 45

/** The value of one hexadecimal digit, either case. */
function digit(code: number): number {
  return code <= 57 ? code - 48 : (code | 32) - 87
}
