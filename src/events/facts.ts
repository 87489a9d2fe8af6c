import type { Tx } from '../db/pool.ts'
import { assert } from '../kernel/assert.ts'
import { uuidV5 } from '../kernel/ids.ts'
import { isFactName } from './catalogue.ts'
import { insertFacts } from './facts-store.ts'
import type { EventPayload, JsonObject } from './types.ts'

/** What the service itself states about a customer, such as that a Feature was granted. */
export interface Fact {
  scopeId: number
  /** One of the catalogue's `factNames`. */
  event: string
  /** Any distinct id of the customer. */
  distinctId: string
  /** Tells it from every other fact of this event and scope: the same identity is the same fact. */
  identity: string
  /** Unix milliseconds of the database's clock. */
  at: number
  properties: JsonObject
  entityId: string | null
}

/**
 * Logs facts in the caller's transaction, in the given order: they happen when what they state does. Their lanes are woken by
 * its COMMIT. Stated twice, a fact is one event.
 */
export async function appendFacts(tx: Pick<Tx, 'client'>, facts: readonly Fact[]): Promise<void> {
  if (facts.length === 0) return
  await insertFacts(
    tx.client,
    facts.map((fact) => {
      assert(isFactName(fact.event), 'facts are in the catalogue')
      const uuid = uuidV5(factNamespace, `${fact.scopeId} ${fact.event} ${fact.identity}`)
      const { scopeId, distinctId, at } = fact
      return { scopeId, distinctId, at, uuid, text: JSON.stringify(payloadOf(fact, uuid)) }
    }),
  )
}

/** Any constant will do; another one would double what was stated before. */
const factNamespace = 'b2c4a9de-5b0f-4c8e-9d53-1f6e7a0c2b94'

function payloadOf({ event, distinctId, at, properties, entityId }: Fact, uuid: string): EventPayload {
  return {
    ...{ event, distinct_id: distinctId, uuid, timestamp: new Date(at).toISOString(), properties },
    ...(entityId === null ? {} : { entityId }),
    trust: 'server',
    fact: true,
  }
}
