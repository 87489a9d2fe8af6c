import { Findings, under } from './findings.ts'

/** Judges a value at a place and tells the findings what is wrong with it. `shaped` carries the type only. */
export interface Shape<T> {
  (value: unknown, path: string, findings: Findings): void
  readonly shaped?: T
}

export type Shaped<S> = S extends Shape<infer T> ? T : never

type Shapes = Record<string, Shape<unknown>>
export type ObjectOf<R extends Shapes, O extends Shapes> = { [K in keyof R]: Shaped<R[K]> } & {
  [K in keyof O]?: Shaped<O[K]>
}

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Exactly these keys, the optional ones if they are there. */
export function object<R extends Shapes, O extends Shapes = Record<never, never>>(
  required: R,
  optional?: O,
): Shape<ObjectOf<R, O>> {
  return (value, path, findings) => {
    if (!isObject(value)) return findings.add(path, 'value_invalid', 'This must be an object.')
    for (const key of Object.keys(value)) {
      const shape = Object.hasOwn(required, key)
        ? required[key]
        : optional && Object.hasOwn(optional, key) && optional[key]
      if (shape) shape(value[key], under(path, key), findings)
      else findings.add(under(path, key), 'unknown_key', `Key "${key}" is not part of the draft format here.`)
    }
    for (const key of Object.keys(required)) {
      if (!Object.hasOwn(value, key)) findings.add(path, 'value_invalid', `Key "${key}" is missing here.`)
    }
  }
}

export function list<T>(item: Shape<T>, { min = 0, max }: { min?: number; max: number }): Shape<T[]> {
  return (value, path, findings) => {
    if (!Array.isArray(value) || value.length < min) {
      return findings.add(path, 'value_invalid', `This must be a list${min > 0 ? ` of at least ${min}` : ''}.`)
    }
    if (value.length > max) return tooMany(value.length, max, path, findings)
    for (const [i, member] of value.entries()) item(member, under(path, i), findings)
  }
}

/** An object with keys of the author's own. */
export function map<T>(item: Shape<T>, { key, max }: { key: Shape<string>; max: number }): Shape<Record<string, T>> {
  return (value, path, findings) => {
    if (!isObject(value)) return findings.add(path, 'value_invalid', 'This must be an object.')
    const keys = Object.keys(value)
    if (keys.length > max) return tooMany(keys.length, max, path, findings)
    for (const name of keys) {
      key(name, under(path, name), findings)
      item(value[name], under(path, name), findings)
    }
  }
}

function tooMany(count: number, max: number, path: string, findings: Findings): void {
  const things = path.split('/').at(-1) ?? ''
  findings.add(path, 'limit_exceeded', `${count} ${things === '' ? 'members' : things}; at most ${max}.`)
}

/** What `is` says yes to; `words` finish the sentence "This must be …". */
export function that<T>(words: string, is: (value: unknown) => boolean): Shape<T> {
  return (value, path, findings) => {
    if (!is(value)) findings.add(path, 'value_invalid', `This must be ${words}.`)
  }
}

export function word<const T extends string | number | boolean | null>(...values: T[]): Shape<T> {
  return that(values.map((value) => JSON.stringify(value)).join(' or '), (value) => values.includes(value as T)) // compared as unknown
}

export const boolean: Shape<boolean> = word(true, false)

export function text({ min = 1, max = 256 }: { min?: number; max?: number } = {}): Shape<string> {
  return that(
    `text of ${min} to ${max} characters`,
    (value) => typeof value === 'string' && value.length >= min && value.length <= max,
  )
}

/** 1 to `max` UTF-8 bytes. */
export function bytes(max: number): Shape<string> {
  return that(
    `text of 1 to ${max} bytes`,
    (value) => typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= max,
  )
}

export function pattern(words: string, expression: RegExp): Shape<string> {
  return that(words, (value) => typeof value === 'string' && expression.test(value))
}

export function whole(min: number, max: number): Shape<number> {
  return that(
    `a whole number from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  )
}

export function number(min = -Number.MAX_VALUE, max = Number.MAX_VALUE): Shape<number> {
  return that('a number in range', (value) => typeof value === 'number' && value >= min && value <= max)
}

export const anything: Shape<unknown> = () => {}

/** One of several objects, told apart by one key. */
export function tagged<K extends string, V extends Record<string, Shape<object>>>(
  key: K,
  variants: V,
): Shape<{ [T in keyof V]: { [P in K]: T } & Shaped<V[T]> }[keyof V]> {
  return (value, path, findings) => {
    const tag = isObject(value) ? value[key] : undefined
    const shape = typeof tag === 'string' && Object.hasOwn(variants, tag) ? variants[tag] : undefined
    if (!isObject(value) || !shape) {
      const names = Object.keys(variants).join(', ')
      return findings.add(path, 'value_invalid', `This must be an object with "${key}" one of ${names}.`)
    }
    const { [key]: _, ...rest } = value
    shape(rest, path, findings)
  }
}

/** Either the one or the other, whichever `isFirst` says. */
export function either<A, B>(isFirst: (value: unknown) => boolean, first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return (value, path, findings) => (isFirst(value) ? first : second)(value, path, findings)
}

/** The shape, and something more that is asked of what has it; `words` finish the sentence "This must …". */
export function also<T>(shape: Shape<T>, words: string, holds: (value: T) => boolean): Shape<T> {
  return (value, path, findings) => {
    const own = new Findings()
    shape(value, path, own)
    for (const issue of own.issues) findings.add(issue.path, issue.code, issue.message)
    // Without an issue it has the shape.
    if (own.issues.length === 0 && !holds(value as T)) findings.add(path, 'value_invalid', `This must ${words}.`)
  }
}

/** For shapes that hold themselves. */
export function lazy<T>(shape: () => Shape<T>): Shape<T> {
  return (value, path, findings) => shape()(value, path, findings)
}
