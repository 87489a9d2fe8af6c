import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Ms } from '../types.ts'
import { insertInbox } from './inbox-store.ts'
import { selectPublishedRevision } from './watched-store.ts'

/**
 * What journeys have to know of an edit of properties that no event tells: whoever is not eligible any more may have to leave.
 * At the edit's position in the lane.
 */
export async function tellEdit(
  tx: Tx,
  scope: Scope,
  { customerId, pos, now }: { customerId: string; pos: bigint; now: Ms },
): Promise<void> {
  if ((await selectPublishedRevision(tx, scope)) === null) return
  await insertInbox(tx, scope, [{ customerId, pos, n: 0, receivedAt: now, body: { kind: 'touched' } }])
}
