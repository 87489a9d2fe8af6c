import type { Json } from '../../events/index.ts'
import { nodesOf, passes } from '../../experiences/index.ts'
import { armDays, dayMs, immediateParkMs, immediateStepsMax, journeyTransitionsMax } from '../../kernel/limits.ts'
import type { CustomerFacts, Ms, Wait } from '../types.ts'
import { type Change, end, fail, NeedsMore, sectionOf, set, setTimer, stepOf } from './change.ts'
import { dueInWindow, dueUntil, type TimeWindow } from './due.ts'
import { fieldValue, missingInput } from './fields.ts'
import { fill, fillAll } from './fill.ts'
import { type Grant, grantFeature } from './grant.ts'
import { withEdit } from './with-edit.ts'

type Action = { type: string; [key: string]: unknown }
/** Where to go on, or that the journey waits or has ended. */
type Onward = { to: string | null } | 'stays'

/** For waits: events received before `since` came before the wait; `after` is the event that led to it. */
export interface Since {
  since?: Ms
  after?: string
}

/** Runs server steps until a leg is offered, a step waits, or the journey ends. */
export function run(change: Change, target: string | null | undefined, since: Since = {}): void {
  const { journey } = change
  if (journey.rev > journeyTransitionsMax) {
    fail(change, 'step_limit', 'step_limit')
    return
  }
  // What was offered or waited for is over, whatever comes next.
  set(change, { status: 'waiting', sectionKey: null, stepId: null, wait: null })
  let at = target ?? null
  for (let steps = 0; ; steps++) {
    if (at === null) {
      end(change, 'completed')
      return
    }
    if (sectionOf(change, at)) {
      offer(change, at)
      return
    }
    if (steps === immediateStepsMax) {
      waitIn(change, at, { kind: 'park', target: at })
      setTimer(change, 'step', change.now + immediateParkMs)
      return
    }
    const next = take(change, at, since)
    if (next === 'stays') return
    at = next.to
  }
}

/** Makes the section's leg visible under the next generation. */
export function offer(change: Change, key: string): void {
  const { plan, journey, effects, now } = change
  const section = sectionOf(change, key)
  const missing = section ? missingInput(journey.context, section.inputs) : null
  if (!section || missing !== null) {
    fail(change, 'failed', missing === null ? 'section_missing' : `input_missing: ${missing}`)
    return
  }
  const generation = journey.generation + 1
  set(change, { status: 'armed', sectionKey: key, generation })
  effects.push({ kind: 'arm', generation, sectionKey: key, legId: section.legId, versionNumber: plan.versionNumber })
  setTimer(change, 'arm', now + (section.armForMs ?? armDays * dayMs))
}

function take(change: Change, id: string, { since = 0, after }: Since): Onward {
  const step = stepOf(change, id)
  if (!step) {
    fail(change, 'failed', `step_missing: ${id}`)
    return 'stays'
  }
  const { journey, effects, now } = change
  const action: Action = step.action
  const through = (outlet: string): Onward => ({ to: step.outlets[outlet] ?? null })
  switch (action.type) {
    case 'delay': {
      const due = dueOf(change, action)
      if (due <= now) return through('next')
      waitIn(change, id, { kind: 'delay' })
      setTimer(change, 'step', due)
      return 'stays'
    }
    case 'wait_for_event':
      waitIn(change, id, { kind: 'event', since, after: after ?? null })
      effects.push({ kind: 'subscribe', eventName: String(action.eventName) })
      setTimer(change, 'step', now + Number(action.timeoutMs), true)
      return 'stays'
    case 'branch':
      if (step.forgeable) journey.trust = 'device'
      return through(branchOf(change, action))
    case 'experiment_split':
      return through(splitOf(change, action, step.outlets))
    case 'webhook': {
      const index = change.index++
      const key = `${journey.id}:${journey.rev}:${index}`
      waitIn(change, id, { kind: 'webhook', key })
      const [endpointId, timeoutMs, attempts] = [
        String(action.endpointId),
        Number(action.timeoutMs),
        Number(action.attempts),
      ]
      const body = fill((action.body ?? null) as Json, fillFrom(change)) // any JSON, as it was validated
      effects.push({ kind: 'webhook', index, key, endpointId, body, timeoutMs, attempts })
      return 'stays'
    }
    case 'grant_feature':
      // Validation found its shape right.
      return grantFeature(change, action as unknown as Grant) ? through('next') : 'stays'
    case 'set_properties': {
      const [values, setOnce] = [fillAll(action.set, fillFrom(change)), fillAll(action.setOnce, fillFrom(change))]
      const { increment = {}, unset = [] } = action as { increment?: Record<string, number>; unset?: string[] }
      const edit = { set: values, setOnce, increment, unset }
      effects.push({ kind: 'append', what: 'properties', index: change.index++, ...edit })
      change.facts = withEdit(change.facts, edit)
      return through('next')
    }
    case 'emit_event': {
      const properties = fillAll(action.properties, fillFrom(change))
      const { trust } = journey
      const eventName = String(action.eventName)
      effects.push({ kind: 'append', what: 'event', index: change.index++, eventName, properties, trust })
      return through('next')
    }
    case 'exit':
      end(change, 'exited', typeof action.reason === 'string' ? action.reason : null)
      return 'stays'
    default:
      fail(change, 'failed', `action_unknown: ${action.type}`)
      return 'stays'
  }
}

function waitIn(change: Change, stepId: string, wait: Wait): void {
  set(change, { status: 'waiting', stepId, wait })
}

function dueOf(change: Change, action: Action): Ms {
  const { journey, now } = change
  if (typeof action.durationMs === 'number') return now + action.durationMs
  if (action.window) return dueInWindow(action.window as TimeWindow, now)
  const { property, field } = (action.until ?? {}) as { property?: string; field?: string }
  if (field !== undefined) return dueUntil(fieldValue(journey.context, field), now)
  const properties = property === undefined ? {} : (customerOf(change).properties ?? {})
  return dueUntil(property !== undefined && Object.hasOwn(properties, property) ? properties[property] : undefined, now)
}

/** The first that is true; unknown never passes. */
function branchOf(change: Change, action: Action): string {
  const branches = action.branches as { id: string; condition: { expr: unknown } }[] // its shape was found right
  const facts = { ...irFactsOf(change, branches), event: triggerOf(change) }
  return branches.find(({ condition }) => passes(condition, facts))?.id ?? 'default'
}

/** What a branch sees as the event: the declared fields of what started the journey. */
function triggerOf({ journey }: Change) {
  return { name: '', occurredAtMs: journey.startedAt, distinctId: '', properties: journey.context.event }
}

/** Asks for the customer only where an expression looks at it. */
export function irFactsOf(change: Change, expressions: unknown) {
  const { journey, now } = change
  const looks = [...nodesOf(expressions)].some(({ type }) => ofCustomer.test(type))
  const customer = looks ? customerOf(change) : {}
  return { ...customer, nowMs: now, responses: journey.context.responses, journeyId: journey.id }
}

const ofCustomer = /^(User|Segment|Feature|Subscription|Events\..*)$/

function splitOf({ facts, effects }: Change, action: Action, outlets: Record<string, string | null>): string {
  const { experimentId, fallbackVariantId } = action as unknown as { experimentId: string; fallbackVariantId: string }
  const known = facts.assignments ?? {}
  const assigned = Object.hasOwn(known, experimentId) ? known[experimentId] : undefined
  if (assigned === undefined) throw new NeedsMore({ assignments: [experimentId] })
  const isListed = assigned !== null && Object.hasOwn(outlets, assigned.variantId)
  const variantId = isListed ? assigned.variantId : fallbackVariantId
  const isHoldout = isListed && assigned.isHoldout
  effects.push({ kind: 'exposure', experimentId, variantId, isHoldout, assigned: isListed })
  return variantId
}

function customerOf({ facts }: Change): CustomerFacts {
  if (!facts.customer) throw new NeedsMore({ customer: true })
  return facts.customer
}

function fillFrom(change: Change) {
  return { ...change.journey.context, properties: () => customerOf(change).properties ?? {} }
}
