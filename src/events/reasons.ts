import type { Issue } from '../kernel/errors.ts'
import {
  customerIdCharsMax,
  entityIdCharsMax,
  eventNameCharsMax,
  propertyDepthMax,
  propertyKeysMax,
} from '../kernel/limits.ts'

/** Why an item is not taken: one sentence per code, the same for `/event` and for an item of `/batch`. */
const sentences = {
  item_invalid: 'an event must be a JSON object',
  event_required: 'event must be a text that is not blank',
  event_invalid: 'event must be a text without NUL and without lone surrogates',
  event_too_long: `event must have at most ${eventNameCharsMax} characters`,
  distinct_id_required: 'distinct_id must be a text that is not blank',
  distinct_id_invalid: 'distinct_id must be a text without NUL and without lone surrogates',
  distinct_id_too_long: `distinct_id must have at most ${customerIdCharsMax} characters`,
  distinct_id_reserved: 'distinct_id must not be a placeholder',
  uuid_required: 'uuid or idempotency_key is required',
  uuid_invalid: 'uuid must be a UUID other than all zeros or all F',
  idempotency_key_invalid: 'idempotency_key must be a UUID other than all zeros or all F',
  uuid_mismatch: 'uuid and idempotency_key must be the same UUID',
  timestamp_invalid: 'timestamp must be an ISO 8601 date or date-time',
  properties_invalid: 'properties must be an object',
  properties_too_deep: `objects and arrays must be at most ${propertyDepthMax} deep`,
  properties_too_many_keys: `objects must have at most ${propertyKeysMax} keys in all`,
  number_out_of_range: 'a number must be finite as a double',
  directive_invalid: '$set, $set_once and $increment must be objects, $unset an array',
  value_invalid: 'value must be a finite number',
  entity_id_invalid: `entityId must be a text of 1 to ${entityIdCharsMax} characters without white space around it`,
  anon_distinct_id_invalid: '$anon_distinct_id must be a text',
  event_too_large: 'an event must be at most 1 MiB of JSON',
  endpoint_required: 'this event is taken by another endpoint only',
  customer_deleted: 'the customer of this distinct_id was deleted',
} as const

export type ReasonCode = keyof typeof sentences

/** `"<code>: <sentence>"`. */
export function reason(code: ReasonCode): string {
  return `${code}: ${sentences[code]}`
}

export interface CodedIssue extends Issue {
  code: ReasonCode
}

export function issue(code: ReasonCode, path: string): CodedIssue {
  return { code, path, message: reason(code) }
}
