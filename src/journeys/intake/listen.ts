import type { JsonObject } from '../../events/index.ts'
import { type EventFact, type IrFacts, passes } from '../../experiences/index.ts'
import { triggerAgeMsMax } from '../../kernel/limits.ts'
import { goalWindowMs } from '../engine/conversion.ts'
import { attribute, goalMoment } from '../measure/attribution.ts'
import type { PinnedPlan } from '../plan.ts'
import type { CustomerFacts, Input, Moment, Ms } from '../types.ts'
import type { InboxEvent } from './inbox.ts'
import type { KnownJourney } from './journeys-store.ts'

/** A journey that listens, with what it is pinned to. */
export interface Listener {
  journey: KnownJourney
  plan: PinnedPlan
}

/** What somebody is told, in this order. */
export interface Told {
  journeyId: string
  input: Input
}

/** What happened to a customer, as goals and criteria ask for it. */
export type Happened =
  | { kind: 'event'; event: InboxEvent }
  | { kind: 'edge'; segmentId: string; edge: 'entered' | 'left'; at: Ms; pos: bigint }

export interface Moments {
  now: Ms
  /** Of the customer; undefined where nothing asked for it. */
  facts: CustomerFacts | undefined
}

/** Of triggers, goals and exits: its shape was found right. */
export interface Criterion {
  type: string
  eventName?: string
  segmentId?: string
  condition?: { expr: unknown }
}

export function eventFactOf({ name, at, receivedAt, distinctId, properties }: InboxEvent): EventFact {
  return { name, occurredAtMs: Math.min(at, receivedAt), distinctId, properties: properties as Readonly<JsonObject> }
}

/** Whether this is what the criterion waits for. Unknown is no. */
export function meets(criterion: Criterion, happened: Happened, facts: IrFacts): boolean {
  if (happened.kind === 'edge') {
    const type = happened.edge === 'entered' ? 'segment_enter' : 'segment_leave'
    return criterion.type === type && criterion.segmentId === happened.segmentId
  }
  const { event } = happened
  if (criterion.type !== 'event' || criterion.eventName !== event.name) return false
  return passes(criterion.condition, { ...facts, event: eventFactOf(event) })
}

/**
 * The journey that a goal is credited to: of all that wait for it the one with the newest basis. `named` is the only one that
 * an event can convert which names a journey; null: what it names is not corroborated.
 */
export function creditOf(
  listeners: readonly Listener[],
  happened: Happened,
  { now, named }: { now: Ms; named: string | null | undefined },
): Told | null {
  const moment = momentOf(happened)
  if (moment === null) return null
  const watches = listeners.flatMap(({ journey, plan }) => {
    const { goal } = plan.policy
    const windowMs = goalWindowMs(plan)
    if (!goal || windowMs === null || journey.conversion.conversion) return []
    if (named !== undefined && named !== journey.id) return []
    if (!meets(goal.criterion as Criterion, happened, { nowMs: now, journeyId: journey.id })) return []
    return [{ journeyId: journey.id, windowMs, basis: journey.conversion.basis ?? null }]
  })
  const journeyId = attribute(watches, moment)
  return journeyId === null ? null : { journeyId, input: { kind: 'goal', ...moment } }
}

function momentOf(happened: Happened): Moment | null {
  if (happened.kind === 'event') return goalMoment(happened.event)
  return { eventId: `seg:${happened.segmentId}:${happened.pos}`, occurredAt: happened.at }
}

/** What a device says of a purchase that the service verifies for itself: telemetry, unless a server said it. */
const claims = new Set(['$purchase_completed', '$purchase_synced'])

/**
 * Open journeys that this ends. What lies before their start, or at it, does not; nor does a device's claim of a purchase, which
 * converts nothing either.
 */
export function exitsOf(listeners: readonly Listener[], happened: Happened, { now, facts }: Moments): Told[] {
  if (happened.kind === 'event' && happened.event.trust !== 'server' && claims.has(happened.event.name)) return []
  const at = happened.kind === 'event' ? Math.min(happened.event.at, happened.event.receivedAt) : happened.at
  return listeners.flatMap(({ journey, plan }) => {
    if (journey.status === 'ended' || at <= journey.startedAt) return []
    const exit = (plan.policy.exitWhenAny as Criterion[]).find((each) =>
      meets(each, happened, { nowMs: now, ...facts }),
    )
    if (!exit) return []
    const reason = `${exit.type}:${exit.eventName ?? exit.segmentId ?? ''}`
    return [{ journeyId: journey.id, input: { kind: 'criterion', reason } }]
  })
}

/** Waits that the event may end: too old a one does not. */
export function waitsOf(
  waiting: readonly { eventName: string; journeyId: string }[],
  { uuid, name, distinctId, at, receivedAt, properties, trust }: InboxEvent,
): Told[] {
  if (receivedAt - at > triggerAgeMsMax) return []
  const event = { uuid, name, distinctId, at, receivedAt, properties }
  return waiting
    .filter(({ eventName }) => eventName === name)
    .map(({ journeyId }) => ({ journeyId, input: { kind: 'event', event, trust } }))
}

/** Open journeys whose customer is known not to be eligible any more. */
export function lostOf(listeners: readonly Listener[], { now, facts }: Moments): Told[] {
  return listeners.flatMap(({ journey, plan }) => {
    if (journey.status === 'ended' || !losesEligibility(plan)) return []
    const { eligibility } = plan.policy.entry
    const lost = isFalse(eligibility as { expr: unknown }, { nowMs: now, ...facts })
    return lost ? [{ journeyId: journey.id, input: { kind: 'criterion', reason: 'eligibility_lost' } }] : []
  })
}

export function losesEligibility({ policy }: PinnedPlan): boolean {
  return policy.exitWhenAny.some(({ type }) => type === 'eligibility_lost')
}

/** Known, not unknown: the negation passes. */
function isFalse({ expr }: { expr: unknown }, facts: IrFacts): boolean {
  return passes({ expr: { type: 'Not', arg: expr } }, facts)
}
