import { isObject } from '../conformance/check.ts'

/** What a device can say of an authored condition. Unknown never matches. */
export type Truth = boolean | 'unknown'

/** What conditions and values of a running leg read. */
export interface Values {
  event: Record<string, unknown>
  responses: Record<string, unknown>
  properties: Record<string, unknown>
}

/** The value of an action; undefined when it can't be found. */
export function resolve(value: unknown, from: Values): unknown {
  if (!isObject(value)) return undefined
  switch (value.type) {
    case 'Null':
      return null
    case 'Boolean':
    case 'Number':
    case 'String':
      return value.value
    case 'Array':
      return whole(listOf(value.items).map((each) => resolve(each, from)))
    case 'Object': {
      const fields = Object.entries(isObject(value.fields) ? value.fields : {})
      const values = whole(fields.map(([, each]) => resolve(each, from)))
      return values && Object.fromEntries(fields.map(([key], index) => [key, values[index]]))
    }
    case 'Event.Field':
      return from.event[String(value.key)]
    case 'Customer.Field':
      return from.properties[String(value.key)]
    case 'Response.Field':
      return from.responses[String(value.key)]
    default:
      return undefined
  }
}

/** Three-valued: in `All` a false wins over an unknown, in `Any` a true does. Nothing is converted. */
export function holds(condition: unknown, from: Values): Truth {
  if (!isObject(condition)) return 'unknown'
  const inner = () => listOf(condition.conditions).map((each) => holds(each, from))
  switch (condition.type) {
    case 'Truthy': {
      const value = resolve(condition.value, from)
      return value === undefined ? 'unknown' : isTruthy(value)
    }
    case 'Compare':
      return compare(String(condition.op), resolve(condition.left, from), resolve(condition.right, from))
    case 'Contains': {
      const collection = resolve(condition.collection, from)
      const value = resolve(condition.value, from)
      if (value === undefined) return 'unknown'
      if (typeof collection === 'string' && typeof value === 'string') return collection.includes(value)
      return Array.isArray(collection) ? collection.includes(value) : 'unknown'
    }
    case 'All':
      return winning(inner(), false)
    case 'Any':
      return winning(inner(), true)
    case 'Not':
      return not(holds(condition.condition, from))
    default:
      return 'unknown'
  }
}

function compare(op: string, left: unknown, right: unknown): Truth {
  if (left === undefined || right === undefined) return 'unknown'
  if (op === '==') return left === right
  if (op === '!=') return left !== right
  const texts = typeof left === 'string' && typeof right === 'string'
  const numbers = typeof left === 'number' && typeof right === 'number'
  if (!texts && !numbers) return 'unknown'
  const order = left < right ? -1 : left > right ? 1 : 0
  if (op === '<') return order < 0
  if (op === '<=') return order <= 0
  return op === '>' ? order > 0 : order >= 0
}

export function winning(all: Truth[], winner: boolean): Truth {
  if (all.includes(winner)) return winner
  return all.includes('unknown') ? 'unknown' : !winner
}

export function not(truth: Truth): Truth {
  return truth === 'unknown' ? truth : !truth
}

export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return typeof value !== 'object' && Boolean(value)
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function whole(values: unknown[]): unknown[] | undefined {
  return values.includes(undefined) ? undefined : values
}
