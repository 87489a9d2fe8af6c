import type { Json, JsonObject } from '../types.ts'
import { type Operator, type Test, testOf } from './operators.ts'

/** One condition on a property. `value` is absent for `exists` and `not_exists`. */
export interface Filter {
  property: string
  op: Operator
  value?: Json
}

/** Whether a property map passes. */
export type FilterTest = (properties: JsonObject) => boolean

/** The test of all filters together: every one must hold. Built once, asked often. */
export function testOfFilters(filters: readonly Filter[]): FilterTest {
  const tests = filters.map(({ property, op, value = null }): [string, Test] => [property, testOf(op, value)])
  return (properties) => {
    for (const [key, test] of tests) if (!test(propertyOf(properties, key))) return false
    return true
  }
}

/** An own property, or undefined: keys named like members of `Object.prototype` are keys. */
export function propertyOf(properties: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(properties, key) ? properties[key] : undefined
}
