import type { Pool } from '../db/pool.ts'
import { dayMs, occurrenceKeptDays } from '../kernel/limits.ts'
import { deleteOldOccurrences } from './participant-store.ts'

/** Keys of starts that have had their time; they may begin another journey from then on. */
export async function forgetOccurrences(pool: Pool, now: number, signal: AbortSignal): Promise<void> {
  while (!(await deleteOldOccurrences(pool, now - occurrenceKeptDays * dayMs))) if (signal.aborted) return
}
