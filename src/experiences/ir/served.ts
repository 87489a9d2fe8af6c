import { irDepthMax } from '../../kernel/limits.ts'
import { isObject, type JsonObject } from '../draft/shape.ts'
import { historyKey, type IrFacts } from './facts.ts'
import { isStandingOp } from './feature-facts.ts'
import { comparisons, needsValue, periods, predicates, timeTypes } from './words.ts'

/** Whether these facts can serve all of an expression. What isn't well-formed can't be served either. */
export function isServed(node: unknown, facts: IrFacts, depth = 1): boolean {
  if (depth > irDepthMax || !isObject(node)) return false
  const inner = (child: unknown) => isServed(child, facts, depth + 1)
  const all = (children: unknown) => Array.isArray(children) && children.every(inner)
  const value = node.value === undefined || inner(node.value)
  switch (node.type) {
    case 'Bool':
      return typeof node.value === 'boolean'
    case 'String':
      return typeof node.value === 'string'
    case 'Number':
    case 'Timestamp':
    case 'Duration':
      return Number.isFinite(node.value)
    case 'List':
      return all(node.value)
    case 'And':
    case 'Or':
      return all(node.args)
    case 'PredAnd':
    case 'PredOr':
      return facts.event !== undefined && all(node.args)
    case 'Not':
      return inner(node.arg)
    case 'Compare':
      return isOneOf(comparisons, node.op) && inner(node.left) && inner(node.right)
    case 'User':
      return servesProperty(node.key, facts) && isPredicate(node, 'has') && value
    case 'Event':
      return facts.event !== undefined && typeof node.key === 'string' && isPredicate(node, 'has') && value
    case 'Pred':
      return facts.event !== undefined && typeof node.key === 'string' && isPredicate(node) && value
    case 'Segment':
      return servesSegment(node, facts) && (node.within === undefined || inner(node.within))
    case 'Feature':
      return servesFeature(node, facts) && value
    case 'Subscription':
      return facts.subscription !== undefined && isOneOf(subscriptionOps, node.op)
    case 'Time.Now':
      return true
    case 'Time.Ago':
      return inner(node.duration)
    case 'Time.Window':
      return Number.isFinite(node.value) && isOneOf(periods, node.interval)
    case 'Journey.Id':
      return facts.journeyId !== undefined
    case 'Response.Field':
      return typeof node.key === 'string' && (node.form === undefined ? facts.responses : facts.forms) !== undefined
    default:
      return facts.history?.has(historyKey(node)) === true
  }
}

const subscriptionOps = ['active', 'not_active', 'trialing', 'expired', 'will_renew', 'will_not_renew']

function isPredicate({ op, value }: JsonObject, ...more: string[]): boolean {
  if (!isOneOf([...predicates, ...more], op)) return false
  if (!needsValue(op)) return true
  return isObject(value) && (!op.startsWith('is_date_') || isOneOf(timeTypes, value.type))
}

function servesProperty(key: unknown, { properties, propertyKeys }: IrFacts): boolean {
  if (properties === undefined || typeof key !== 'string') return false
  return propertyKeys === undefined || propertyKeys.has(key)
}

function servesSegment({ op, id, within }: JsonObject, { memberships, memberSince }: IrFacts): boolean {
  if (memberships === undefined || typeof id !== 'string' || !Object.hasOwn(memberships, id)) return false
  if (op === 'is_member' || op === 'not_member') return true
  if (op !== 'entered_within' || !isObject(within) || memberSince === undefined) return false
  return !memberships[id] || Object.hasOwn(memberSince, id)
}

function servesFeature({ op, id, value }: JsonObject, { features, standings }: IrFacts): boolean {
  if (typeof op !== 'string' || typeof id !== 'string') return false
  if (isStandingOp(op)) return standings !== undefined
  if (features === undefined) return false
  return ['has', 'not_has', 'is_unlimited'].includes(op) || (isOneOf(creditOps, op) && isObject(value))
}

const creditOps = ['credits_eq', 'credits_neq', 'credits_gt', 'credits_gte', 'credits_lt', 'credits_lte']

function isOneOf(words: readonly string[], value: unknown): value is string {
  return typeof value === 'string' && words.includes(value)
}
