import {
  also,
  type Check,
  exact,
  fields,
  flag,
  hold,
  into,
  is,
  isObject,
  later,
  list,
  matching,
  name,
  number,
  type Of,
  say,
  tagged,
  text,
  textWhich,
} from './check.ts'

/** System events that authored content may name, and no others. */
const systemEvents = new Set([
  ...['$identify', '$app_installed', '$app_updated', '$app_opened', '$app_backgrounded', '$feature_used'],
  ...['$products_unavailable', '$screen_shown', '$screen_dismissed', '$purchase_completed', '$purchase_failed'],
  ...['$purchase_cancelled', '$purchase_pending', '$purchase_synced', '$restore_completed', '$restore_failed'],
  ...['$restore_no_purchases', '$notifications_enabled', '$notifications_denied', '$permission_granted'],
  ...['$permission_denied', '$tracking_authorized', '$tracking_denied', '$experience_shown', '$experience_dismissed'],
  ...['$experience_errored', '$experience_artifact_load_succeeded', '$experience_artifact_load_failed'],
  ...['$customer_updated', '$app_action_requested', '$experiment_exposure'],
])

export function isNameableEvent(eventName: string): boolean {
  return !eventName.startsWith('$') || systemEvents.has(eventName)
}

const eventName = textWhich((value) => value !== '' && isNameableEvent(value), 'names an event that content may name')

const predicates = [
  ...(['eq', 'neq', 'icontains', 'regex', 'gt', 'gte', 'lt', 'lte', 'is_set', 'is_not_set', 'in', 'not_in'] as const),
  ...(['is_date_exact', 'is_date_after', 'is_date_before'] as const),
]
const featureOps = [
  ...(['has', 'not_has', 'is_unlimited', 'credits_eq', 'credits_neq', 'credits_gt', 'credits_gte'] as const),
  ...(['credits_lt', 'credits_lte', 'is_trialing', 'is_active', 'is_expired', 'will_renew', 'will_not_renew'] as const),
]

const node: Check<unknown> = later(() => expression)
const where: Check<unknown> = later(() => rowFilter)
const span = { since: node, until: node, within: node, where }

const rowFilter = tagged('type', {
  Pred: fields({ op: is(...predicates), key: text }, { value: node }),
  PredAnd: fields({ args: list(where) }),
  PredOr: fields({ args: list(where) }),
})

const responseField: Check<unknown> = (value, at): value is unknown => {
  if (!isObject(value)) return say(at, 'is an object')
  const key = 'form' in value ? name : matching(/^[A-Za-z][A-Za-z0-9_]*$/)
  return exact({ type: is('Response.Field'), key }, { form: name })(value, at)
}

const nodes = tagged('type', {
  Bool: fields({ value: flag }),
  String: fields({ value: text }),
  Number: fields({ value: number() }),
  Timestamp: fields({ value: number() }),
  Duration: fields({ value: number() }),
  List: fields({ value: list(node) }),
  And: fields({ args: list(node) }),
  Or: fields({ args: list(node) }),
  PredAnd: fields({ args: list(node) }),
  PredOr: fields({ args: list(node) }),
  Not: fields({ arg: node }),
  Compare: fields({ op: is('==', '!=', '<', '<=', '>', '>=', 'in', 'not_in'), left: node, right: node }),
  User: fields({ op: is(...predicates, 'has'), key: text }, { value: node }),
  Event: fields({ op: is(...predicates, 'has'), key: text }, { value: node }),
  Pred: fields({ op: is(...predicates), key: text }, { value: node }),
  Segment: fields({ op: is('is_member', 'not_member', 'entered_within'), id: text }, { within: node }),
  Feature: fields({ op: is(...featureOps), id: text }, { value: node }),
  Subscription: fields({
    op: is('active', 'not_active', 'trialing', 'expired', 'will_renew', 'will_not_renew'),
  }),
  'Events.Exists': fields({ name: eventName }, span),
  'Events.Count': fields({ name: eventName }, span),
  'Events.Aggregate': fields({ name: eventName, agg: is('sum', 'avg', 'min', 'max', 'unique'), prop: text }, span),
  'Events.InOrder': fields(
    { steps: list(exact({ name: eventName }, { where })) },
    { overallWithin: node, perStepWithin: node, since: node, until: node },
  ),
  'Events.ActivePeriods': fields(
    { name: eventName, period: is('day', 'week', 'month', 'year'), totalPeriods: number(), minPeriods: number() },
    { where },
  ),
  'Events.FirstTime': fields({ name: eventName }, { where }),
  'Events.LastTime': fields({ name: eventName }, { where }),
  'Events.LastAge': fields({ name: eventName }, { where }),
  'Events.Stopped': fields({ name: eventName, inactiveFor: node }, { where }),
  'Events.Restarted': fields({ name: eventName, inactiveFor: node, within: node }, { where }),
  'Time.Now': fields(),
  'Time.Ago': fields({ duration: node }),
  'Time.Window': fields({ value: number(), interval: is('day', 'week', 'month', 'year') }),
  'Journey.Id': fields(),
})

const expression: Check<unknown> = (value, at): value is unknown =>
  isObject(value) && value.type === 'Response.Field' ? responseField(value, at) : nodes(value, at)

const envelope = exact(
  { ir_version: is(1), expr: node },
  {
    engine_min: textWhich((value) => /^[01](?:\.|$)/.test(value), 'is a version of major 0 or 1'),
    compiled_at: number(),
  },
)

/** Only a goal may ask for the journey it belongs to. */
export const condition = also(envelope, ({ expr }, at) => forbid(expr, into(at, 'expr'), notInConditions))

/** What a device evaluates to start a leg: membership is delivered, its history is not. */
export const legCondition = also(condition, ({ expr }, at) => {
  const asksHistory = nodesOf(expr).some(({ type, op }) => type === 'Segment' && op === 'entered_within')
  hold(at, !asksHistory, 'does not ask when a segment was entered')
})

const inGoals = new Set([
  ...['Bool', 'Number', 'String', 'Timestamp', 'Duration', 'List', 'And', 'Or', 'Not', 'Compare', 'Event', 'Pred'],
  ...['PredAnd', 'PredOr', 'Journey.Id', 'Time.Now', 'Time.Ago', 'Time.Window'],
])
const notInConditions = (type: unknown) => type === 'Journey.Id'

export const goalCondition = also(envelope, ({ expr }, at) =>
  forbid(expr, into(at, 'expr'), (type) => !inGoals.has(String(type))),
)

function forbid(expr: unknown, at: Parameters<typeof hold>[0], forbidden: (type: unknown) => boolean): void {
  for (const { type } of nodesOf(expr)) hold(at, !forbidden(type), `has no ${String(type)} here`)
}

/** Every object with a `type` below a value, itself included. */
export function nodesOf(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(nodesOf)
  if (!isObject(value)) return []
  const below = Object.values(value).flatMap(nodesOf)
  return typeof value.type === 'string' ? [value, ...below] : below
}

export type Condition = Of<typeof condition>
