import { coalesce } from '../db/batch.ts'
import { isConnectionLoss, type Pool } from '../db/pool.ts'
import type { RawRow } from '../db/raw.ts'
import type { JsonObject } from '../events/index.ts'
import type { Clock } from '../kernel/clock.ts'
import { customerFindBatchMax, customerFindMsMax, customerFindWaitingMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { type CustomerKey, selectCustomers } from './find-store.ts'
import { getCustomer } from './read.ts'
import type { Customer } from './types.ts'

/** By a distinct id, or by the id of a record: that of a merged one finds what it became. */
export type WhichCustomer = { distinctId: string } | { customerId: string }

/** Finds one customer; null when there is none in this scope. */
export type FindCustomer = (scope: Scope, which: WhichCustomer) => Promise<Customer | null>

/** Customers that are asked for at the same time are read together. `pool`: pipelined connections that keep generic plans. */
export function createFindCustomer({ pool, clock }: { pool: Pool; clock: Clock }): FindCustomer {
  const find = coalesce<CustomerKey, Customer | null>({
    run: (keys) =>
      pool.connected(async (client) => {
        const found = new Array<Customer | null>(keys.length).fill(null)
        for (const row of await selectCustomers(client, keys)) found[Number(row[0])] = customerOf(row)
        return found
      }),
    lanes: 2,
    itemsMax: customerFindBatchMax,
    waitingMax: customerFindWaitingMax,
    waitMsMax: customerFindMsMax,
    now: () => clock.now(),
    splitOn: (error) => !isConnectionLoss(error),
  })

  return async (scope, which) => {
    const { scopeId } = scope
    if ('distinctId' in which) return find({ scopeId, distinctId: which.distinctId, customerId: null })
    const found = await find({ scopeId, distinctId: null, customerId: which.customerId })
    return found === null || found.mergedInto === null ? found : getCustomer(pool, scope, which.customerId)
  }
}

function customerOf([
  ,
  id,
  identified,
  properties,
  createdAt,
  updatedAt,
  version,
  mergedInto,
  names,
]: RawRow): Customer {
  return {
    id: id ?? '',
    distinctIds: namesOf(names),
    identified: identified === 't',
    properties: JSON.parse(properties ?? '{}') as JsonObject, // what jsonb gives for an object
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    version: Number(version),
    mergedInto: mergedInto ?? null,
  }
}

/** None for a customer that lost all its ids to another one. */
function namesOf(text: string | null | undefined): Customer['distinctIds'] {
  const names = JSON.parse(text ?? '[]') as [string, boolean, number][] // as the statement builds them
  return names.map(([distinctId, identified, firstSeenAt]) => ({ distinctId, identified, firstSeenAt }))
}
