import type { Pool, Tx } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import { tombstonesPerSlice } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { deleteRows, insertDeletion, insertTombstones, selectBuried, selectMentions } from './delete-store.ts'
import { type IdentityServices, takeLane } from './merge.ts'
import { getCustomer, recordsOf } from './read.ts'

/**
 * Deletes a customer at a position of the lane: from the commit on every distinct id of theirs is refused for ever, events in
 * flight are dropped, and nobody finds the record. What is stored of them is erased afterwards, slice by slice, by
 * `settleChanges`. 404 for an unknown customer.
 */
export async function deleteCustomer(
  tx: Tx,
  scope: Scope,
  customerId: string,
  { tombstoneKey, participants }: IdentityServices,
): Promise<void> {
  const pos = await takeLane(tx, scope, 'delete_customer', { customer_id: customerId })
  const customer = await getCustomer(tx, scope, customerId)
  const customerIds = await recordsOf(tx, scope, [customer.id])
  const distinctIds = customer.distinctIds.map(({ distinctId }) => distinctId)
  for (const participant of participants) await participant.delete?.(tx, scope, customerIds)
  await insertTombstones(tx, scope, distinctIds, tombstoneKey)
  const deleted = await deleteRows(tx, scope, customerIds, distinctIds)
  // Births take no position: an id that somebody attached meanwhile is seen by nobody but them yet.
  if (!deleted) throw refuse('service_unavailable', { retryAfterS: 1 })
  const mentions = await selectMentions(tx, scope, distinctIds)
  await insertDeletion(tx, scope, { pos, customerId: customer.id, work: { customerIds, distinctIds, mentions } })
}

/** A scope with a customer in it that a tombstone forbids. */
export interface Buried {
  scope: Scope
  customerId: string
}

/**
 * Deletes again whoever has a tombstone and is there nevertheless: in a restored backup, once the tombstones made since were
 * put back. Call it before the database serves anybody. Gives how many there were.
 */
export async function deleteBuried(pool: Pool, { tombstoneKey, participants }: IdentityServices): Promise<number> {
  let count = 0
  for (;;) {
    const found = await selectBuried(pool, tombstoneKey, tombstonesPerSlice)
    for (const { scope, customerId } of found) {
      await pool.transaction((tx) => deleteCustomer(tx, scope, customerId, { tombstoneKey, participants }))
    }
    count += found.length
    if (found.length < tombstonesPerSlice) return count
  }
}
