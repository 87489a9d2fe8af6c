import Type, { type Static } from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import type { Freshness, StoredEvent } from '../../events/index.ts'
import { instant, nullable, nullableNumber, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'

export const EventObject = Type.Object(
  {
    object: Type.Literal('event'),
    id: Type.String({ description: 'The uuid it was sent with.' }),
    event: Type.String(),
    distinct_id: Type.String(),
    customer_id: Type.String({ description: 'The customer it belongs to now: of a merged one, the one it became.' }),
    app_id: nullableString,
    timestamp: instant,
    received_at: instant,
    position: Type.Integer({ description: 'Its place in the order of its project and environment.' }),
    properties: Type.Record(Type.String(), Type.Unknown()),
    value: nullableNumber,
    entity_id: nullableString,
    trust: oneOf('device', 'server'),
    recognised: Type.Boolean(),
    historical: Type.Boolean(),
    merge: nullable(Type.Object({ status: Type.String(), reason: Type.Optional(Type.String()) })),
    warnings: Type.Array(Type.Object({ code: Type.String(), detail: Type.Optional(Type.String()) })),
  },
  { title: 'Event' },
)

/** What an event is on the wire, in lists and in exports. */
export function eventObject(event: StoredEvent): Static<typeof EventObject> {
  return {
    object: 'event',
    id: event.uuid,
    event: event.event,
    distinct_id: event.distinctId,
    customer_id: wireCustomerId(event.customerId),
    app_id: event.appId,
    timestamp: instantOf(event.at),
    received_at: instantOf(event.receivedAt),
    position: Number(event.position),
    properties: event.properties,
    value: event.value,
    entity_id: event.entityId,
    trust: event.trust,
    recognised: event.recognised,
    historical: event.historical,
    merge: event.merge,
    warnings: event.warnings,
  }
}

/** How complete an answer about events is. */
export const freshnessFields = {
  as_of: Type.Unsafe<string>({
    ...instant,
    description: 'Every live event acknowledged before this instant is included.',
  }),
  processing_lag_ms: Type.Integer(),
  historical_pending: Type.Integer({ description: 'Imported events that still wait.' }),
}

export function freshnessOf({ asOf, processingLagMs, historicalPending }: Freshness) {
  return {
    as_of: instantOf(asOf),
    processing_lag_ms: processingLagMs,
    historical_pending: historicalPending,
  }
}
