import { dayMs, historyAwayMs, historyOverlapMs } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'

/** What one reading of Apple's history is about: the same for all its pages. */
export interface Span {
  from: Ms
  until: Ms
  /** Everything, and not only what did not arrive. */
  whole: boolean
  /** Apple's token; null: the first page. */
  nextPage: string | null
}

/** Apple keeps it for 180 days, that of the sandbox for 30. A day less: the request is on its way for a while. */
const reachMs = { production: 179 * dayMs, sandbox: 29 * dayMs }

/**
 * What is to be read now: the span that is under way, else one since the last. What arrived is not asked for, unless we were
 * away: a database that was restored does not have what it took after its backup.
 */
export function spanOf(
  { readUntil, underWay }: { readUntil: Ms; underWay: Span | null },
  { storeEnvironment, now }: { storeEnvironment: keyof typeof reachMs; now: Ms },
): Span {
  const earliest = now - reachMs[storeEnvironment]
  if (underWay !== null && underWay.from >= earliest) return underWay
  const from = Math.max(readUntil - historyOverlapMs, earliest)
  return { from, until: now, whole: now - readUntil > historyAwayMs, nextPage: null }
}
