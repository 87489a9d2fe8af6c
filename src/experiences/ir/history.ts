import { hash } from 'node:crypto'
import { segmentIssues } from '../../customers/index.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { isObject, type JsonObject } from '../draft/shape.ts'
import { nodesOf } from './grammar.ts'
import { type Where, whereOf } from './history-leaf.ts'

/** A Segment that the lane keeps for a condition over past events. */
export interface HistorySegment {
  id: string
  definition: { version: 1; where: Where }
}

/** What of a condition can't be kept. */
export interface Unkept {
  type: string
  reason: string
}

/**
 * A condition with memberships in place of what it asks of past events, and the Segments to keep for them. Each stands for as
 * much as it can: what is asked of events alone becomes one. `owner` keeps apart what different Experiences ask.
 */
export function withSegments(
  expr: unknown,
  owner: string,
): { expr: unknown; segments: HistorySegment[]; unkept: Unkept[] } {
  const segments = new Map<string, HistorySegment>()
  const unkept: Unkept[] = []
  return { expr: rewrite(expr), segments: [...segments.values()], unkept }

  function rewrite(node: unknown): unknown {
    if (!isObject(node) || !asksHistory(node)) return node
    const where = whereOf(node)
    if (!('reason' in where)) {
      const definition = { version: 1 as const, where: where.where }
      if (segmentIssues(definition).length === 0) return memberOf(definition)
    }
    const { type } = node
    if ((type === 'And' || type === 'Or') && Array.isArray(node.args)) return { ...node, args: node.args.map(rewrite) }
    if (type === 'Not') return { ...node, arg: rewrite(node.arg) }
    unkept.push('reason' in where ? where : { type: String(type), reason: 'it is no condition that Segments know' })
    return node
  }

  function memberOf(definition: HistorySegment['definition']): JsonObject {
    const id = `seg_${hash('sha256', canonicalJson({ owner, definition })).slice(0, 32)}`
    segments.set(id, { id, definition })
    return { type: 'Segment', op: 'is_member', id }
  }
}

export function asksHistory(expr: unknown): boolean {
  return [...nodesOf(expr)].some(({ type }) => type.startsWith('Events.'))
}
