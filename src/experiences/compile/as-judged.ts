import type { Draft } from '../draft/draft.ts'
import { isObject } from '../draft/shape.ts'
import { type HistorySegment, withSegments } from '../ir/history.ts'

/**
 * A draft as the server judges it: what eligibility and branches ask of past events, they ask of Segments that are kept for
 * this Experience. Devices get it as it was written.
 */
export function asJudged(draft: Draft, experienceId: string): { draft: Draft; segments: HistorySegment[] } {
  const segments = new Map<string, HistorySegment>()
  const judged = <Envelope>(envelope: Envelope): Envelope => {
    if (!isObject(envelope)) return envelope
    const { expr, segments: asked } = withSegments(envelope.expr, experienceId)
    for (const segment of asked) segments.set(segment.id, segment)
    return { ...envelope, expr }
  }
  const { entry } = draft.policy
  const eligibility = entry.eligibility === undefined ? {} : { eligibility: judged(entry.eligibility) }
  const steps = draft.graph.steps.map((step) => {
    if (step.plane !== 'server' || step.action.type !== 'branch') return step
    const branches = step.action.branches as { condition: unknown }[] // its shape was found right
    const action = { ...step.action, branches: branches.map((one) => ({ ...one, condition: judged(one.condition) })) }
    return { ...step, action }
  })
  return {
    draft: {
      ...draft,
      policy: { ...draft.policy, entry: { ...entry, ...eligibility } },
      graph: { ...draft.graph, steps },
    },
    segments: [...segments.values()],
  }
}
