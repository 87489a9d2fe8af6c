import type { Json } from '../../events/index.ts'
import { segmentSumMax } from '../../kernel/limits.ts'
import { type Amount, compares, plus, rounded } from './amount.ts'
import { addTo, type Buckets, flipsAfter, joinBuckets, since, totalSince } from './buckets.ts'
import type { Leaf, Times } from './definition.ts'

/**
 * What the events of one customer amount to for one leaf; JSON. A total without a window is one amount, in a window one for
 * each bucket. Sums are in millionths: added up in any order and cut in any way they come to the same. First and last are
 * instants. A property that passes is `true`.
 */
export type LeafState = Amount | true | Buckets

type Counting = Extract<Leaf, { windowMs: number | null }>

/** Minutes for windows of up to 2 hours, hours up to 72 hours, then days. */
function bucketMs(windowMs: number): number {
  if (windowMs <= 2 * 3600_000) return 60_000
  return windowMs <= 72 * 3600_000 ? 3600_000 : 86_400_000
}

/** The state after one more event that is the leaf's and not past; `at` and `now` in Unix milliseconds. Changes `state`. */
export function add(
  leaf: Leaf,
  state: LeafState | undefined,
  { at, value, now }: { at: number; value: Json | undefined; now: number },
): LeafState | undefined {
  switch (leaf.kind) {
    case 'performed':
      return addAmount(leaf, state, 1, { at, now })
    case 'sum': {
      const amount = millionthsOf(value)
      return amount === null ? state : addAmount(leaf, state, amount, { at, now })
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

function addAmount(
  { windowMs }: Counting,
  state: LeafState | undefined,
  amount: Amount,
  { at, now }: { at: number; now: number },
): LeafState | undefined {
  if (windowMs === null) return state === undefined ? amount : plus(scalar(state), amount)
  const bucket = Math.floor(at / bucketMs(windowMs))
  if (!Array.isArray(state)) return [bucket, amount]
  const length = state.length
  addTo(state, bucket, amount)
  return state.length === length ? state : since(state, firstInside(windowMs, now))
}

/** In millionths; null: no number, or one that does not count. */
export function millionthsOf(value: unknown): Amount | null {
  return typeof value === 'number' && Math.abs(value) <= segmentSumMax ? rounded(value * 1e6) : null
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
      return Array.isArray(a) && Array.isArray(b) ? joinBuckets(a, b) : plus(scalar(a), scalar(b))
    case 'property':
    case 'segment':
    case 'feature':
      return a
  }
}

function scalar(state: LeafState): Amount {
  return typeof state === 'string' ? state : Number(state)
}

/** Without the buckets that no instant from `now` on looks at; undefined when nothing is left. */
export function prune(leaf: Leaf, state: LeafState | undefined, now: number): LeafState | undefined {
  if (!('windowMs' in leaf) || leaf.windowMs === null || !Array.isArray(state)) return state
  return since(state, firstInside(leaf.windowMs, now))
}

/** When the events of a bucket are no longer inside: never less than the window, at most one bucket more. */
function endOf(bucket: number, windowMs: number): number {
  return (bucket + 1) * bucketMs(windowMs) + windowMs
}

/** Whether an event of then counts no more. */
export function isPast(leaf: Leaf, at: number, now: number): boolean {
  if (!('windowMs' in leaf) || leaf.windowMs === null) return false
  return Math.floor(at / bucketMs(leaf.windowMs)) < firstInside(leaf.windowMs, now)
}

/** The oldest bucket that has not ended. */
function firstInside(windowMs: number, now: number): number {
  return Math.floor((now - windowMs) / bucketMs(windowMs))
}

/** Whether the leaf holds now, and when time alone will change that next; null: never. */
export interface Truth {
  holds: boolean
  until: number | null
}

export function totalHolds(leaf: Counting, state: LeafState | undefined, now: number): Truth {
  const { compare, windowMs } = leaf
  const holds = compares(compare, totalOf(leaf, state, now))
  if (windowMs === null || !Array.isArray(state)) return { holds, until: null }
  const test = (total: Amount) => compares(compare, total)
  const flips = flipsAfter(state, firstInside(windowMs, now), { test, holds })
  return { holds, until: flips === null ? null : endOf(flips, windowMs) }
}

/** What counts now: how often, or a sum in millionths. */
export function totalOf({ windowMs }: Counting, state: LeafState | undefined, now: number): Amount {
  if (state === undefined) return 0
  if (windowMs === null) return scalar(state)
  return Array.isArray(state) ? totalSince(state, firstInside(windowMs, now)) : 0
}

/** Whether it happened, and when it had to. */
export function timeHolds({ before, after, ago }: Times, at: LeafState | undefined, now: number): Truth {
  if (typeof at !== 'number') return { holds: false, until: null }
  const inside = (before === null || at < before) && (after === null || at > after)
  if (!inside || ago === null) return { holds: inside, until: null }
  const flip = ago.op === 'gte' ? at + ago.ms : at + ago.ms + 1
  return { holds: now >= flip === (ago.op === 'gte'), until: flip > now ? flip : null }
}
