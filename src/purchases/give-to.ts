import type { Tx } from '../db/pool.ts'
import { holdCustomers } from '../entitlements/index.ts'
import { must } from '../kernel/assert.ts'
import type { Scope } from '../tenancy/index.ts'
import { type Lineage, updateOwner } from './lineage-store.ts'
import type { Ms } from './types.ts'

/**
 * Makes a customer the owner of a locked purchase: as the record that it is by now, held until the transaction ends, so that a
 * merge or a deletion meanwhile finds the purchase. Gives the record. Throws `not_found` for a customer that is gone.
 */
export async function giveTo(
  tx: Tx,
  scope: Scope,
  lineage: Lineage,
  { customerId, now }: { customerId: string; now: Ms },
): Promise<string> {
  const ownerId = must((await holdCustomers(tx, scope, [customerId])).get(customerId), 'a survivor for each')
  await updateOwner(tx, lineage, { customerId: ownerId, now })
  return ownerId
}
