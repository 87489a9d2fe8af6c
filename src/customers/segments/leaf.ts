import type { Json } from '../../events/index.ts'
import { segmentSumMax } from '../../kernel/limits.ts'
import { compares, type Leaf, type Times } from './definition.ts'

/**
 * What the events of one customer amount to for one leaf; JSON. A total without a window is one number; in a window it is
 * `[bucket, amount, bucket, amount, …]` by rising bucket. Sums are whole millionths as text: added up in any order and cut in
 * any way they come to the same. First and last are instants. A property that passes is `true`.
 */
export type LeafState = number | string | true | (number | string)[]

type Counting = Extract<Leaf, { windowMs: number | null }>

/** Minutes for windows of up to 2 hours, hours up to 72 hours, then days. */
export function bucketMs(windowMs: number): number {
  if (windowMs <= 2 * 3600_000) return 60_000
  return windowMs <= 72 * 3600_000 ? 3600_000 : 86_400_000
}

/** The state after one more event that is the leaf's; `at` in Unix milliseconds. */
export function add(
  leaf: Leaf,
  state: LeafState | undefined,
  at: number,
  value: Json | undefined,
): LeafState | undefined {
  switch (leaf.kind) {
    case 'performed':
      return join(leaf, state, leaf.windowMs === null ? 1 : [bucketOf(at, leaf.windowMs), 1])
    case 'sum': {
      const amount = millionthsOf(value)
      if (amount === null) return state
      return join(leaf, state, leaf.windowMs === null ? `${amount}` : [bucketOf(at, leaf.windowMs), `${amount}`])
    }
    case 'first':
    case 'last':
      return join(leaf, state, at)
    case 'property':
    case 'segment':
    case 'feature':
      return state
  }
}

function bucketOf(at: number, windowMs: number): number {
  return Math.floor(at / bucketMs(windowMs))
}

/** In millionths; null: no number, or one that does not count. */
export function millionthsOf(value: unknown): bigint | null {
  return typeof value === 'number' && Math.abs(value) <= segmentSumMax ? BigInt(Math.round(value * 1e6)) : null
}

/** Of two parts of one customer's events: what they amount to together. */
export function join(leaf: Leaf, a: LeafState | undefined, b: LeafState | undefined): LeafState | undefined {
  if (a === undefined || b === undefined) return a ?? b
  switch (leaf.kind) {
    case 'first':
      return Math.min(Number(a), Number(b))
    case 'last':
      return Math.max(Number(a), Number(b))
    case 'performed':
    case 'sum':
      return Array.isArray(a) && Array.isArray(b) ? joinBuckets(leaf, a, b) : plus(leaf, scalar(a), scalar(b))
    case 'property':
    case 'segment':
    case 'feature':
      return a
  }
}

function joinBuckets(leaf: Counting, a: (number | string)[], b: (number | string)[]): (number | string)[] {
  const joined: (number | string)[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const [x, y] = [Number(a[i] ?? Infinity), Number(b[j] ?? Infinity)]
    const bucket = Math.min(x, y)
    const [left, right] = [x === bucket ? a[i + 1] : undefined, y === bucket ? b[j + 1] : undefined]
    if (x === bucket) i += 2
    if (y === bucket) j += 2
    joined.push(bucket, left !== undefined && right !== undefined ? plus(leaf, left, right) : (left ?? right ?? 0))
  }
  return joined
}

function plus(leaf: Counting, a: number | string, b: number | string): number | string {
  return leaf.kind === 'sum' ? `${BigInt(a) + BigInt(b)}` : Number(a) + Number(b)
}

function scalar(state: LeafState): number | string {
  return typeof state === 'string' ? state : Number(state)
}

/** Without the buckets that no instant from `now` on looks at; undefined when nothing is left. */
export function prune(leaf: Leaf, state: LeafState | undefined, now: number): LeafState | undefined {
  if (!('windowMs' in leaf) || leaf.windowMs === null || !Array.isArray(state)) return state
  let from = 0
  while (from < state.length && endOf(Number(state[from]), leaf.windowMs) <= now) from += 2
  if (from === 0) return state
  return from < state.length ? state.slice(from) : undefined
}

/** When the events of a bucket are no longer inside: never less than the window, at most one bucket more. */
function endOf(bucket: number, windowMs: number): number {
  return (bucket + 1) * bucketMs(windowMs) + windowMs
}

/** Whether the leaf holds now, and when time alone will change that next; null: never. */
export interface Truth {
  holds: boolean
  until: number | null
}

export function totalHolds(leaf: Counting, state: LeafState | undefined, now: number): Truth {
  const test = testOfTotal(leaf)
  let total = totalOf(leaf, state, now)
  const holds = test(total)
  if (leaf.windowMs === null) return { holds, until: null }
  for (const [bucket, amount] of bucketsIn(leaf, state, now)) {
    total -= amount
    if (test(total) !== holds) return { holds, until: endOf(bucket, leaf.windowMs) }
  }
  return { holds, until: null }
}

/** What counts now: how often, or a sum in millionths. */
export function totalOf(leaf: Counting, state: LeafState | undefined, now: number): bigint {
  if (leaf.windowMs === null) return state === undefined ? 0n : BigInt(scalar(state))
  return bucketsIn(leaf, state, now).reduce((total, [, amount]) => total + amount, 0n)
}

function bucketsIn(leaf: Counting, state: LeafState | undefined, now: number): [number, bigint][] {
  const inside = prune(leaf, state, now)
  if (!Array.isArray(inside)) return []
  const buckets: [number, bigint][] = []
  for (let i = 0; i < inside.length; i += 2) buckets.push([Number(inside[i]), BigInt(inside[i + 1] ?? 0)])
  return buckets
}

function testOfTotal(leaf: Counting): (total: bigint) => boolean {
  if (leaf.kind === 'sum') return (total) => compares(leaf.compare, total)
  const compare = { op: leaf.compare.op, value: BigInt(leaf.compare.value) }
  return (total) => compares(compare, total)
}

/** Whether it happened, and when it had to. */
export function timeHolds({ before, after, ago }: Times, at: LeafState | undefined, now: number): Truth {
  if (typeof at !== 'number') return { holds: false, until: null }
  const inside = (before === null || at < before) && (after === null || at > after)
  if (!inside || ago === null) return { holds: inside, until: null }
  const flip = ago.op === 'gte' ? at + ago.ms : at + ago.ms + 1
  return { holds: now >= flip === (ago.op === 'gte'), until: flip > now ? flip : null }
}
