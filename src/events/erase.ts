import type { Tx } from '../db/pool.ts'
import { eraseLogRowsMax, settleRowsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { deleteAside, deleteEvents, deleteLogRows, eraseCommands, eraseMentions, type LogPlace } from './erase-store.ts'

export type { LogPlace } from './erase-store.ts'

/** Whom a deletion is about, as events know customers. */
export interface ErasedNames {
  customerIds: string[]
  distinctIds: string[]
  /** Uuids of events that named one of the ids in `$anon_distinct_id`. */
  mentions: string[]
}

/**
 * One slice of erasing the stored events of deleted customers, those that were set aside, what other events say of them, and
 * the commands that changed them; these keep their positions. True: nothing is left. Seen keys stay: they name nobody.
 */
export async function eraseEvents(tx: Tx, scope: Scope, whom: ErasedNames): Promise<boolean> {
  if ((await deleteEvents(tx, scope, whom.customerIds, settleRowsMax)) === settleRowsMax) return false
  await deleteAside(tx, scope, whom.distinctIds)
  await eraseMentions(tx, scope, whom.mentions)
  await eraseCommands(tx, scope, whom)
  return true
}

/**
 * One slice of erasing the same from the log, from `place` on; null is its beginning. Gives where to go on, null at its end.
 * A row that no lane has taken yet may go too: it would be dropped there.
 */
export async function eraseLog(
  tx: Tx,
  scope: Scope,
  whom: ErasedNames,
  place: LogPlace | null,
): Promise<LogPlace | null> {
  const from = place ?? { stream: 0, gen: '0', xid: '0', seq: '0' }
  const next = await deleteLogRows(tx, scope, whom, { from, limit: eraseLogRowsMax })
  if (next !== null) return next
  return from.stream === 0 ? { stream: 1, gen: '0', xid: '0', seq: '0' } : null
}
