import { nodesOf } from '../ir/grammar.ts'
import type { Draft, DraftStep } from './draft.ts'
import type { Graph, Target } from './graph.ts'

/**
 * Grants that something a client can forge may lead to, with what that is. A publishable key is public: whoever has it can
 * send any event and property for anybody, so after such a decision a gate that the server trusts has to come first.
 */
export function untrustedGrants(draft: Draft, graph: Graph): { step: DraftStep; via: string }[] {
  const { trigger } = draft.policy.entry
  const isTrusted = trigger.type === 'api' || trigger.type === 'server_event'
  const via = new Map<string, string | null>()
  const waiting: [Target, string | null][] = [[draft.graph.entry, isTrusted ? null : 'the trigger']]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [target, reason] = next
    const known = target === null ? undefined : via.get(target)
    if (target === null || (known !== undefined && (known !== null || reason === null))) continue
    via.set(target, reason)
    const section = graph.sections.get(target)
    const step = graph.serverSteps.get(target)
    if (section) {
      const by = `section "${target}"`
      for (const to of [...section.exits, ...Object.values(section.outcomes)]) waiting.push([to, by])
    } else if (step) {
      for (const [outlet, to] of Object.entries(step.outlets)) waiting.push([to, trustBehind(step, outlet, reason)])
    }
  }
  return [...via].flatMap(([id, reason]) => {
    const step = graph.serverSteps.get(id)
    return step?.action.type === 'grant_feature' && reason !== null ? [{ step, via: reason }] : []
  })
}

/** What a client could have forged behind this outlet; null: nothing. */
function trustBehind({ id, action }: DraftStep, outlet: string, before: string | null): string | null {
  if (action.type === 'wait_for_event') {
    if (action.trust === 'any') return `wait "${id}"`
    return outlet === 'matched' ? null : before
  }
  if (action.type === 'webhook') return action.gate === true && outlet === 'success' ? null : before
  if (action.type === 'branch') {
    return isForgeable(action.branches) ? `branch "${id}"` : before
  }
  return before
}

/** Whether conditions look at what a client can write. */
export function isForgeable(conditions: unknown): boolean {
  return [...nodesOf(conditions)].some(({ type }) => writable.has(type))
}

/** Nodes over what a client can write: properties, events, answers, and the segments made of them. */
const writable = new Set([
  ...['User', 'Event', 'Pred', 'Segment', 'Response.Field', 'Events.Exists', 'Events.Count', 'Events.Aggregate'],
  ...['Events.FirstTime', 'Events.LastTime', 'Events.LastAge', 'Events.Stopped'],
])
