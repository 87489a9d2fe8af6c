import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Ms } from '../types.ts'
import { insertInbox } from './inbox-store.ts'
import { selectPublishedRevision } from './watched-store.ts'

/**
 * What journeys have to know of edits of properties that no event tells: whoever is not eligible any more may have to leave.
 * At the edits' positions in the lane.
 */
export async function tellEdits(
  tx: Tx,
  scope: Scope,
  edits: readonly { customerId: string; pos: bigint }[],
  now: Ms,
): Promise<void> {
  if (edits.length === 0 || (await selectPublishedRevision(tx, scope)) === null) return
  const touched = { n: 0, receivedAt: now, body: { kind: 'touched' } } as const
  await insertInbox(
    tx,
    scope,
    edits.map(({ customerId, pos }) => ({ customerId, pos, ...touched })),
  )
}
