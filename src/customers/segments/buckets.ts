import { type Amount, plus } from './amount.ts'

/**
 * Amounts by bucket of time, newest first: `[newest bucket, amount, gap, amount, gap, amount, …]`, JSON. A gap says how many
 * buckets further back the next one lies: short to write, and the end that moves is in front.
 */
export type Buckets = Amount[]

/** Adds to the bucket, in place. */
export function addTo(buckets: Buckets, bucket: number, amount: Amount): void {
  let at = Number(buckets[0])
  if (bucket > at) {
    buckets[0] = bucket - at
    buckets.unshift(bucket, amount)
    return
  }
  let i = 0
  while (bucket < at && i + 2 < buckets.length && at - Number(buckets[i + 2]) >= bucket) {
    i += 2
    at -= Number(buckets[i])
  }
  if (bucket === at) {
    buckets[i + 1] = plus(buckets[i + 1] ?? 0, amount)
    return
  }
  const next = buckets[i + 2]
  if (next !== undefined) buckets[i + 2] = Number(next) - (at - bucket)
  buckets.splice(i + 2, 0, at - bucket, amount)
}

/** What both say together. */
export function joinBuckets(a: Buckets, b: Buckets): Buckets {
  const joined = [...a]
  let at = 0
  for (let i = 0; i < b.length; i += 2) {
    at = i === 0 ? Number(b[0]) : at - Number(b[i])
    addTo(joined, at, b[i + 1] ?? 0)
  }
  return joined
}

/** Without the buckets before `from`; undefined when none is left. */
export function since(buckets: Buckets, from: number): Buckets | undefined {
  let at = Number(buckets[0])
  let i = 0
  while (i < buckets.length && at >= from) {
    i += 2
    at -= Number(buckets[i] ?? 0)
  }
  if (i === buckets.length) return buckets
  return i === 0 ? undefined : buckets.slice(0, i)
}

/** All amounts of buckets from `from` on. */
export function totalSince(buckets: Buckets, from: number): Amount {
  let total: Amount = 0
  let at = Number(buckets[0])
  for (let i = 0; i < buckets.length && at >= from; ) {
    total = plus(total, buckets[i + 1] ?? 0)
    i += 2
    at -= Number(buckets[i] ?? 0)
  }
  return total
}

/** The first bucket whose end, with that of all before it, makes `test` of the rest differ from `holds`; null: none does. */
export function flipsAfter(
  buckets: Buckets,
  from: number,
  { test, holds }: { test: (total: Amount) => boolean; holds: boolean },
): number | null {
  let flips: number | null = null
  let rest: Amount = 0
  let at = Number(buckets[0])
  for (let i = 0; i < buckets.length && at >= from; ) {
    if (test(rest) !== holds) flips = at
    rest = plus(rest, buckets[i + 1] ?? 0)
    i += 2
    at -= Number(buckets[i] ?? 0)
  }
  return flips
}
