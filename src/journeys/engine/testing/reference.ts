import type { PinnedPlan } from '../../plan.ts'

/** Where a journey stands, told by the plan alone: nothing of the engine is used. */
export interface Stand {
  at: string | null
  status: 'armed' | 'on_device' | 'waiting' | 'ended'
  trusted: boolean
  granted: number
}

/** What happens to it, without times and generations. */
export type Happening =
  | { kind: 'start' }
  | { kind: 'complete'; outcome: string }
  | { kind: 'expire' | 'lose' | 'due' | 'end' }
  | { kind: 'match'; trusted: boolean }
  | { kind: 'answer'; ok: boolean }

/** The plan read as a graph: one edge for each happening, then on through what takes no time. */
export function walk(plan: PinnedPlan, stand: Stand, happening: Happening): Stand {
  const { at } = stand
  const section = plan.sections[at ?? '']
  const outlets = plan.steps[at ?? '']?.outlets ?? {}
  const action = plan.steps[at ?? '']?.action
  switch (happening.kind) {
    case 'start':
      return { ...stand, status: 'on_device' }
    case 'end':
      return { ...stand, at: null, status: 'ended' }
    case 'complete':
      return onward(plan, { ...stand, trusted: false }, section?.outcomes[happening.outcome] ?? null)
    case 'expire':
      return onward(plan, { ...stand, trusted: false }, section?.outcomes.expired ?? null)
    case 'lose':
      return onward(plan, { ...stand, trusted: false }, section?.outcomes.abandoned ?? null)
    case 'match':
      return onward(plan, { ...stand, trusted: happening.trusted }, outlets.matched ?? null)
    case 'answer': {
      const gated = happening.ok && action?.gate === true
      return onward(
        plan,
        { ...stand, trusted: stand.trusted || gated },
        outlets[happening.ok ? 'success' : 'failure'] ?? null,
      )
    }
    case 'due': {
      const silent = action?.type === 'wait_for_event' && action.trust === 'any'
      const outlet = action?.type === 'wait_for_event' ? 'timeout' : 'next'
      return onward(plan, { ...stand, trusted: stand.trusted && !silent }, outlets[outlet] ?? null)
    }
  }
}

export function onward(plan: PinnedPlan, stand: Stand, to: string | null): Stand {
  const ended: Stand = { ...stand, at: null, status: 'ended' }
  if (to === null) return ended
  if (plan.sections[to]) return { ...stand, at: to, status: 'armed' }
  const { action, outlets } = plan.steps[to] ?? {}
  switch (action?.type ?? '') {
    case 'exit':
      return ended
    case 'emit_event':
      return onward(plan, stand, outlets?.next ?? null)
    case 'grant_feature':
      return stand.trusted ? onward(plan, { ...stand, granted: stand.granted + 1 }, outlets?.next ?? null) : ended
    default:
      return { ...stand, at: to, status: 'waiting' }
  }
}
