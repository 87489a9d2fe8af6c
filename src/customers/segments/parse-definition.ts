import { collector, fieldsOf, type Report } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { segmentDepthMax, segmentIssuesMax, segmentLeavesMax } from '../../kernel/limits.ts'
import type { Condition } from './definition.ts'
import { leafKinds, parseLeaf } from './parse-leaf.ts'

/** Reads a definition; refuses it with every issue and its place, such as `definition.where.all[2].performed.within`. */
export function parseDefinition(json: unknown): Condition {
  const { issues, report } = collector(segmentIssuesMax)
  const fields = fieldsOf(json, ['version', 'where'], 'definition', report)
  if (fields && fields.version !== 1) report('definition.version', 'must be 1')
  const count = { leaves: 0 }
  const condition = fields && parseNode(fields.where, { path: 'definition.where', depth: 1, count, report })
  if (count.leaves > segmentLeavesMax) {
    report('definition.where', `has ${count.leaves} leaves; at most ${segmentLeavesMax} are allowed`)
  }
  if (condition && issues.length === 0) return condition
  throw refuse('invalid_request', { param: 'definition', message: 'The definition is not valid.', issues })
}

/** A definition that is to be saved or tried: nothing in it looks further back than events are kept. */
export function parseNewDefinition(json: unknown, keptDays: number): Condition {
  const condition = parseDefinition(json)
  const issues = longSpansOf(condition, keptDays * 86_400_000).map((path) => ({
    path,
    message: `must be at most ${keptDays} days: events are not kept longer (EVENT_RETENTION_DAYS)`,
  }))
  if (issues.length === 0) return condition
  throw refuse('invalid_request', { param: 'definition', message: 'The definition is not valid.', issues })
}

function longSpansOf(condition: Condition, keptMs: number): string[] {
  if (condition.kind === 'not') return longSpansOf(condition.of, keptMs)
  if (condition.kind !== 'leaf') return condition.of.flatMap((part) => longSpansOf(part, keptMs))
  const { leaf, path } = condition
  if ('windowMs' in leaf && leaf.windowMs !== null && leaf.windowMs > keptMs) return [`${path}.within`]
  return 'times' in leaf && leaf.times.ago !== null && leaf.times.ago.ms > keptMs ? [`${path}.ago`] : []
}

interface Place {
  path: string
  depth: number
  count: { leaves: number }
  report: Report
}

const kinds = ['all', 'any', 'not', ...leafKinds] as const

function parseNode(json: unknown, place: Place): Condition | null {
  const { path, depth, count, report } = place
  if (depth > segmentDepthMax) {
    report(path, `is more than ${segmentDepthMax} levels deep`)
    return null
  }
  const node = fieldsOf(json, kinds, path, report)
  if (!node) return null
  const present = kinds.filter((name) => name in node)
  const [kind] = present
  if (kind === undefined || present.length > 1) {
    report(path, `must have exactly one of ${kinds.join(', ')}`)
    return null
  }
  const inner = { ...place, path: `${path}.${kind}`, depth: depth + 1 }
  if (kind === 'not') {
    const of = parseNode(node.not, inner)
    return of && { kind, of }
  }
  if (kind === 'all' || kind === 'any') return parseList(kind, node[kind], inner)
  count.leaves++
  const leaf = parseLeaf(kind, node[kind], inner.path, report)
  return leaf && { kind: 'leaf', leaf, path: inner.path }
}

function parseList(kind: 'all' | 'any', json: unknown, place: Place): Condition | null {
  const { path, report } = place
  if (!Array.isArray(json) || json.length === 0) {
    report(path, 'must be a list of at least one condition')
    return null
  }
  // Each has a leaf at its end, so a longer list cannot be allowed, whatever is in it.
  if (json.length > segmentLeavesMax) {
    report(path, `must have at most ${segmentLeavesMax} conditions`)
    return null
  }
  const of = json.map((item, i) => parseNode(item, { ...place, path: `${path}[${i}]` }))
  const whole = of.filter((item) => item !== null)
  return whole.length === of.length ? { kind, of: whole } : null
}
