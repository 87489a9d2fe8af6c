import type { Grant, Ms } from '../types.ts'
import { endOf } from './grant.ts'

/** Half-open; null is for ever. */
export type Interval = [from: Ms, until: Ms | null]

/**
 * When shared grants make access live, drained or not: sorted, apart from one another, and only what ends after `now`. Grants
 * of entities are left out, as they are for requests without entity.
 */
export function accessIntervals(grants: readonly Grant[], now: Ms): Interval[] {
  const merged: Interval[] = []
  for (const [from, until] of grants.flatMap((grant) => intervalOf(grant, now)).sort(([a], [b]) => a - b)) {
    const last = merged.at(-1)
    if (last === undefined || endIn(last) < from) merged.push([from, until])
    else if (endIn(last) < endIn([from, until])) last[1] = until
  }
  return merged
}

function intervalOf(grant: Grant, now: Ms): Interval[] {
  const until = endOf(grant)
  if (grant.entityId !== null) return []
  return until === null || (until > now && until > grant.effectiveAt) ? [[grant.effectiveAt, until]] : []
}

function endIn([, until]: Interval): number {
  return until ?? Number.POSITIVE_INFINITY
}

export function sameIntervals(a: readonly Interval[], b: readonly Interval[]): boolean {
  return a.length === b.length && a.every(([from, until], i) => from === b[i]?.[0] && until === b[i]?.[1])
}
