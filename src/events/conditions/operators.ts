import { assert } from '../../kernel/assert.ts'
import { parseTimestamp } from '../timestamp.ts'
import type { Json } from '../types.ts'

/**
 * The one operator table of segments, triggers and event queries. A property is a JSON value or absent; absent passes
 * `not_exists` and nothing else, `null` is a value like any other. Nothing is converted: `5` and `"5"` differ, and an order
 * holds between two numbers, two times or two texts only.
 */
export const operators = [
  ...['eq', 'neq', 'in', 'not_in', 'contains', 'not_contains', 'starts_with', 'ends_with'],
  ...['gt', 'gte', 'lt', 'lte', 'between', 'exists', 'not_exists'],
] as Operator[] // spreading widens the literals

export type Operator =
  | 'eq'
  | 'neq'
  | 'in'
  | 'not_in'
  | 'contains'
  | 'not_contains'
  | 'starts_with'
  | 'ends_with'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'between'
  | 'exists'
  | 'not_exists'

/** What an operator compares with: nothing, one value, a list of values, a text, a number or text, or two of these. */
export type Operand = 'none' | 'scalar' | 'list' | 'text' | 'bound' | 'range'

export const operandOf: Record<Operator, Operand> = {
  eq: 'scalar',
  neq: 'scalar',
  in: 'list',
  not_in: 'list',
  contains: 'scalar',
  not_contains: 'scalar',
  starts_with: 'text',
  ends_with: 'text',
  gt: 'bound',
  gte: 'bound',
  lt: 'bound',
  lte: 'bound',
  between: 'range',
  exists: 'none',
  not_exists: 'none',
}

/** Whether a property passes; undefined is absent. */
export type Test = (property: Json | undefined) => boolean

/** Makes the test of one operator. `value` is such as `operandOf` says. */
export function testOf(op: Operator, value: Json): Test {
  switch (op) {
    case 'exists':
      return (property) => property !== undefined
    case 'not_exists':
      return (property) => property === undefined
    case 'eq':
      return (property) => property === value
    case 'neq':
      return present((property) => property !== value)
    case 'in':
      return present(oneOf(value))
    case 'not_in':
      return present(not(oneOf(value)))
    case 'contains':
      return present(containing(value))
    case 'not_contains':
      return present(not(containing(value)))
    case 'starts_with':
      return (property) => typeof property === 'string' && property.startsWith(textIn(value))
    case 'ends_with':
      return (property) => typeof property === 'string' && property.endsWith(textIn(value))
    case 'gt':
      return ordered(value, (order) => order > 0)
    case 'gte':
      return ordered(value, (order) => order >= 0)
    case 'lt':
      return ordered(value, (order) => order < 0)
    case 'lte':
      return ordered(value, (order) => order <= 0)
    case 'between':
      return between(value)
  }
}

/** Parsing lets these operators have texts only. */
function textIn(value: Json): string {
  assert(typeof value === 'string', 'the operator compares with a text')
  return value
}

function present(test: (property: Json) => boolean): Test {
  return (property) => property !== undefined && test(property)
}

function not(test: (property: Json) => boolean) {
  return (property: Json) => !test(property)
}

function oneOf(value: Json): (property: Json) => boolean {
  const values = new Set(Array.isArray(value) ? value : [value])
  return (property) => values.has(property)
}

/** A text contains a text; a list contains an element. */
function containing(value: Json): (property: Json) => boolean {
  return (property) => {
    if (typeof property === 'string') return typeof value === 'string' && property.includes(value)
    return Array.isArray(property) && property.includes(value)
  }
}

function between(value: Json): Test {
  const [low = null, high = null] = Array.isArray(value) ? value : []
  const [from, to] = [ordered(low, (order) => order >= 0), ordered(high, (order) => order <= 0)]
  return (property) => from(property) && to(property)
}

/** The bound decides what is compared: a number with numbers, a time with texts that are times, other text with text. */
function ordered(bound: Json, passes: (order: number) => boolean): Test {
  const kind = kindOf(bound)
  if (kind === null) return () => false
  return (property) => {
    const order = property === undefined ? null : orderOf(property, bound, kind)
    return order !== null && passes(order)
  }
}

type Kind = { kind: 'number' } | { kind: 'text' } | { kind: 'time'; at: number }

function kindOf(bound: Json): Kind | null {
  if (typeof bound === 'number') return { kind: 'number' }
  if (typeof bound !== 'string') return null
  const at = parseTimestamp(bound)
  return at === null ? { kind: 'text' } : { kind: 'time', at }
}

function orderOf(property: Json, bound: Json, kind: Kind): number | null {
  if (kind.kind === 'number') return typeof property === 'number' ? property - Number(bound) : null
  if (typeof property !== 'string') return null
  if (kind.kind === 'text') return compareText(property, textIn(bound))
  const at = parseTimestamp(property)
  return at === null ? null : at - kind.at
}

/** Whether two bounds can be compared and the first is not above the second. */
export function isRange(low: Json, high: Json): boolean {
  const [from, to] = [kindOf(low), kindOf(high)]
  return from !== null && from.kind === to?.kind && (orderOf(low, high, to) ?? 1) <= 0
}

/** By code points, as PostgreSQL's collation "C" orders UTF-8; by UTF-16 units a 🍋 would stand before U+E000. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates come after all other units, since what they write lies above U+FFFF. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
