import {
  also,
  type Check,
  distinct,
  exact,
  fields,
  flag,
  hold,
  id,
  integer,
  into,
  is,
  jid,
  later,
  list,
  matching,
  name,
  number,
  type Of,
  positive,
  record,
  tagged,
  text,
} from './check.ts'
import { eventFields } from './context.ts'

const inner = later(() => value)
const value: Check<unknown> = tagged('type', {
  Null: fields(),
  Boolean: fields({ value: flag }),
  Number: fields({ value: number() }),
  String: fields({ value: text }),
  Array: fields({ items: list(inner, { max: 256 }) }),
  Object: fields({ fields: record(jid, inner) }),
  'Event.Field': fields({ key: jid }),
  'Customer.Field': fields({ key: jid }),
  'Response.Field': fields({ key: jid }, { form: name }),
})

const deeper = later(() => condition)
const several = { conditions: list(deeper, { min: 1, max: 64 }) }
const condition: Check<unknown> = tagged('type', {
  Truthy: fields({ value }),
  Compare: fields({ op: is('==', '!=', '<', '<=', '>', '>='), left: value, right: value }),
  Contains: fields({ collection: value, value }),
  All: fields(several),
  Any: fields(several),
  Not: fields({ condition: deeper }),
})

const values = record(jid, value)
const ownEvent = also(jid, (eventName, at) => hold(at, !eventName.startsWith('$'), 'does not begin with $'))
const transition = tagged('type', {
  none: fields(),
  push: fields(),
  modal: fields(),
  fade: fields(),
  custom: fields({ transitionId: jid }),
})

const byBytes = also(eventFields, (declared, at) => {
  const keys = declared.map(({ key }) => Buffer.from(String(key)))
  const ascends = keys.every((key, index) => index === 0 || Buffer.compare(keys[index - 1] ?? key, key) < 0)
  hold(at, ascends && keys.length <= 256, 'has at most 256 fields, ascending by UTF-8 bytes')
})
const payloadSchema = exact({ type: is('object'), fields: byBytes, additionalProperties: flag })
const eventTrigger = fields({ eventName: jid }, { payloadSchema })
const trigger = tagged('kind', {
  response_change: fields(),
  event: eventTrigger,
  event_or_response_change: eventTrigger,
})

const variants = distinct(list(exact({ id: id(), isHoldout: flag }), { min: 1 }), (variant) => variant.id, 'variant')
const timezone = tagged('kind', { device: fields(), app_default: fields(), iana: fields({ identifier: jid }) })
const clock = matching(/^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/)

const reference = tagged('kind', { path: fields({ path: id() }, { viewModelName: id(), isRelative: flag }) })
const fixedPlacement = exact({ literal: id() })
const boundPlacement = exact({ ref: reference })
const placementId: Check<unknown> = (sent, at): sent is unknown => {
  if (typeof sent === 'string') return id()(sent, at)
  return (typeof sent === 'object' && sent !== null && 'ref' in sent ? boundPlacement : fixedPlacement)(sent, at)
}

const url = also(value, (sent, at) => {
  const type = typeof sent === 'object' && sent !== null && 'type' in sent ? sent.type : undefined
  hold(
    at,
    ['String', 'Event.Field', 'Response.Field'].includes(String(type)),
    'is a String, Event.Field or Response.Field',
  )
})

const command = tagged('type', {
  play: fields(),
  pause: fields(),
  seek: fields({ seconds: number(0) }),
  rate: fields({ rate: positive() }),
  volume: fields({ volume: number(0, 1) }),
  mute: fields({ muted: flag }),
  loop: fields({ enabled: flag }),
})

/** The longest a leg may be told to rest: 366 days. */
const delayMsMax = 31_622_400_000

const shapes = tagged('type', {
  navigate: fields({ screenId: jid }, { transition }),
  back: fields({}, { steps: integer(1, 256), transition }),
  delay: fields({ durationMs: integer(0, delayMsMax) }),
  condition: fields({ branches: list(exact({ id: id(), condition })) }),
  experiment: fields({ experimentId: id(), variants, fallbackVariantId: id() }),
  time_window: fields({ startTime: clock, endTime: clock, timezone, daysOfWeek: list(integer(0, 6)) }),
  wait_until: fields({ trigger, condition, maxTimeMs: integer() }),
  purchase: fields({ placementId }),
  restore: fields(),
  send_event: fields({ eventName: ownEvent }, { payload: values }),
  app_action: fields({ name: jid }, { payload: values }),
  update_customer: fields({ attributes: values }),
  submit_response: fields(),
  request_notifications: fields(),
  request_tracking: fields(),
  request_permission: fields({ permissionType: jid }),
  open_link: fields({ url, target: is('external', 'in_app') }),
  dismiss: fields({}, { reason: text }),
  exit: fields({}, { reason: text }),
  video: fields({ target: exact({ artboardId: jid, viewNodeId: jid }), command }),
})

export const action = also(shapes, (sent, at) => {
  if (sent.type !== 'experiment') return
  const known = Array.isArray(sent.variants) && sent.variants.some((variant) => variant.id === sent.fallbackVariantId)
  hold(into(at, 'fallbackVariantId'), known, 'is one of the variants')
})
export type Action = Of<typeof action>

const presenting = new Set<string>([
  ...['navigate', 'back', 'video', 'purchase', 'restore', 'request_notifications', 'request_permission'],
  ...['request_tracking', 'open_link', 'dismiss'],
])

/** Whether it needs a screen to stand on. */
export function presents({ type }: Action): boolean {
  return presenting.has(type)
}

/** The placement that a purchase names itself, unless a screen's model does. */
export function namedPlacement({ type, placementId: named }: Action): string | undefined {
  if (type !== 'purchase') return undefined
  if (typeof named === 'string') return named
  return typeof named === 'object' && named !== null && 'literal' in named ? String(named.literal) : undefined
}
