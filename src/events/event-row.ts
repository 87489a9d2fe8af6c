import { isStorable } from '../kernel/text.ts'
import type { EventRow } from './effects-store.ts'
import type { EventOutcome, EventPayload, JsonObject, LaneEvent, LoggedEvent, Warning } from './types.ts'

export type Applied = Extract<EventOutcome, { kind: 'applied' }>

/** All that was odd about it: on receipt, and when it was applied. */
export function warningsOf({ payload, recognised }: LoggedEvent, { warnings }: Applied): Warning[] {
  return [...(payload.warnings ?? []), ...warnings, ...(recognised ? [] : [unrecognised])]
}

/** What is stored of an applied event. */
export function eventRowOf(
  { event, bodyHash, pos }: { event: LoggedEvent; bodyHash: bigint; pos: bigint },
  { customerId, merge }: Applied,
  warnings: readonly Warning[],
): EventRow {
  const { uuid, distinctId, appId, at, receivedAt, recognised, payload } = event
  return {
    ...{ pos, uuid, bodyHash, customerId, distinctId, appId, name: payload.event, at, receivedAt },
    value: payload.value ?? null,
    entityId: payload.entityId ?? null,
    properties: JSON.stringify(storedProperties(payload, merge?.reason === 'source_deleted')),
    ...{ trust: payload.trust, recognised },
    merge: merge && JSON.stringify(merge),
    journeyOrigin: payload.journeyOrigin ? JSON.stringify(payload.journeyOrigin) : null,
    warnings: warnings.length > 0 ? JSON.stringify(warnings) : null,
  }
}

/** What consumers see of it. */
export function laneEventOf(event: LoggedEvent, pos: bigint, { customerId }: Applied): LaneEvent {
  const { uuid, distinctId, appId, at, receivedAt, live, recognised, payload } = event
  const { event: name, trust, journeyOrigin } = payload
  const originClaim = journeyOrigin ?? null
  return {
    pos,
    uuid,
    name,
    customerId,
    distinctId,
    appId,
    at,
    receivedAt,
    trust,
    live,
    recognised,
    originClaim,
    payload,
  }
}

const unrecognised: Warning = { code: 'unrecognised_system_event' }

/**
 * The properties with what was sent beside them folded in, so that the stored event alone can be applied again. Per key the
 * top level wins, as it does in the lane. `namesDeleted`: the other id of the identify is that of a deleted customer, whom
 * nothing may name from the deletion on.
 */
function storedProperties(payload: EventPayload, namesDeleted: boolean): JsonObject {
  const { properties, $set, $set_once, $unset, $increment, $anon_distinct_id: anonymousId } = payload
  if (!$set && !$set_once && !$unset && !$increment && anonymousId === undefined && !namesDeleted) return properties
  const stored = joined(properties, {})
  if ($set) stored.$set = joined(stored.$set, $set)
  if ($set_once) stored.$set_once = joined(stored.$set_once, $set_once)
  if ($increment) stored.$increment = joined(stored.$increment, $increment)
  if ($unset) stored.$unset = [...(Array.isArray(stored.$unset) ? stored.$unset : []), ...$unset]
  if (anonymousId !== undefined) stored.$anon_distinct_id = anonymousId
  // An id that cannot be stored was refused by the lane for good, so without it the event still does the same.
  if (namesDeleted || (typeof anonymousId === 'string' && !isStorable(anonymousId))) delete stored.$anon_distinct_id
  return stored
}

/** Without a prototype, so that `__proto__` is a plain key. */
function joined(under: unknown, over: JsonObject): JsonObject {
  const result: JsonObject = Object.create(null)
  for (const object of [under, over]) {
    if (!isObject(object)) continue
    for (const key of Object.keys(object)) result[key] = object[key] ?? null
  }
  return result
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
