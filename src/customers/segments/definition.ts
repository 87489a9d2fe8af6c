import type { FilterTest, Test } from '../../events/index.ts'

/** A definition, ready to be asked. */
export type Condition =
  | { kind: 'all' | 'any'; of: Condition[] }
  | { kind: 'not'; of: Condition }
  | { kind: 'leaf'; leaf: Leaf; path: string }

/** One question about a customer. Only its own part of the customer's state is looked at. */
export type Leaf =
  | { kind: 'property'; key: string; passes: Test }
  | { kind: 'performed'; event: string; passes: FilterTest; compare: Compare<number>; windowMs: number | null }
  | {
      kind: 'sum'
      event: string
      passes: FilterTest
      property: string
      compare: Compare<bigint>
      windowMs: number | null
    }
  | { kind: 'first' | 'last'; event: string; passes: FilterTest; times: Times }
  | { kind: 'segment'; id: string; is: boolean }
  | { kind: 'feature'; feature: string; active: boolean }

/** Sums are kept in millionths. */
export interface Compare<Value> {
  op: 'eq' | 'gt' | 'gte' | 'lt' | 'lte'
  value: Value
}

/** What the time of an event must be; all that is there must hold. Instants in Unix milliseconds. */
export interface Times {
  before: number | null
  after: number | null
  ago: { op: 'gte' | 'lte'; ms: number } | null
}

export function compares<Value extends number | bigint>({ op, value }: Compare<Value>, actual: Value): boolean {
  switch (op) {
    case 'eq':
      return actual === value
    case 'gt':
      return actual > value
    case 'gte':
      return actual >= value
    case 'lt':
      return actual < value
    case 'lte':
      return actual <= value
  }
}

export function leavesOf(condition: Condition): Leaf[] {
  if (condition.kind === 'leaf') return [condition.leaf]
  return condition.kind === 'not' ? leavesOf(condition.of) : condition.of.flatMap(leavesOf)
}
