import type { Pool } from '../../db/pool.ts'
import { hideable } from '../engine/sweep.ts'
import type { Account } from '../types.ts'
import { grantOf } from './grant-row.ts'
import { selectClock } from './grants-store.ts'
import { hideGrants, lockFreeAccounts, selectGrantPage, selectShownGrants } from './sweep-store.ts'

/**
 * Hides from the hot path the grants that can change no answer any more, in short transactions of some thousand grants. Accounts
 * that are busy are left for the next time. Gives how many it hid. Safe beside the service and in any number of processes.
 */
export async function sweepGrants(pool: Pool, signal?: AbortSignal): Promise<number> {
  let hidden = 0
  for (let after: bigint | null = 0n; after !== null && !signal?.aborted; ) {
    const page = await selectGrantPage(pool, after)
    if (page.accountIds.length > 0) hidden += await sweepAccounts(pool, page.accountIds)
    after = page.next
  }
  return hidden
}

function sweepAccounts(pool: Pool, accountIds: bigint[]): Promise<number> {
  return pool.transaction(async (tx) => {
    const locked = await lockFreeAccounts(tx, accountIds)
    const rows = await selectShownGrants(
      tx,
      locked.map(({ id }) => id),
    )
    const grants = Map.groupBy(
      rows.map((row) => grantOf(row, 0)),
      ({ accountId }) => accountId,
    )
    const clock = await selectClock(tx, null)
    const over = locked.flatMap(({ id, last_at_ms, feature_id }) => {
      const account: Account = {
        ...{ id, featureId: feature_id, used: 0n, entities: new Map(), version: 0n },
        ...{ grants: grants.get(id) ?? [], lastAt: Number(last_at_ms) },
      }
      return hideable(account, Math.max(clock, account.lastAt)).map((grant) => grant.id)
    })
    if (over.length > 0) await hideGrants(tx, over)
    return over.length
  })
}
