import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { appendEvents, notifyLanes } from './append-store.ts'
import { normalise } from './normalise.ts'
import type { JsonObject, NewEvent } from './types.ts'

/** An event that the service sends for somebody, such as a step of a journey: no fact of its own. */
export interface Emitted {
  /** Where it counts as sent from. */
  appId: string
  distinctId: string
  /** The same uuid is the same event. */
  uuid: string
  event: string
  properties: JsonObject
  /** Of what led to it: nothing becomes trustworthy on the way. */
  trust: 'device' | 'server'
  /** Unix milliseconds. */
  at: number
}

/**
 * Logs events in the caller's transaction, judged as if they had been sent; those that would have been refused are given back with
 * why, and those of deleted customers are dropped. Their lane is woken by the COMMIT.
 */
export async function appendEmitted(
  tx: Tx,
  { scopeId }: Scope,
  tombstoneKey: Buffer,
  emitted: readonly Emitted[],
): Promise<{ uuid: string; code: string }[]> {
  const refused: { uuid: string; code: string }[] = []
  const events: { appId: string; event: NewEvent }[] = []
  for (const { appId, event, distinctId, uuid, properties, trust, at } of emitted) {
    const timestamp = new Date(at).toISOString()
    const judged = normalise({ event, distinct_id: distinctId, uuid, timestamp, properties }, { receivedAt: at, trust })
    if (judged.kind === 'event') events.push({ appId, event: judged.event })
    else refused.push({ uuid, code: judged.kind === 'invalid' ? judged.code : judged.issue.code })
  }
  if (events.length === 0) return refused
  await appendEvents(
    tx.client,
    tombstoneKey,
    events.map(({ appId, event }) => ({ origin: { scopeId, appId }, stream: 'live', event })),
  )
  await notifyLanes(tx.client, [scopeId])
  return refused
}
