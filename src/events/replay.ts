import type { Tx } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { appendAgain, type DeadEvent, isTombstoned, lockDeadEvent } from './dead-event-store.ts'

/**
 * Logs a dead event again, under its uuid and at the end of the order; applied meanwhile from elsewhere, it counts as a
 * duplicate. Replayed before, it is given back as it is. Throws 404 `not_found`, and 410 `customer_deleted`: who was deleted
 * stays so.
 */
export async function replayDeadEvent(
  tx: Tx,
  scopes: readonly Scope[],
  { id, tombstoneKey }: { id: bigint; tombstoneKey: Buffer },
): Promise<{ event: DeadEvent; again: boolean }> {
  const event = await lockDeadEvent(tx, scopes, id)
  if (event === undefined) throw refuse('not_found')
  if (event.replayedAt !== null) return { event, again: true }
  if (await isTombstoned(tx, event, tombstoneKey)) throw refuse('customer_deleted')
  return { event: { ...event, replayedAt: await appendAgain(tx, event) }, again: false }
}
