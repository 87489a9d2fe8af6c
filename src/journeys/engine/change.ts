import type { PlanSection, PlanStep } from '../../experiences/index.ts'
import { assert } from '../../kernel/assert.ts'
import { dayMs, watchSlackDays } from '../../kernel/limits.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Effect, EndReason, Facts, Journey, LegStatus, Ms, Needs, TimerKind } from '../types.ts'
import { goalWindowMs } from './conversion.ts'
import { lookOf } from './fading.ts'

/** One transition in the making: a copy of the journey, and what it decides. */
export interface Change {
  readonly plan: PinnedPlan
  readonly journey: Journey
  /** A step that sets properties changes what later ones see. */
  facts: Facts
  readonly now: Ms
  readonly effects: Effect[]
  /** Of effects that leave the database or have an identity: unique in the transition. */
  index: number
}

export function changeOf(plan: PinnedPlan, journey: Journey, facts: Facts, now: Ms): Change {
  const copy = { ...journey, rev: journey.rev + 1, timers: { ...journey.timers } }
  return { plan, journey: copy, facts, now, effects: [], index: 0 }
}

export function set({ journey }: Change, to: Partial<Journey>): void {
  Object.assign(journey, to)
}

/** Thrown by a decision that has to look at more; `next` turns it into an answer. */
export class NeedsMore {
  readonly needs: Needs

  constructor(needs: Needs) {
    this.needs = needs
  }
}

export function sectionOf({ plan }: Pick<Change, 'plan'>, key: string): PlanSection | undefined {
  return Object.hasOwn(plan.sections, key) ? plan.sections[key] : undefined
}

export function stepOf({ plan }: Pick<Change, 'plan'>, id: string): PlanStep | undefined {
  return Object.hasOwn(plan.steps, id) ? plan.steps[id] : undefined
}

export function setTimer(change: Change, timer: TimerKind, dueAt: Ms, afterLane = false): void {
  const { plan, journey, effects, now } = change
  journey.timers[timer] = { rev: journey.rev, dueAt }
  effects.push({ kind: 'setTimer', timer, rev: journey.rev, dueAt, afterLane, ...lookOf(plan, timer, now) })
}

export function clearTimers({ journey, effects }: Change, ...kinds: TimerKind[]): void {
  const timers = kinds.filter((kind) => journey.timers[kind] !== undefined)
  if (timers.length === 0) return
  for (const timer of timers) delete journey.timers[timer]
  effects.push({ kind: 'clearTimers', timers })
}

/** Takes the offered leg back, if one is offered. */
export function disarm(change: Change, status: LegStatus): void {
  const { journey, effects } = change
  if (journey.status !== 'armed') return
  clearTimers(change, 'arm')
  effects.push({ kind: 'disarm', generation: journey.generation })
  effects.push({ kind: 'leg', generation: journey.generation, set: { status } })
}

/** Leaves the server step it waits in. */
export function leaveStep(change: Change): void {
  const { journey, effects } = change
  if (journey.wait === null) return
  if (journey.wait.kind === 'event') effects.push({ kind: 'unsubscribe' })
  clearTimers(change, 'step')
  journey.wait = null
  journey.stepId = null
}

/** A leg that a device runs goes on there: what it reports comes late. */
export function end(change: Change, reason: EndReason, detail: string | null = null): void {
  const { plan, journey, now } = change
  assert(journey.status !== 'ended', 'a journey ends once')
  disarm(change, 'withdrawn')
  leaveStep(change)
  clearTimers(change, 'step', 'arm', 'run', 'life')
  const window = goalWindowMs(plan)
  set(change, { status: 'ended', endReason: reason, endDetail: detail, endedAt: now, sectionKey: null, held: false })
  const isWatched = window !== null && journey.conversion.conversion === undefined && reason !== 'refused'
  journey.watchedUntil = isWatched ? now + window + watchSlackDays * dayMs : null
}

export function fail(change: Change, what: 'untrusted_grant' | 'step_limit' | 'failed', detail: string): void {
  end(change, 'failed', detail)
  change.effects.push({ kind: 'alert', what, detail })
}

export function bump({ effects }: Change): void {
  if (!effects.some(({ kind }) => kind === 'bump')) effects.push({ kind: 'bump' })
}
