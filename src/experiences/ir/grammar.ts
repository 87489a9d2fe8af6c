import { irDepthMax } from '../../kernel/limits.ts'
import { checkEventName } from '../draft/event-names.ts'
import { type Findings, under } from '../draft/findings.ts'
import { isObject } from '../draft/shape.ts'
import { comparisons, periods, predicates } from './words.ts'

/** An expression as authors and clients write it. What may stand in it is `grammar`. */
export interface IrNode {
  type: string
  [key: string]: unknown
}

/** What a key of a node holds. Lists of words are the words themselves. */
type Kind = 'node' | 'nodes' | 'text' | 'number' | 'boolean' | 'where' | 'steps' | readonly string[]

interface Rule {
  keys: Record<string, Kind>
  optional?: Record<string, Kind>
}

const standing = ['trialing', 'expired', 'will_renew', 'will_not_renew'] as const
const window: Record<string, Kind> = { since: 'node', until: 'node', within: 'node', where: 'where' }

const grammar: Record<string, Rule> = {
  Bool: { keys: { value: 'boolean' } },
  String: { keys: { value: 'text' } },
  Number: { keys: { value: 'number' } },
  Timestamp: { keys: { value: 'number' } },
  Duration: { keys: { value: 'number' } },
  List: { keys: { value: 'nodes' } },
  And: { keys: { args: 'nodes' } },
  Or: { keys: { args: 'nodes' } },
  PredAnd: { keys: { args: 'nodes' } },
  PredOr: { keys: { args: 'nodes' } },
  Not: { keys: { arg: 'node' } },
  Compare: {
    keys: { op: comparisons, left: 'node', right: 'node' },
  },
  User: { keys: { op: [...predicates, 'has'], key: 'text' }, optional: { value: 'node' } },
  Event: { keys: { op: [...predicates, 'has'], key: 'text' }, optional: { value: 'node' } },
  Pred: { keys: { op: predicates, key: 'text' }, optional: { value: 'node' } },
  Segment: { keys: { op: ['is_member', 'not_member', 'entered_within'], id: 'text' }, optional: { within: 'node' } },
  Feature: {
    keys: {
      op: [
        ...['has', 'not_has', 'is_unlimited', 'credits_eq', 'credits_neq', 'credits_gt', 'credits_gte', 'credits_lt'],
        ...['credits_lte', 'is_trialing', 'is_active', 'is_expired', 'will_renew', 'will_not_renew'],
      ],
      id: 'text',
    },
    optional: { value: 'node' },
  },
  Subscription: { keys: { op: ['active', 'not_active', ...standing] } },
  'Events.Exists': { keys: { name: 'text' }, optional: window },
  'Events.Count': { keys: { name: 'text' }, optional: window },
  'Events.Aggregate': {
    keys: { name: 'text', agg: ['sum', 'avg', 'min', 'max', 'unique'], prop: 'text' },
    optional: window,
  },
  'Events.InOrder': {
    keys: { steps: 'steps' },
    optional: { overallWithin: 'node', perStepWithin: 'node', since: 'node', until: 'node' },
  },
  'Events.ActivePeriods': {
    keys: { name: 'text', period: periods, totalPeriods: 'number', minPeriods: 'number' },
    optional: { where: 'where' },
  },
  'Events.FirstTime': { keys: { name: 'text' }, optional: { where: 'where' } },
  'Events.LastTime': { keys: { name: 'text' }, optional: { where: 'where' } },
  'Events.LastAge': { keys: { name: 'text' }, optional: { where: 'where' } },
  'Events.Stopped': { keys: { name: 'text', inactiveFor: 'node' }, optional: { where: 'where' } },
  'Events.Restarted': { keys: { name: 'text', inactiveFor: 'node', within: 'node' }, optional: { where: 'where' } },
  'Time.Now': { keys: {} },
  'Time.Ago': { keys: { duration: 'node' } },
  'Time.Window': { keys: { value: 'number', interval: periods } },
  'Journey.Id': { keys: {} },
  'Response.Field': { keys: { key: 'text' }, optional: { form: 'text' } },
}

/** Where an expression is asked. `kept`: on the server, where past events are asked of Segments that the lane keeps. */
export type IrPlace = 'device' | 'server' | 'kept' | 'goal'

const serverFeatureOps = /^(is_trialing|is_active|is_expired|will_)/
/** Nodes that are judged elsewhere than in an entry condition on a device, and where. */
const offDevice: Record<string, string> = {
  Subscription: 'policy.entry.eligibility',
  'Events.FirstTime': 'a segment',
  'Events.LastTime': 'a segment',
  'Events.LastAge': 'a segment',
  'Events.Stopped': 'a segment',
  'Events.Restarted': 'a segment',
  'Journey.Id': 'the goal',
  'Response.Field': 'a condition step',
}
const inGoals = new Set([
  ...['Bool', 'String', 'Number', 'Timestamp', 'Duration', 'List', 'And', 'Or', 'Not', 'Compare', 'Event', 'Pred'],
  ...['PredAnd', 'PredOr', 'Journey.Id', 'Time.Now', 'Time.Ago', 'Time.Window'],
])

/** Judges an envelope, closed where clients are lenient, and whether its place can judge what it asks. */
export function checkIr(value: unknown, path: string, findings: Findings, place: IrPlace): void {
  const invalid = (detail: string) => findings.add(path, 'ir_invalid', `Expression: ${detail}.`)
  if (!isObject(value)) {
    invalid('it must be an object with ir_version and expr')
    return
  }
  const known = ['ir_version', 'expr', 'engine_min', 'compiled_at']
  for (const key of Object.keys(value)) if (!known.includes(key)) invalid(`key "${key}" is not part of an expression`)
  if (value.ir_version !== 1) invalid('ir_version must be 1')
  const { engine_min: engine = '1' } = value
  if (typeof engine !== 'string' || !/^[01](\.\d{1,9}){0,2}$/.test(engine)) {
    invalid('engine_min must be a version below 2')
  }
  if (value.compiled_at !== undefined && typeof value.compiled_at !== 'number') invalid('compiled_at must be a number')
  checkNode(value.expr, { path: under(path, 'expr'), findings, place, depth: 1, inWhere: false })
}

interface Spot {
  path: string
  findings: Findings
  place: IrPlace
  depth: number
  inWhere: boolean
}

function checkNode(node: unknown, spot: Spot): void {
  const { path, findings, inWhere } = spot
  const invalid = (detail: string) => findings.add(path, 'ir_invalid', `Expression: ${detail}.`)
  const type = isObject(node) ? node.type : undefined
  const rule = typeof type === 'string' && Object.hasOwn(grammar, type) ? grammar[type] : undefined
  const isWhere = type === 'Pred' || type === 'PredAnd' || type === 'PredOr'
  if (spot.depth > irDepthMax) invalid(`it is nested deeper than ${irDepthMax}`)
  else if (!isObject(node) || typeof type !== 'string' || !rule) invalid(`${shown(type)} is not a node`)
  else if (inWhere && !isWhere) invalid(`"${type}" can't stand in where`)
  else checkKeys({ ...node, type }, rule, spot)
}

function checkKeys(node: IrNode, rule: Rule, spot: Spot): void {
  const { path, findings } = spot
  const { type } = node
  const invalid = (detail: string) => findings.add(path, 'ir_invalid', `Expression: ${detail}.`)
  for (const key of Object.keys(rule.keys)) {
    if (!Object.hasOwn(node, key)) invalid(`"${type}" needs "${key}"`)
  }
  for (const key of Object.keys(node)) {
    if (key === 'type') continue
    const kind = Object.hasOwn(rule.keys, key) ? rule.keys[key] : rule.optional?.[key]
    if (kind === undefined) invalid(`"${type}" has no "${key}"`)
    else checkMember(node[key], kind, { ...spot, path: under(path, key), depth: spot.depth + 1 })
  }
  if (type.startsWith('Events.') && typeof node.name === 'string')
    checkEventName(node.name, under(path, 'name'), findings)
  checkPlace(node, spot)
}

function checkMember(value: unknown, kind: Kind, spot: Spot): void {
  const { path, findings } = spot
  const invalid = (detail: string) => findings.add(path, 'ir_invalid', `Expression: ${detail}.`)
  if (kind === 'node') checkNode(value, { ...spot, inWhere: false })
  else if (kind === 'where') checkNode(value, { ...spot, inWhere: true })
  else if (kind === 'nodes' || kind === 'steps') {
    if (!Array.isArray(value)) invalid('this must be a list')
    else
      for (const [i, item] of value.entries()) {
        const at = { ...spot, path: under(path, i) }
        if (kind === 'nodes') checkNode(item, at)
        else checkStep(item, at)
      }
  } else if (kind === 'text') {
    if (typeof value !== 'string' || value === '' || value.length > 256)
      invalid('this must be text of 1 to 256 characters')
  } else if (kind === 'number' || kind === 'boolean') {
    if (typeof value !== kind) invalid(`this must be a ${kind}`)
  } else if (typeof value !== 'string' || !kind.includes(value)) {
    invalid(`${shown(value)} is not one of ${kind.join(', ')}`)
  }
}

function checkStep(step: unknown, spot: Spot): void {
  const { path, findings } = spot
  if (
    !isObject(step) ||
    typeof step.name !== 'string' ||
    Object.keys(step).some((key) => !/^(name|where)$/.test(key))
  ) {
    findings.add(path, 'ir_invalid', 'Expression: a step has a name, and where.')
  } else {
    checkEventName(step.name, under(path, 'name'), findings)
    if (step.where !== undefined) checkNode(step.where, { ...spot, path: under(path, 'where'), inWhere: true })
  }
}

function checkPlace(node: IrNode, { path, findings, place, inWhere }: Spot): void {
  const { type } = node
  const misplaced = (to: string, plane: string = place) =>
    findings.add(path, 'ir_plane', `"${type}" cannot be judged on the ${plane}; move it to ${to}.`)
  if (place === 'goal') {
    if (!inGoals.has(type)) {
      findings.add(path, 'goal_mutable', `Goal conditions may read only the event itself; "${type}" can change later.`)
    }
  } else if (place === 'server' || place === 'kept') {
    if (node.op === 'entered_within') misplaced('a segment', 'server')
    else if (type === 'Journey.Id') misplaced('the goal', 'server')
    else if (place === 'server' && type.startsWith('Events.')) misplaced('a segment')
  } else if (Object.hasOwn(offDevice, type)) {
    misplaced(offDevice[type] ?? '')
  } else if (type === 'Feature' && typeof node.op === 'string' && serverFeatureOps.test(node.op)) {
    misplaced('policy.entry.eligibility')
  } else if (node.op === 'entered_within') {
    misplaced('a segment')
  } else if (/^Events\.(Exists|Count|Aggregate|InOrder)$/.test(type) && !inWhere && !hasLowerBound(node)) {
    findings.add(
      path,
      'ir_plane',
      `"${type}" cannot be judged on the device; move it to a segment, or give it a start.`,
    )
  }
}

function hasLowerBound(node: IrNode): boolean {
  return node.since !== undefined || (node.within !== undefined && node.type !== 'Events.InOrder')
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : 'what stands here'
}

/** Every node of an expression, each before those in it. */
export function* nodesOf(value: unknown): Generator<IrNode> {
  if (Array.isArray(value)) for (const item of value) yield* nodesOf(item)
  else if (isObject(value)) {
    if (typeof value.type === 'string') yield { ...value, type: value.type }
    for (const member of Object.values(value)) yield* nodesOf(member)
  }
}

/** Whether time alone may change what an expression says. */
export function readsClock(expression: unknown): boolean {
  return [...nodesOf(expression)].some(({ type, op }) => /^Time\.(Now|Ago)$/.test(type) || op === 'entered_within')
}
