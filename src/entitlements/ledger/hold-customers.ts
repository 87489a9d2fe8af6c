import type { Tx } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { lockCustomers, selectSurvivors } from './grants-store.ts'

/**
 * The survivor for each id, held until the transaction ends: no merge takes their accounts away meanwhile. A merge that commits between the look and the lock makes us look
 * again. Throws `not_found` for a customer that is not there, `service_unavailable` when merges keep moving it.
 */
export async function holdCustomers(tx: Tx, scope: Scope, customerIds: string[]): Promise<Map<string, string>> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const found = await selectSurvivors(tx, scope, customerIds)
    if (found.length < customerIds.length) throw refuse('not_found', { message: 'There is no such customer.' })
    const survivors = [...new Set(found.map(({ survivor }) => survivor))]
    const held = await lockCustomers(tx, scope, survivors)
    if (held.length === survivors.length) return new Map(found.map(({ asked, survivor }) => [asked, survivor]))
  }
  throw refuse('service_unavailable')
}
