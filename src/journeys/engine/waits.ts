import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../events/index.ts'
import { passes } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Disposition, Input } from '../types.ts'
import { bump, type Change, clearTimers, disarm, end, leaveStep, sectionOf, stepOf } from './change.ts'
import { fades, lookOf } from './fading.ts'
import { eventFieldsOf, fieldValue, withFields } from './fields.ts'
import { pointedAt } from './pointer.ts'
import { irFactsOf, run } from './run.ts'

export function timerFired(change: Change, { timer, rev, advanced }: TimerFired): Disposition {
  const { journey, effects, now } = change
  if (journey.status === 'ended') return 'ended'
  const state = journey.timers[timer]
  if (state?.rev !== rev) return 'stale_timer'
  const dueAt = advanced ? Math.min(state.dueAt, now) : state.dueAt
  if (journey.held || dueAt > now) {
    if (!journey.held && timer === 'life' && hasFaded(change)) {
      end(change, 'exited', 'eligibility_lost')
      bump(change)
      return 'applied'
    }
    // It was taken off the list when it was looked at.
    const afterLane = timer === 'step' && journey.wait?.kind === 'event'
    effects.push({ kind: 'setTimer', timer, ...state, afterLane, ...lookOf(change.plan, timer, now) })
    return journey.held ? 'held' : 'early'
  }
  switch (timer) {
    // Silence is what a client can make up too: what follows it is a device's.
    case 'arm': {
      const section = sectionOf(change, journey.sectionKey ?? '')
      disarm(change, 'expired')
      journey.trust = 'device'
      run(change, section?.outcomes.expired, { since: dueAt })
      break
    }
    case 'run': {
      const section = sectionOf(change, journey.sectionKey ?? '')
      effects.push({ kind: 'leg', generation: journey.generation, set: { status: 'lost' } })
      clearTimers(change, 'run')
      journey.trust = 'device'
      run(change, section?.outcomes.abandoned, { since: dueAt })
      break
    }
    case 'life':
      end(change, 'expired')
      break
    case 'step':
      stepDue(change, dueAt)
      break
  }
  bump(change)
  return 'applied'
}

type TimerFired = Extract<Input, { kind: 'timer' }>

/** Known to be false by now: unknown ends nothing. */
function hasFaded(change: Change): boolean {
  const { plan, journey } = change
  if (!fades(plan)) return false
  const { expr } = plan.policy.entry.eligibility as { expr: unknown } // it reads the clock, so there is one
  const lost = { type: 'Not', arg: expr }
  return passes({ expr: lost }, { ...irFactsOf(change, expr), nowMs: change.now, journeyId: journey.id })
}

function stepDue(change: Change, dueAt: number): void {
  const { journey } = change
  const wait = must(journey.wait, 'a step timer belongs to a wait')
  const step = stepOf(change, journey.stepId ?? '')
  leaveStep(change)
  if (wait.kind === 'park') {
    run(change, wait.target, { since: dueAt })
    return
  }
  // Whoever can send the event can also hold it back.
  if (wait.kind === 'event' && step?.action.trust === 'any') journey.trust = 'device'
  run(change, step?.outlets[wait.kind === 'event' ? 'timeout' : 'next'], { since: dueAt })
}

export function eventArrived(change: Change, { event, trust }: Extract<Input, { kind: 'event' }>): Disposition {
  const { plan, journey } = change
  if (journey.status === 'ended') return 'ended'
  const { wait } = journey
  const step = stepOf(change, journey.stepId ?? '')
  if (wait?.kind !== 'event' || !step) return 'inert'
  if (event.receivedAt < wait.since || event.uuid === wait.after) return 'inert'
  const { eventName, trust: wanted, condition, correlate } = step.action as unknown as WaitForEvent
  if (event.name !== eventName || (wanted === 'server' && trust !== 'server')) return 'inert'
  // A matching event received after the wait's end came too late, whichever of the two is looked at first.
  if (event.receivedAt > (journey.timers.step?.dueAt ?? Number.POSITIVE_INFINITY)) return 'inert'
  if (correlate) {
    const sent = Object.hasOwn(event.properties, correlate.eventKey) ? event.properties[correlate.eventKey] : undefined
    const own = fieldValue(journey.context, correlate.field)
    if (sent === undefined || own === undefined || !isDeepStrictEqual(sent, own)) return 'inert'
  }
  if (condition) {
    const { name, at, distinctId, properties } = event
    const seen = { name, occurredAtMs: at, distinctId, properties }
    if (!passes(condition, { ...irFactsOf(change, condition), event: seen })) return 'inert'
  }
  leaveStep(change)
  journey.context = withFields(plan, journey.context, eventFieldsOf(plan, event.properties))
  journey.trust = trust
  bump(change)
  run(change, step.outlets.matched, { after: event.uuid })
  return 'applied'
}

interface WaitForEvent {
  eventName: string
  trust: 'any' | 'server'
  condition?: { expr: unknown }
  correlate?: { eventKey: string; field: string }
}

export function webhookAnswered(
  change: Change,
  { key, ok, body }: Extract<Input, { kind: 'webhookResult' }>,
): Disposition {
  const { plan, journey } = change
  if (journey.status === 'ended') return 'ended'
  const step = stepOf(change, journey.stepId ?? '')
  if (journey.wait?.kind !== 'webhook' || journey.wait.key !== key || !step) return 'unknown_key'
  leaveStep(change)
  if (ok) {
    const { save = {}, gate } = step.action as unknown as { save?: Record<string, string>; gate?: boolean }
    const values = new Map<string, Json>()
    for (const [field, pointer] of Object.entries(save)) {
      const value = body === undefined ? undefined : pointedAt(body, pointer)
      if (value !== undefined) values.set(field, value)
    }
    journey.context = withFields(plan, journey.context, values)
    if (gate) journey.trust = 'server'
  }
  bump(change)
  run(change, step.outlets[ok ? 'success' : 'failure'], { since: change.now })
  return 'applied'
}
