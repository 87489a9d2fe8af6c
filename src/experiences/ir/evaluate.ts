import type { Json } from '../../events/index.ts'
import { isObject } from '../draft/shape.ts'
import { compare, numberOf, periodSeconds, predicate, truthy } from './compare.ts'
import { eventValue } from './event-value.ts'
import { historyKey, type IrFacts, type Truth } from './facts.ts'
import { featureHolds, isStandingOp, noStanding, standingHolds } from './feature-facts.ts'
import { isServed } from './served.ts'

/**
 * What an expression comes to. First all of the tree is looked through: what these facts can't serve makes the whole unknown,
 * even beside a branch that would decide. Then left to right, as far as needed.
 */
export function evaluate(expr: unknown, facts: IrFacts): Truth {
  if (!isServed(expr, facts)) return 'unknown'
  return truthOf(known(expr, facts))
}

/** Whether a condition passes: there is none, or its expression is true. Unknown never passes. */
export function passes(condition: { expr: unknown } | undefined, facts: IrFacts): boolean {
  return condition === undefined || evaluate(condition.expr, facts) === true
}

/** Undefined is unknown. */
function known(node: unknown, facts: IrFacts): Json | undefined {
  if (!isObject(node)) return undefined
  const inner = (child: unknown) => known(child, facts)
  const text = (key: string) => (typeof node[key] === 'string' ? node[key] : '')
  const against = () => (node.value === undefined ? null : inner(node.value))
  switch (node.type) {
    case 'Bool':
    case 'String':
    case 'Number':
    case 'Timestamp':
    case 'Duration':
      return node.value as Json // isServed has seen that it is a scalar
    case 'List':
      return whole(listOf(node.value).map(inner))
    case 'And':
    case 'PredAnd':
      return inOrder(listOf(node.args), false, facts)
    case 'Or':
    case 'PredOr':
      return inOrder(listOf(node.args), true, facts)
    case 'Not':
      return negated(truthOf(inner(node.arg)))
    case 'Compare':
      return compare(text('op'), inner(node.left), inner(node.right))
    case 'User':
      return predicate(text('op'), own(facts.properties, text('key')) ?? null, against())
    case 'Event':
    case 'Pred':
      return facts.event && predicate(text('op'), eventValue(facts.event, text('key')), against())
    case 'Segment':
      return segmentHolds(text('op'), text('id'), facts, node.within === undefined ? undefined : inner(node.within))
    case 'Feature':
      return isStandingOp(text('op'))
        ? standingHolds(text('op').replace('is_', ''), own(facts.standings, text('id')) ?? noStanding)
        : featureHolds(text('op'), own(facts.features, text('id')), against())
    case 'Subscription':
      return standingHolds(text('op'), facts.subscription)
    case 'Time.Now':
      return facts.nowMs / 1000
    case 'Time.Ago': {
      const seconds = numberOf(inner(node.duration))
      return seconds === undefined ? undefined : facts.nowMs / 1000 - seconds
    }
    case 'Time.Window':
      return Number(node.value) * periodSeconds(text('interval'))
    case 'Journey.Id':
      return facts.journeyId
    case 'Response.Field':
      return (
        (typeof node.form === 'string'
          ? own(own(facts.forms, node.form), text('key'))
          : own(facts.responses, text('key'))) ?? null
      )
    default:
      return facts.history?.get(historyKey(node))
  }
}

/** The first that decides ends it; an unknown before that leaves it unknown. */
function inOrder(nodes: unknown[], deciding: boolean, facts: IrFacts): boolean | undefined {
  for (const node of nodes) {
    const truth = truthOf(known(node, facts))
    if (truth === 'unknown') return undefined
    if (truth === deciding) return deciding
  }
  return !deciding
}

function truthOf(value: Json | undefined): Truth {
  return value === undefined ? 'unknown' : truthy(value)
}

function negated(truth: Truth): boolean | undefined {
  return truth === 'unknown' ? undefined : !truth
}

function segmentHolds(
  op: string,
  id: string,
  { memberships, memberSince, nowMs }: IrFacts,
  within: Json | undefined,
): boolean | undefined {
  const member = own(memberships, id)
  if (op === 'not_member') return !member
  if (op === 'is_member' || !member) return member
  const [since, seconds] = [own(memberSince, id), numberOf(within)]
  return since === undefined || seconds === undefined ? undefined : nowMs - since <= seconds * 1000
}

function whole(values: (Json | undefined)[]): Json | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === values.length ? known : undefined
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** Keys named like members of `Object.prototype` are keys. */
function own<Value>(record: Readonly<Record<string, Value>> | undefined, key: string): Value | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined
}
