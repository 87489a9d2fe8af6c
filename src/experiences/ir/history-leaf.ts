import { isObject, type JsonObject } from '../draft/shape.ts'
import { isDecimal, periodSeconds, textOf } from './compare.ts'
import type { Unkept } from './history.ts'

/** A condition as definitions of Segments say it. */
export type Where = { [key: string]: unknown }

type Kept = { where: Where } | Unkept

/** What a condition over past events alone is as one of Segments; or what of it can't be kept, and why. */
export function whereOf(node: JsonObject): Kept {
  switch (node.type) {
    case 'And':
      return joined('all', node.args)
    case 'Or':
      return joined('any', node.args)
    case 'Not': {
      const of = isObject(node.arg) ? whereOf(node.arg) : no(node, 'it has no argument')
      return 'where' in of ? { where: { not: of.where } } : of
    }
    case 'Compare':
      return compared(node)
    case 'Events.Exists':
      return existed(node)
    case 'Events.Count':
    case 'Events.FirstTime':
    case 'Events.LastTime':
      return counted(node, { op: 'gte', value: 1 })
    case 'Events.Stopped': {
      const [span, source] = [spanOf(node.inactiveFor), sourceOf(node)]
      if (span === null) return no(node, 'a time must be a constant of whole minutes')
      return 'reason' in source ? source : { where: { last_performed: { ...source, ago: { op: 'gte', ...span } } } }
    }
    default:
      return no(node, 'what it asks can not be kept up to date event by event')
  }
}

function no({ type }: JsonObject, reason: string): Unkept {
  return { type: String(type), reason }
}

function joined(kind: 'all' | 'any', args: unknown): Kept {
  const parts = (Array.isArray(args) ? args : []).map((arg) => whereOf(isObject(arg) ? arg : {}))
  const wrong = parts.find((part) => 'reason' in part)
  if (wrong) return wrong
  return { where: { [kind]: parts.flatMap((part) => ('where' in part ? [part.where] : [])) } }
}

function existed(node: JsonObject): Kept {
  const { since } = node
  if (!isObject(since) || since.type !== 'Timestamp' || node.within !== undefined) {
    return counted(node, { op: 'gte', value: 1 })
  }
  const [source, after] = [sourceOf(node), instantOf(since, -1)]
  if ('reason' in source) return source
  if (after === null || node.until !== undefined) return no(node, 'it ends at a time')
  return { where: { last_performed: { ...source, after } } }
}

function counted(node: JsonObject, count: { op: string; value: number }): Kept {
  const [source, window] = [sourceOf(node), windowOf(node)]
  if ('reason' in source) return source
  return 'reason' in window ? window : { where: { performed: { ...source, count, ...window } } }
}

const flipped: Record<string, string> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '==': '==', '!=': '!=' }

function compared(node: JsonObject): Kept {
  const { op, left, right } = node
  if (!isObject(left) || !isObject(right) || typeof op !== 'string') return no(node, 'it has no sides')
  if (isEvents(left) && !isEvents(right)) return against(left, op, right)
  if (isEvents(right) && !isEvents(left) && flipped[op] !== undefined) return against(right, flipped[op], left)
  return no(isEvents(left) ? left : right, 'it is compared with something else than a constant')
}

function isEvents({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('Events.')
}

function against(node: JsonObject, op: string, bound: JsonObject): Kept {
  switch (node.type) {
    case 'Events.Count':
      return countAgainst(node, op, bound)
    case 'Events.Aggregate':
      return sumAgainst(node, op, bound)
    case 'Events.FirstTime':
    case 'Events.LastTime':
      return timeAgainst(node, op, bound)
    case 'Events.LastAge':
      return agoAgainst({ node, leaf: 'last_performed' }, op, bound)
    default:
      return no(node, 'what it asks can not be kept up to date event by event')
  }
}

function countAgainst(node: JsonObject, op: string, { type, value }: JsonObject): Kept {
  const bound = no(node, 'it is compared with something else than a number of events')
  if (type !== 'Number' || typeof value !== 'number') return bound
  const count = {
    '>=': { op: 'gte', value: Math.max(Math.ceil(value), 0) },
    '>': { op: 'gte', value: Math.max(Math.floor(value) + 1, 0) },
    '<=': { op: 'lte', value: Math.floor(value) },
    '<': { op: 'lte', value: Math.ceil(value) - 1 },
    '==': { op: 'eq', value },
    '!=': { op: 'eq', value },
  }[op]
  if (!count || count.value < 0 || !Number.isInteger(count.value)) return bound
  const kept = counted(node, count)
  return op === '!=' && 'where' in kept ? { where: { not: kept.where } } : kept
}

const sumOps: Record<string, string> = { '==': 'eq', '!=': 'eq', '>': 'gt', '>=': 'gte', '<': 'lt', '<=': 'lte' }

function sumAgainst(node: JsonObject, op: string, { type, value }: JsonObject): Kept {
  if (node.agg !== 'sum') return no(node, `"${String(node.agg)}" can not be kept up to date event by event`)
  const [source, window, sum] = [sourceOf(node), windowOf(node), sumOps[op]]
  if ('reason' in source) return source
  if ('reason' in window) return window
  if (type !== 'Number' || sum === undefined) return no(node, 'it is compared with something else than a number')
  const where = { sum: { ...source, property: node.prop, op: sum, value, ...window } }
  return { where: op === '!=' ? { not: where } : where }
}

function timeAgainst(node: JsonObject, op: string, bound: JsonObject): Kept {
  const leaf = node.type === 'Events.FirstTime' ? 'first_performed' : 'last_performed'
  if (bound.type === 'Time.Ago' && flipped[op] !== undefined && isObject(bound.duration)) {
    return agoAgainst({ node, leaf }, flipped[op], bound.duration)
  }
  const source = sourceOf(node)
  if ('reason' in source) return source
  // Definitions say before and after, both without the instant itself.
  const edges: Record<string, [key: string, shiftMs: number]> = {
    ...{ '<': ['before', 0], '<=': ['before', 1], '>': ['after', 0], '>=': ['after', -1] },
  }
  const edge = edges[op]
  const at = edge && instantOf(bound, edge[1])
  if (!edge || !at) return no(node, 'it is compared with something else than a time, as before or after it')
  return { where: { [leaf]: { ...source, [edge[0]]: at } } }
}

/** How long ago it was: to the instant, times are kept to the millisecond. */
function agoAgainst({ node, leaf }: { node: JsonObject; leaf: string }, op: string, bound: JsonObject): Kept {
  const [source, span] = [sourceOf(node), spanOf(bound)]
  if ('reason' in source) return source
  const ago = op === '<' || op === '<=' ? 'lte' : op === '>' || op === '>=' ? 'gte' : null
  if (span === null || ago === null)
    return no(node, 'a time must be a constant of whole minutes, more or less than which it is')
  return { where: { [leaf]: { ...source, ago: { op: ago, ...span } } } }
}

function windowOf(node: JsonObject): { within?: Span } | Unkept {
  const { since, until, within } = node
  if (until !== undefined) return no(node, 'it ends at a time')
  if (since === undefined && within === undefined) return {}
  const ago = isObject(since) && since.type === 'Time.Ago' ? since.duration : undefined
  if (since !== undefined && (ago === undefined || within !== undefined)) return no(node, 'it begins at a fixed time')
  const span = spanOf(ago ?? within)
  return span === null ? no(node, 'a time must be a constant of whole minutes') : { within: span }
}

interface Span {
  value: number
  unit: 'minute'
}

function spanOf(node: unknown): Span | null {
  if (!isObject(node) || typeof node.value !== 'number') return null
  const seconds =
    node.type === 'Time.Window'
      ? node.value * periodSeconds(String(node.interval))
      : node.type === 'Duration' || node.type === 'Number'
        ? node.value
        : NaN
  const minutes = seconds / 60
  return Number.isInteger(minutes) && minutes >= 1 ? { value: minutes, unit: 'minute' } : null
}

function instantOf({ type, value }: JsonObject, shiftMs: number): string | null {
  const at = type === 'Timestamp' && typeof value === 'number' ? new Date(value * 1000 + shiftMs) : null
  return at === null || Number.isNaN(at.getTime()) ? null : at.toISOString()
}

function sourceOf(node: JsonObject): { event: unknown; filters?: Where[] } | Unkept {
  if (node.where === undefined) return { event: node.name }
  const filters = isObject(node.where) ? filtersOf(node.where) : no(node, 'its where is no condition')
  return 'reason' in filters ? filters : { event: node.name, filters }
}

function filtersOf(node: JsonObject): Where[] | Unkept {
  if (node.type === 'PredAnd' && Array.isArray(node.args)) {
    const parts = node.args.map((arg) => filtersOf(isObject(arg) ? arg : {}))
    const wrong = parts.find((part) => 'reason' in part)
    return wrong ?? parts.flatMap((part) => ('reason' in part ? [] : part))
  }
  if (node.type !== 'Pred') return no(node, 'only conditions that must all hold can be kept')
  const { op, key: property, value } = node
  if (op === 'is_set') return [{ property, op: 'neq', value: null }]
  if (op === 'in' && isObject(value) && value.type === 'List' && Array.isArray(value.value)) {
    const forms = value.value.flatMap((each) => sameText(constantOf(each)))
    return forms.length === 0 ? no(node, 'its list holds no constants') : [{ property, op: 'in', value: forms }]
  }
  const constant = constantOf(value)
  if (constant !== null && op === 'eq') return [{ property, op: 'in', value: equalTo(constant) }]
  if (constant !== null && typeof constant !== 'boolean' && ['gt', 'gte', 'lt', 'lte'].includes(String(op))) {
    return [{ property, op, value: typeof constant === 'string' && isDecimal(constant) ? Number(constant) : constant }]
  }
  return no(node, `"${String(op)}" is not kept of events that are past`)
}

type Constant = string | number | boolean

function constantOf(node: unknown): Constant | null {
  if (!isObject(node) || !['String', 'Number', 'Bool'].includes(String(node.type))) return null
  const { value } = node
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}

/** All values that an expression takes for equal, where Segments convert nothing. */
function equalTo(constant: Constant): Constant[] {
  if (typeof constant === 'string' && !isDecimal(constant)) return [constant]
  const number = Number(constant)
  const texts = [...new Set([textOf(number) ?? '', ...(typeof constant === 'string' ? [constant] : [])])]
  return [number, ...texts, ...(number === 1 ? [true] : number === 0 ? [false] : [])]
}

/** All values that are written alike: membership of a list goes by text. */
function sameText(constant: Constant | null): Constant[] {
  const text = constant === null ? undefined : textOf(constant)
  if (text === undefined) return []
  const number = isDecimal(text) && textOf(Number(text)) === text ? [Number(text)] : []
  return [text, ...number, ...(text === '1' ? [true] : text === '0' ? [false] : [])]
}
