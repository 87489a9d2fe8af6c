import { dayMs, deviceDelayDaysMax, serverWaitDaysMax, webhookMsMax, webhookTriesMax } from '../../kernel/limits.ts'
import { payloadSchema } from './declared.ts'
import {
  anything,
  boolean,
  either,
  list,
  map,
  number,
  object,
  pattern,
  type Shape,
  tagged,
  text,
  that,
  whole,
  word,
} from './shape.ts'
import { condition, eventName, id, jid, json, stepId, url, values } from './values.ts'

const variant = object({ id, isHoldout: boolean })
const branches = list(object({ id: stepId, condition }), { min: 1, max: 64 })
const clockTime = pattern('a time of day, HH:MM', /^([01]\d|2[0-3]):[0-5]\d$/)
const transition = either(
  (one) => typeof one === 'object' && one !== null && 'transitionId' in one,
  object({ type: word('custom'), transitionId: jid }),
  object({ type: word('none', 'push', 'modal', 'fade') }),
)
const seconds = number(0)
const path = object({ kind: word('path'), path: id }, { viewModelName: id, isRelative: boolean })
const isText = (one: unknown) => typeof one === 'string'

const deviceDelayMsMax = deviceDelayDaysMax * dayMs
const serverWaitMsMax = serverWaitDaysMax * dayMs

/** What a device does by itself, exactly as descriptors carry it. */
export const deviceActions = {
  navigate: object({ screenId: jid }, { transition }),
  back: object({}, { steps: whole(1, 256), transition }),
  delay: object({ durationMs: whole(0, deviceDelayMsMax) }),
  condition: object({ branches }),
  experiment: object({ experimentId: id, variants: list(variant, { min: 1, max: 64 }), fallbackVariantId: id }),
  time_window: object({
    startTime: clockTime,
    endTime: clockTime,
    timezone: tagged('kind', { device: object({}), app_default: object({}), iana: object({ identifier: jid }) }),
    daysOfWeek: list(whole(0, 6), { max: 7 }),
  }),
  wait_until: object({
    trigger: tagged('kind', {
      response_change: object({}),
      event: object({ eventName: jid }, { payloadSchema }),
      event_or_response_change: object({ eventName: jid }, { payloadSchema }),
    }),
    condition,
    maxTimeMs: whole(0, deviceDelayMsMax),
  }),
  purchase: object({
    placementId: either(
      isText,
      id,
      either(
        (one) => typeof one === 'object' && one !== null && 'literal' in one,
        object({ literal: id }),
        object({ ref: path }),
      ),
    ),
  }),
  restore: object({}),
  submit_response: object({}),
  request_notifications: object({}),
  request_tracking: object({}),
  request_permission: object({ permissionType: jid }),
  send_event: object({ eventName }, { payload: values }),
  app_action: object({ name: jid }, { payload: values }),
  update_customer: object({ attributes: values }),
  open_link: object({ url, target: word('external', 'in_app') }),
  dismiss: object({}, { reason: stepId }),
  exit: object({}, { reason: stepId }),
  video: object({
    target: object({ artboardId: jid, viewNodeId: jid }),
    command: tagged('type', {
      play: object({}),
      pause: object({}),
      seek: object({ seconds }),
      rate: object({ rate: that<number>('a number above 0', (one) => typeof one === 'number' && one > 0) }),
      volume: object({ volume: number(0, 1) }),
      mute: object({ muted: boolean }),
      loop: object({ enabled: boolean }),
    }),
  }),
} satisfies Record<string, Shape<object>>

const fieldPath = pattern('a field, event.<key> or responses.<key>', /^(event|responses)\../)
const expression = anything // judged by checkIr, which knows the place
const propertyMap = map(json, { key: text({ max: 200 }), max: 200 })

/** What the server does between legs. */
export const serverActions = {
  delay: object(
    {},
    {
      durationMs: whole(1, serverWaitMsMax),
      until: object({}, { property: text(), field: fieldPath }),
      window: object({
        startTime: clockTime,
        endTime: clockTime,
        timezone: jid,
        daysOfWeek: list(whole(0, 6), { max: 7 }),
      }),
    },
  ),
  wait_for_event: object(
    { eventName, trust: word('any', 'server'), timeoutMs: whole(1, serverWaitMsMax) },
    { condition: expression, correlate: object({ eventKey: text(), field: fieldPath }) },
  ),
  branch: object({ branches: list(object({ id: stepId, condition: expression }), { min: 1, max: 64 }) }),
  experiment_split: object({ experimentId: id, fallbackVariantId: id, variants: list(variant, { min: 1, max: 64 }) }),
  webhook: object(
    { endpointId: id, body: json, timeoutMs: whole(1, webhookMsMax), attempts: whole(1, webhookTriesMax) },
    { save: map(text(), { key: fieldPath, max: 64 }), gate: boolean },
  ),
  grant_feature: object(
    { featureId: id },
    {
      amount: whole(1, Number.MAX_SAFE_INTEGER),
      unlimited: word(true),
      expiresAfterMs: whole(1, Number.MAX_SAFE_INTEGER),
      entityField: fieldPath,
    },
  ),
  set_properties: object(
    {},
    {
      set: propertyMap,
      setOnce: propertyMap,
      increment: map(number(), { key: text(), max: 200 }),
      unset: list(text({ max: 200 }), { max: 200 }),
    },
  ),
  emit_event: object({ eventName }, { properties: propertyMap }),
  exit: object({}, { reason: stepId }),
} satisfies Record<string, Shape<object>>

export type Plane = 'device' | 'server'
export const actionsOf: Record<Plane, Record<string, Shape<object>>> = { device: deviceActions, server: serverActions }

/** Steps that show something, and so need a screen. */
const presenting = new Set([
  ...['navigate', 'back', 'video', 'purchase', 'restore', 'request_notifications', 'request_permission'],
  ...['request_tracking', 'open_link', 'dismiss'],
])

export function isPresenting(type: string): boolean {
  return presenting.has(type)
}

/** Action of a step whose shape was found right. */
export interface Action {
  type: string
  [key: string]: unknown
}

interface Named {
  id: string
}

const fixedOutlets: Record<string, string[]> = {
  'device delay': ['next'],
  'device time_window': ['inside'],
  'device wait_until': ['satisfied', 'timeout'],
  'device purchase': ['completed', 'failed', 'cancelled'],
  'device restore': ['restored', 'failed', 'noPurchases'],
  'device send_event': ['next'],
  'device app_action': ['next'],
  'device update_customer': ['next'],
  'device submit_response': ['next'],
  'server delay': ['next'],
  'server wait_for_event': ['matched', 'timeout'],
  'server webhook': ['success', 'failure'],
  'server grant_feature': ['next'],
  'server set_properties': ['next'],
  'server emit_event': ['next'],
}

/** Every outlet the step asks for. */
export function outletsOf({ plane, action }: { plane: Plane; action: Action }): string[] {
  // Their lists were found right with the rest of the action.
  const named = (key: string) => (action[key] as Named[]).map((one) => one.id)
  if (action.type === 'condition' || action.type === 'branch') return [...named('branches'), 'default']
  if (action.type === 'experiment' || action.type === 'experiment_split') return named('variants')
  return fixedOutlets[`${plane} ${action.type}`] ?? []
}

/** Whether something other than the step itself decides when the run goes on. */
export function isWaiting({ action }: { action: Action }): boolean {
  const { type } = action
  if (type === 'delay') return action.durationMs !== 0
  return isPresenting(type) || ['wait_for_event', 'wait_until', 'time_window'].includes(type)
}
