import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import { customerIdFor } from '../customer-id.ts'
import { foreseeBirths } from '../load.ts'
import { selectRecord } from '../load-store.ts'
import { selectSurvivor } from '../read-store.ts'
import { rowsOfBirth } from '../resolve.ts'
import { insertAliases, insertCustomers } from '../write-store.ts'
import { type Live, onLive, selectFirstSeen } from './shadow-store.ts'

/**
 * Customers can be created without a trace in the history: by a request such as `POST /customers`. All that there is to know of
 * such a birth is its time, which stays with the distinct id for ever.
 */

interface Place {
  scope: Scope
  live: Live
}

/** Gives birth to those of the ids that were first seen at another time than these, by whoever made them then. */
export async function seedIds(tx: Tx, { scope, live }: Place, mentioned: Map<string, number>): Promise<void> {
  const firstSeen = await selectFirstSeen(tx, live, scope, [...mentioned.keys()])
  const silent = new Map([...firstSeen].filter(([id, at]) => mentioned.get(id) !== at))
  await bear(tx, scope, silent)
}

/** A live record that nothing in the history has made so far: the names that it has now, and the birth that it had. */
export async function selectSilent(
  tx: Tx,
  { scope, live }: Place,
  customerId: string,
): Promise<{ distinctIds: string[]; birth: Map<string, number> } | null> {
  if (await selectRecord(tx.client, scope, customerId)) return null
  const found = await onLive(tx, live, async () => {
    const record = await selectRecord(tx.client, scope, customerId)
    return record && { record, survivor: await selectSurvivor(tx, scope, customerId) }
  })
  if (!found?.survivor) return null
  const { distinctIds } = found.survivor
  const name = distinctIds.find(
    ({ distinctId }) => customerIdFor(scope, distinctId, found.record.generation) === customerId,
  )
  return {
    distinctIds: distinctIds.map(({ distinctId }) => distinctId),
    birth: new Map(name && [[name.distinctId, name.firstSeenAt]]),
  }
}

/** New customers that only have a name, by the time of their birth in Unix milliseconds. */
export async function bear(tx: Tx, scope: Scope, born: Map<string, number>): Promise<void> {
  if (born.size === 0) return
  const births = await foreseeBirths(tx.client, scope, [...born.keys()])
  const rows = [...born].map(([id, at]) => rowsOfBirth(must(births.get(id), 'the birth was foreseen'), id, at))
  await insertCustomers(
    tx,
    scope,
    rows.map(({ row }) => row),
  )
  await insertAliases(
    tx,
    scope,
    rows.map(({ alias }) => alias),
    [0n],
  )
}
