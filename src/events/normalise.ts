import { isUuid } from '../kernel/ids.ts'
import {
  customerIdCharsMax,
  entityIdCharsMax,
  eventBytesMax,
  eventNameCharsMax,
  futureSkewMsMax,
  journeyOriginBytesMax,
} from '../kernel/limits.ts'
import { codePoints, isBlank, isReservedDistinctId, isStorable, isTrimmed } from '../kernel/text.ts'
import { cleanJson, storable } from './clean-json.ts'
import { type CodedIssue, issue, type ReasonCode } from './reasons.ts'
import { parseTimestamp } from './timestamp.ts'
import type { EventPayload, Json, JsonObject, KnownFields, NewEvent, Warning } from './types.ts'

export interface Receipt {
  /** Unix milliseconds. */
  receivedAt: number
  trust: 'device' | 'server'
}

export type Normalised =
  | { kind: 'event'; event: NewEvent }
  | { kind: 'invalid'; code: ReasonCode; issues: [CodedIssue, ...CodedIssue[]] }
  | { kind: 'misdirected'; issue: CodedIssue; lane: 'identity'; endpoint: string }

/**
 * Judges one parsed item by the table of fields, in its order: `issues` holds all that is wrong, the first of them is a
 * batch's reason. Numbers and text are never changed but for what cannot be stored.
 */
export function normalise(item: unknown, { receivedAt, trust }: Receipt): Normalised {
  if (!isObject(item)) return refused([issue('item_invalid', '')])
  const judged: Judged = { issues: [], warnings: [], replaced: false }

  const event = readName(judged, item)
  const distinctId = readDistinctId(judged, item)
  const uuid = readUuid(judged, item)
  const time = readTime(judged, item, receivedAt)
  const properties = readProperties(judged, item)
  const tail = readDirectives(judged, item)
  const known: KnownFields = { event, distinct_id: distinctId, uuid, timestamp: time.text, properties }
  readValue(judged, item, known)
  readEntityId(judged, item, known)
  readAnonymousId(judged, item, known, tail)
  readJourneyOrigin(judged, item, tail)
  if (judged.issues.length > 0) return refused(judged.issues)

  if (judged.replaced) judged.warnings.push({ code: 'text_replaced' })
  if (judged.warnings.length > 0) tail.warnings = judged.warnings
  tail.trust = trust
  const { knownText, text } = write(known, tail)
  // UTF-8 takes at most three bytes for each unit: only large events are measured.
  if (text.length * 3 > eventBytesMax && Buffer.byteLength(text) > eventBytesMax)
    return refused([issue('event_too_large', '')])
  if (event === '$create_alias' || event === '$merge_dangerously') return misdirected
  return { kind: 'event', event: { uuid, distinctId, at: time.at, receivedAt, known, knownText, text } }
}

interface Judged {
  issues: CodedIssue[]
  warnings: Warning[]
  replaced: boolean
}

/** What follows the known fields in the log. */
type Tail = Partial<Omit<EventPayload, Exclude<keyof KnownFields, '$anon_distinct_id'>>>

const misdirected: Normalised = {
  kind: 'misdirected',
  issue: issue('endpoint_required', 'event'),
  lane: 'identity',
  endpoint: 'POST /v1/customers/{id}/merge',
}

function refused(issues: CodedIssue[]): Normalised {
  const [first, ...others] = issues
  if (!first) throw new Error('nothing is wrong')
  return { kind: 'invalid', code: first.code, issues: [first, ...others] }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readName({ issues }: Judged, { event }: JsonObject): string {
  const code = nameProblem(event)
  if (code !== null) issues.push(issue(code, 'event'))
  return typeof event === 'string' ? event : ''
}

function nameProblem(event: Json | undefined): ReasonCode | null {
  if (event === undefined || event === null) return 'event_required'
  if (typeof event !== 'string') return 'event_invalid'
  if (isBlank(event)) return 'event_required'
  if (!isStorable(event)) return 'event_invalid'
  return event.length > eventNameCharsMax && codePoints(event, eventNameCharsMax) > eventNameCharsMax
    ? 'event_too_long'
    : null
}

function readDistinctId({ issues }: Judged, { distinct_id: distinctId }: JsonObject): string {
  const code = distinctIdProblem(distinctId)
  if (code !== null) issues.push(issue(code, 'distinct_id'))
  return typeof distinctId === 'string' ? distinctId : ''
}

function distinctIdProblem(id: Json | undefined): ReasonCode | null {
  if (id === undefined || id === null) return 'distinct_id_required'
  if (typeof id !== 'string') return 'distinct_id_invalid'
  if (isBlank(id)) return 'distinct_id_required'
  if (!isStorable(id)) return 'distinct_id_invalid'
  if (id.length > customerIdCharsMax && codePoints(id, customerIdCharsMax) > customerIdCharsMax)
    return 'distinct_id_too_long'
  return isReservedDistinctId(id) ? 'distinct_id_reserved' : null
}

/** Both names are one key space. */
function readUuid({ issues }: Judged, item: JsonObject): string {
  const uuid = item.uuid ?? null
  const key = item.idempotency_key ?? null
  if (uuid === null && key === null) issues.push(issue('uuid_required', 'uuid'))
  const ofUuid = uuid === null ? '' : lowerUuid(uuid)
  const ofKey = key === null ? '' : lowerUuid(key)
  if (ofUuid === null) issues.push(issue('uuid_invalid', 'uuid'))
  if (ofKey === null) issues.push(issue('idempotency_key_invalid', 'idempotency_key'))
  if (ofUuid && ofKey && ofUuid !== ofKey) issues.push(issue('uuid_mismatch', 'idempotency_key'))
  return ofUuid || ofKey || ''
}

function lowerUuid(value: Json): string | null {
  return typeof value === 'string' && isUuid(value) ? value.toLowerCase() : null
}

function readTime(
  { issues, warnings }: Judged,
  { timestamp }: JsonObject,
  receivedAt: number,
): { at: number; text: string } {
  const receipt = () => ({ at: receivedAt, text: new Date(receivedAt).toISOString() })
  if (timestamp === undefined || timestamp === null) return receipt()
  const text = typeof timestamp === 'string' ? timestamp : ''
  const at = parseTimestamp(text)
  if (at === null) {
    issues.push(issue('timestamp_invalid', 'timestamp'))
    return receipt()
  }
  if (at > receivedAt + futureSkewMsMax) {
    warnings.push({ code: 'timestamp_clamped', detail: text })
    return receipt()
  }
  return { at, text: isCanonical(text) ? text : new Date(at).toISOString() }
}

/** A legal timestamp that is written the way we write it. */
function isCanonical(text: string): boolean {
  return text.length === 24 && text[23] === 'Z' && text[19] === '.' && text[17] !== '6'
}

function readProperties(judged: Judged, item: JsonObject): JsonObject {
  const properties = item.properties ?? null
  if (properties === null) return {}
  if (!isObject(properties)) {
    judged.issues.push(issue('properties_invalid', 'properties'))
    return {}
  }
  const cleaned = clean(judged, properties, 'properties')
  for (const name of directives) {
    if (!isDirective(name, properties[name])) judged.issues.push(issue('directive_invalid', `properties.${name}`))
  }
  return cleaned
}

const directives = ['$set', '$set_once', '$unset', '$increment'] as const

function isDirective(name: (typeof directives)[number], value: Json | undefined): boolean {
  if (value === undefined || value === null) return true
  return name === '$unset' ? Array.isArray(value) : isObject(value)
}

/** Those at the top level; the ones in `properties` are stored with them. */
function readDirectives(judged: Judged, item: JsonObject): Tail {
  const tail: Tail = {}
  for (const name of directives) {
    const value = item[name] ?? null
    if (value === null) continue
    if (!isDirective(name, value)) judged.issues.push(issue('directive_invalid', name))
    else if (Array.isArray(value)) tail.$unset = clean(judged, value, name)
    else if (isObject(value) && name !== '$unset') tail[name] = clean(judged, value, name)
  }
  return tail
}

function clean<Value extends JsonObject | Json[]>(judged: Judged, value: Value, path: string): Value {
  const cleaned = cleanJson(value, path)
  if (!cleaned.ok) {
    judged.issues.push(cleaned.issue)
    return value
  }
  judged.replaced ||= cleaned.replaced
  return cleaned.value
}

function readValue({ issues }: Judged, item: JsonObject, known: KnownFields): void {
  const value = item.value ?? null
  if (value === null) return
  if (typeof value === 'number' && Number.isFinite(value)) known.value = value
  else issues.push(issue('value_invalid', 'value'))
}

function readEntityId({ issues }: Judged, item: JsonObject, known: KnownFields): void {
  const entityId = item.entityId ?? null
  if (entityId === null) return
  if (isEntityId(entityId)) known.entityId = entityId
  else issues.push(issue('entity_id_invalid', 'entityId'))
}

function isEntityId(id: Json): id is string {
  return (
    typeof id === 'string' &&
    id !== '' &&
    isTrimmed(id) &&
    isStorable(id) &&
    codePoints(id, entityIdCharsMax) <= entityIdCharsMax
  )
}

/**
 * Its content never refuses the event, only the merge. So an id that cannot be stored reaches the lane as it was sent, and
 * not with the replaced text of properties and answers, which would name somebody.
 */
function readAnonymousId({ issues }: Judged, item: JsonObject, known: KnownFields, tail: Tail): void {
  const sent = item.$anon_distinct_id ?? null
  if (sent !== null && typeof sent !== 'string') issues.push(issue('anon_distinct_id_invalid', '$anon_distinct_id'))
  if (typeof sent === 'string') known.$anon_distinct_id = storable(sent)
  const id = sent ?? (isObject(item.properties) ? item.properties.$anon_distinct_id : undefined)
  if (typeof id === 'string' && !isStorable(id)) tail.$anon_distinct_id = id
}

function readJourneyOrigin(judged: Judged, item: JsonObject, tail: Tail): void {
  const origin = item.journeyOrigin ?? null
  if (origin === null) return
  const cleaned = isObject(origin) ? cleanJson(origin, 'journeyOrigin') : null
  if (cleaned?.ok && Buffer.byteLength(JSON.stringify(cleaned.value)) <= journeyOriginBytesMax) {
    judged.replaced ||= cleaned.replaced
    tail.journeyOrigin = cleaned.value
  } else {
    judged.warnings.push({ code: 'journey_origin_ignored' })
  }
}

/** One pass of JSON serves the answer, the size and the log. */
function write(known: KnownFields, tail: Tail): { knownText: string; text: string } {
  const knownText = JSON.stringify(known)
  const text =
    tail.$anon_distinct_id === undefined
      ? `${knownText.slice(0, -1)},${JSON.stringify(tail).slice(1)}`
      : JSON.stringify({ ...known, ...tail })
  return { knownText, text }
}
