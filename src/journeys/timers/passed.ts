import type { Tx } from '../../db/pool.ts'
import { selectOldestWaiting } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { selectInboxHeads } from '../store/inbox-head-store.ts'
import type { TimerRow } from '../store/timer-store.ts'

/**
 * Whether lane and journeys have passed everything received until a timer was due. The lane is asked first: what it had
 * passed by then stands in the inbox, or was consumed.
 */
export async function passedUntil(
  tx: Tx,
  scope: Scope,
  timers: readonly TimerRow[],
): Promise<(timer: TimerRow) => boolean> {
  const { oldest } = await selectOldestWaiting(tx, scope)
  const heads = await selectInboxHeads(
    tx,
    scope,
    timers.map(({ journeyId }) => journeyId),
  )
  return ({ journeyId, dueAt }) => {
    const head = heads.get(journeyId)
    return (oldest === null || oldest > dueAt) && (head === undefined || head > dueAt)
  }
}
