import { type Json, parseTimestamp } from '../../events/index.ts'
import { found } from './pattern.ts'

export function truthy(value: Json): boolean {
  if (Array.isArray(value)) return value.length > 0
  return typeof value !== 'object' && Boolean(value)
}

/** As a number where both sides have one, else as text where both have it, else only by being null. Undefined is unknown. */
export function compare(op: string, left: Json | undefined, right: Json | undefined): boolean | undefined {
  if (left === undefined || right === undefined) return undefined
  if (op === 'in' || op === 'not_in') return isMember(left, right) === (op === 'in')
  const order = orderOf(left, right)
  if (order === null) {
    if (op === '==') return left === null && right === null
    return op === '!=' && (left === null || right === null)
  }
  return ordered(op, order)
}

function ordered(op: string, order: number): boolean | undefined {
  switch (op) {
    case '==':
      return order === 0
    case '!=':
      return order !== 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    default:
      return undefined
  }
}

/** Below 0, 0, above 0; null when the two can't be compared. */
function orderOf(left: Json, right: Json): number | null {
  const [a, b] = [numberOf(left), numberOf(right)]
  if (a !== undefined && b !== undefined) return a - b
  const [s, t] = [textOf(left), textOf(right)]
  if (s === undefined || t === undefined) return null
  return s < t ? -1 : s > t ? 1 : 0
}

function isMember(left: Json, right: Json): boolean {
  const text = textOf(left)
  return text !== undefined && Array.isArray(right) && right.some((element) => textOf(element) === text)
}

const decimal = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

export function isDecimal(text: string): boolean {
  return decimal.test(text)
}

export function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0
  const number = typeof value === 'string' && isDecimal(value) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** A whole number has no fraction and no exponent, however large. */
export function textOf(value: Json | undefined): string | undefined {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (typeof value === 'number') return Number.isInteger(value) ? `${BigInt(value)}` : String(value)
  return typeof value === 'string' ? value : undefined
}

const comparisons = new Map([
  ['eq', '=='],
  ['neq', '!='],
  ['gt', '>'],
  ['gte', '>='],
  ['lt', '<'],
  ['lte', '<='],
  ['in', 'in'],
  ['not_in', 'not_in'],
])

/** Whether a stored value passes. Null is a value that isn't there. */
export function predicate(op: string, value: Json, against: Json | undefined): boolean | undefined {
  if (op === 'has' || op === 'is_set') return value !== null
  if (op === 'is_not_set') return value === null
  const comparison = comparisons.get(op)
  if (comparison !== undefined) return compare(comparison, value, against)
  if (against === undefined) return undefined
  if (op === 'icontains') return contains(value, against)
  if (op === 'regex') return matches(value, against)
  return isDateOp(op) ? dateHolds(op, value, against) : undefined
}

function contains(value: Json, against: Json): boolean {
  const sought = textOf(against)?.toLowerCase()
  if (sought === undefined) return false
  const texts = Array.isArray(value) ? value : [value]
  return texts.some((text) => textOf(text)?.toLowerCase().includes(sought))
}

function matches(value: Json, against: Json): boolean | undefined {
  const [text, pattern] = [textOf(value), textOf(against)]
  return text === undefined || pattern === undefined ? false : found(pattern, text)
}

export function isDateOp(op: string): boolean {
  return op === 'is_date_exact' || op === 'is_date_after' || op === 'is_date_before'
}

const dayMs = 86_400_000

/** The same day is a day of UTC. */
function dateHolds(op: string, value: Json, against: Json): boolean {
  const [at, bound] = [instantOf(value), instantOf(against)]
  if (at === null || bound === null) return false
  if (op === 'is_date_exact') return Math.floor(at / dayMs) === Math.floor(bound / dayMs)
  return op === 'is_date_after' ? at > bound : at < bound
}

/** In milliseconds: a number is seconds, a text is ISO 8601. */
function instantOf(value: Json): number | null {
  if (typeof value === 'number') return value * 1000
  return typeof value === 'string' ? parseTimestamp(value) : null
}

export function periodSeconds(interval: string): number {
  const seconds: Record<string, number> = { day: 86_400, week: 604_800, month: 2_592_000, year: 31_536_000 }
  return seconds[interval] ?? NaN
}
