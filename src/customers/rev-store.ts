import { int4s, uuids } from '../db/binary-array.ts'
import type { Tx } from '../db/pool.ts'
import { raw } from '../db/raw.ts'

/** The end of an insert of (scope, customer, 1): what was remembered of these customers no longer holds. */
export const orRaise = `
  on conflict (scope_id, customer_id) do update
  set rev = customer_rev.rev + 1`

const raise = {
  name: 'customers_raise_revs',
  text: `
    insert into customer_rev (scope_id, customer_id, rev)
    select scope_id, customer_id, 1
    from unnest($1::int[], $2::uuid[]) as i(scope_id, customer_id)
    ${orRaise}`,
}

/**
 * Says that something in the profiles of these customers changed: memberships, assignments, enrolments, journeys. In the
 * transaction that changes it, after all its other locks; properties, identity and balances say so themselves.
 */
export async function raiseRevs(tx: Tx, customers: readonly { scopeId: number; customerId: string }[]): Promise<void> {
  // By id, and each once: two that raise the same customers wait for each other in one order.
  const each = new Map(customers.map((one) => [`${String(one.scopeId).padStart(10, '0')} ${one.customerId}`, one]))
  if (each.size === 0) return
  const rows = [...each].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
  const ids = uuids(rows.map(({ customerId }) => customerId))
  await raw(tx.client, raise, [int4s(rows.map(({ scopeId }) => scopeId)), ids])
}
