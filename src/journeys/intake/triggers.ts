import { systemEvent } from '../../events/index.ts'
import { type IrFacts, nodesOf } from '../../experiences/index.ts'
import { triggerAgeMsMax } from '../../kernel/limits.ts'
import { eventFieldsOf, withFields } from '../engine/fields.ts'
import type { Candidate } from '../enrol/types.ts'
import type { LivePlan } from '../plans.ts'
import type { Context, Ms } from '../types.ts'
import type { InboxEvent, InboxRow } from './inbox.ts'
import { type Criterion, type Happened, meets } from './listen.ts'

const nothing: Context = { event: {}, responses: {} }

/** By Experience, those that the server enrols for this trigger. */
export function triggered(live: readonly LivePlan[], happened: Happened, facts: IrFacts): LivePlan[][] {
  if (happened.kind === 'event' && happened.event.receivedAt - happened.event.at > triggerAgeMsMax) return []
  const matching = live.filter(
    ({ plan }) => !plan.isDeviceEnrolled && meets(plan.policy.entry.trigger as Criterion, happened, facts),
  )
  return [...Map.groupBy(matching, ({ plan }) => plan.experienceId).values()]
}

/** Who would enter. `lastApps`: the apps that the customer was heard from, the last first. Null: in no app. */
export function candidateOf(
  plans: readonly LivePlan[],
  happened: Happened,
  { customerId, pos, lastApps, now }: { customerId: string; pos: bigint; lastApps: readonly string[]; now: Ms },
): Candidate | null {
  const appId = appOf(plans, happened, lastApps)
  const live = plans.find((plan) => plan.appId === appId)
  if (!live) return null
  const { plan, state } = live
  const base = { customerId, appId: live.appId, plan, state, contextHash: null }
  if (happened.kind === 'edge') {
    const { segmentId, at } = happened
    return { ...base, by: 'segment', occurrence: `seg:${segmentId}:${pos}`, at: Math.min(at, now), context: nothing }
  }
  const { event } = happened
  const context = withFields(plan, nothing, eventFieldsOf(plan, event.properties))
  return { ...base, by: 'event', occurrence: `evt:${event.uuid}`, at: Math.min(event.at, event.receivedAt), context }
}

/** The event's own, or where the customer was last. */
function appOf(plans: readonly LivePlan[], happened: Happened, lastApps: readonly string[]): string | undefined {
  if (happened.kind === 'event' && happened.event.appId !== null) return happened.event.appId
  return lastApps.find((appId) => plans.some((plan) => plan.appId === appId))
}

/** Whether an expression looks at more than the event. */
export function asksForCustomer(expression: unknown): boolean {
  for (const { type } of nodesOf(expression))
    if (type === 'User' || type === 'Segment' || type === 'Feature') return true
  return false
}

/** A device's word of a purchase, say, starts and converts nothing. */
export function mayStart({ name, trust }: InboxEvent): boolean {
  return trust === 'server' || systemEvent(name)?.triggerable !== 'from_server'
}

/** Nobody says in which app it happened. */
export function isPlaceless({ body }: InboxRow): boolean {
  return body.kind === 'edge' || (body.kind === 'event' && body.appId === null)
}
