import { isObject } from '../conformance/check.ts'
import type { Arm, Profile } from '../conformance/profile.ts'
import { isTruthy, listOf, not, type Truth, winning } from './condition.ts'

/** What happened on the device that may start a leg. */
export type Occasion =
  | { kind: 'foreground' | 'profile' }
  | { kind: 'event'; name: string; properties: Record<string, unknown> }

/**
 * Whether an arm starts now. Of the expressions a device can serve this one serves those without a history of events; with any
 * other in it a condition is unknown, and the arm waits.
 */
export function starts(
  { entryCondition: entry }: Arm,
  { facts, features }: Profile,
  occasion: Occasion,
  nowMs: number,
): boolean {
  const { type } = entry
  const met =
    (type === 'app_foregrounded' && occasion.kind === 'foreground') ||
    (type === 'event' && occasion.kind === 'event' && occasion.name === entry.eventName) ||
    (type === 'segment' &&
      occasion.kind === 'profile' &&
      facts.memberships[String(entry.segmentId)] === entry.member) ||
    (type === 'always' && occasion.kind === 'profile')
  if (!met || !isObject(entry.condition)) return met
  const known: Known = { facts, features, event: occasion.kind === 'event' ? occasion.properties : undefined, nowMs }
  return truth(entry.condition.expr, known) === true
}

interface Known extends Pick<Profile, 'facts' | 'features'> {
  event: Record<string, unknown> | undefined
  nowMs: number
}

const unknown = Symbol('unknown')

function truth(node: unknown, known: Known): Truth {
  // First all of the tree: what can't be served makes the whole unknown, even where another branch would decide.
  if (!isServed(node, known)) return 'unknown'
  const value = evaluate(node, known)
  return value === unknown ? 'unknown' : isTruthy(value)
}

function isServed(node: unknown, known: Known): boolean {
  if (Array.isArray(node)) return node.every((each) => isServed(each, known))
  if (!isObject(node)) return true
  return serves(node, known) && Object.values(node).every((each) => isServed(each, known))
}

function serves({ type, key, id, op }: Record<string, unknown>, { facts, event }: Known): boolean {
  switch (type) {
    case 'User':
      return Object.hasOwn(facts.properties, String(key))
    case 'Segment':
      return Object.hasOwn(facts.memberships, String(id)) && op !== 'entered_within'
    case 'Event':
    case 'Pred':
    case 'PredAnd':
    case 'PredOr':
      return event !== undefined
    case 'Subscription':
    case 'Journey.Id':
    case 'Response.Field':
      return false
    default:
      return !String(type).startsWith('Events.')
  }
}

function evaluate(node: unknown, known: Known): unknown {
  if (!isObject(node)) return unknown
  const inner = (child: unknown) => evaluate(child, known)
  const truths = () => listOf(node.args).map((each) => truthOf(inner(each)))
  switch (node.type) {
    case 'Bool':
    case 'String':
    case 'Number':
    case 'Timestamp':
    case 'Duration':
      return node.value
    case 'List':
      return listOf(node.value).map(inner)
    case 'And':
    case 'PredAnd':
      return inOrder(truths(), false)
    case 'Or':
    case 'PredOr':
      return inOrder(truths(), true)
    case 'Not':
      return symbolOf(not(truthOf(inner(node.arg))))
    case 'Compare':
      return compare(String(node.op), inner(node.left), inner(node.right))
    case 'User': {
      const stored = known.facts.properties[String(node.key)]
      const value = isObject(stored) && stored.present === true ? stored.value : null
      return predicate(String(node.op), value, inner(node.value))
    }
    case 'Event':
    case 'Pred':
      return predicate(String(node.op), known.event?.[String(node.key).replace(/^\$/, '')] ?? null, inner(node.value))
    case 'Segment':
      return (known.facts.memberships[String(node.id)] === true) === (node.op === 'is_member')
    case 'Feature':
      return featureHolds(node, known, inner(node.value))
    case 'Time.Now':
      return known.nowMs / 1000
    case 'Time.Ago':
      return known.nowMs / 1000 - Number(inner(node.duration))
    default:
      return unknown
  }
}

/** Left to right: the first that decides ends it, an unknown before that leaves it unknown. */
function inOrder(all: Truth[], deciding: boolean): unknown {
  const first = all.find((each) => each === deciding || each === 'unknown')
  return symbolOf(first ?? winning(all, deciding))
}

function truthOf(value: unknown): Truth {
  return value === unknown ? 'unknown' : isTruthy(value)
}

function symbolOf(value: Truth): unknown {
  return value === 'unknown' ? unknown : value
}

function compare(op: string, left: unknown, right: unknown): unknown {
  if (left === unknown || right === unknown) return unknown
  if (op === 'in' || op === 'not_in') {
    const member = textOf(left) !== undefined && listOf(right).some((each) => textOf(each) === textOf(left))
    return member === (op === 'in')
  }
  const [a, b] = comparable(left, right)
  if (a === undefined || b === undefined) {
    const nulls = [left, right].filter((each) => each === null).length
    return op === '==' ? nulls === 2 : op === '!=' && nulls > 0
  }
  const order = a < b ? -1 : a > b ? 1 : 0
  const answers: Record<string, boolean> = {
    '==': order === 0,
    '!=': order !== 0,
    '<': order < 0,
    '<=': order <= 0,
    '>': order > 0,
    '>=': order >= 0,
  }
  return answers[op] ?? unknown
}

const comparisons: Record<string, string> = {
  eq: '==',
  neq: '!=',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  in: 'in',
  not_in: 'not_in',
}

function predicate(op: string, value: unknown, against: unknown): unknown {
  if (op === 'has' || op === 'is_set') return value !== null
  if (op === 'is_not_set') return value === null
  const comparison = comparisons[op]
  if (comparison !== undefined) return compare(comparison, value, against)
  const [text, sought] = [textOf(value), textOf(against)]
  if (op === 'icontains') {
    const texts = Array.isArray(value) ? value.map(textOf) : [text]
    return texts.some((each) => each?.toLowerCase().includes((sought ?? '').toLowerCase()))
  }
  return unknown
}

function featureHolds({ op, id }: Record<string, unknown>, { features }: Known, against: unknown): unknown {
  const entry = features.find((each) => each.id === id)
  if (op === 'has' || op === 'not_has') return (entry !== undefined) === (op === 'has')
  if (op === 'is_unlimited') return entry?.unlimited === true
  const [, comparison = ''] = /^credits_(.*)$/.exec(String(op)) ?? []
  return comparison === ''
    ? unknown
    : predicate(comparison, entry?.unlimited ? Number.MAX_VALUE : (entry?.balance ?? 0), against)
}

function comparable(left: unknown, right: unknown): [number, number] | [string, string] | [undefined, undefined] {
  const [a, b] = [numberOf(left), numberOf(right)]
  if (a !== undefined && b !== undefined) return [a, b]
  const [s, t] = [textOf(left), textOf(right)]
  return s !== undefined && t !== undefined ? [s, t] : [undefined, undefined]
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'boolean') return value ? '1' : '0'
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
