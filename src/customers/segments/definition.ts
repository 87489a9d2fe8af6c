import type { FilterTest, Test } from '../../events/index.ts'
import type { Compare } from './amount.ts'

/** A definition, ready to be asked. */
export type Condition =
  | { kind: 'all' | 'any'; of: Condition[] }
  | { kind: 'not'; of: Condition }
  | { kind: 'leaf'; leaf: Leaf; path: string }

/** One question about a customer. Only its own part of the customer's state is looked at. */
export type Leaf =
  | { kind: 'property'; key: string; passes: Test }
  | { kind: 'performed'; event: string; passes: FilterTest; compare: Compare; windowMs: number | null }
  | {
      kind: 'sum'
      event: string
      passes: FilterTest
      property: string
      /** In millionths. */
      compare: Compare
      windowMs: number | null
    }
  | { kind: 'first' | 'last'; event: string; passes: FilterTest; times: Times }
  | { kind: 'segment'; id: string; is: boolean }
  | { kind: 'feature'; feature: string; active: boolean }

/** What the time of an event must be; all that is there must hold. Instants in Unix milliseconds. */
export interface Times {
  before: number | null
  after: number | null
  ago: { op: 'gte' | 'lte'; ms: number } | null
}

export function leavesOf(condition: Condition): Leaf[] {
  if (condition.kind === 'leaf') return [condition.leaf]
  return condition.kind === 'not' ? leavesOf(condition.of) : condition.of.flatMap(leavesOf)
}
