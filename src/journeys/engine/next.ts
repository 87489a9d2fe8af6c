import { must } from '../../kernel/assert.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Disposition, Facts, Input, Journey, Ms, Outcome } from '../types.ts'
import { bump, type Change, changeOf, disarm, end, NeedsMore, sectionOf, set, setTimer } from './change.ts'
import { withGoal, withShown } from './conversion.ts'
import { enrol } from './enrol.ts'
import { fades } from './fading.ts'
import { missingInput } from './fields.ts'
import { legCompleted, legStarted } from './reports.ts'
import { offer } from './run.ts'
import { eventArrived, timerFired, webhookAnswered } from './waits.ts'

/**
 * What one input does to one journey: pure. Equal arguments give equal answers, so a log of inputs and facts gives the stored
 * state again. Nothing but `applied` changes the state; the others may note something about a leg.
 */
export function next(plan: PinnedPlan, journey: Journey | null, input: Input, facts: Facts, now: Ms): Outcome {
  try {
    if (input.kind === 'enrol') {
      if (journey !== null) return { journey, effects: [], disposition: 'duplicate' }
      return enrol(plan, input, facts, now)
    }
    if (journey === null) return { journey, effects: [], disposition: 'unknown_key' }
    const change = changeOf(plan, journey, facts, now)
    const disposition = apply(change, input)
    if (disposition !== 'applied') return { journey, effects: change.effects, disposition }
    return { journey: change.journey, effects: change.effects, disposition }
  } catch (error) {
    if (error instanceof NeedsMore) return { needs: error.needs }
    throw error
  }
}

function apply(change: Change, input: Exclude<Input, { kind: 'enrol' }>): Disposition {
  switch (input.kind) {
    case 'legStarted':
      return legStarted(change, input)
    case 'legCompleted':
      return legCompleted(change, input)
    case 'timer':
      return timerFired(change, input)
    case 'event':
      return eventArrived(change, input)
    case 'webhookResult':
      return webhookAnswered(change, input)
    case 'shown':
    case 'goal':
      return converted(change, input)
    case 'criterion':
    case 'cancel':
    case 'supersede':
      return stopped(change, input)
    case 'hold':
    case 'resume':
      return heldOrResumed(change, input.kind)
    case 'move':
      return moved(change, input.plan)
  }
}

/** Also after the end, as long as it is watched. */
function converted(
  change: Change,
  { kind, eventId, occurredAt }: Extract<Input, { kind: 'shown' | 'goal' }>,
): Disposition {
  const { plan, journey, now, effects } = change
  const isOver = journey.status === 'ended'
  if (isOver && (journey.watchedUntil === null || now > journey.watchedUntil)) return 'ended'
  const moment = { eventId, occurredAt }
  const conversion = kind === 'shown' ? withShown(plan, journey, moment) : withGoal(plan, journey, moment)
  if (conversion === null) return 'inert'
  journey.conversion = conversion
  effects.push({ kind: 'conversion', revision: conversion.revision })
  if (isOver) {
    if (conversion.conversion) journey.watchedUntil = null
    return 'applied'
  }
  const leaves = kind === 'goal' && plan.policy.exitWhenAny.some(({ type }) => type === 'goal_met')
  if (leaves) end(change, 'exited', 'goal_met')
  bump(change)
  return 'applied'
}

function stopped(change: Change, input: Extract<Input, { kind: 'criterion' | 'cancel' | 'supersede' }>): Disposition {
  if (change.journey.status === 'ended') return 'ended'
  if (input.kind === 'supersede') end(change, 'superseded')
  else end(change, input.kind === 'criterion' ? 'exited' : 'cancelled', input.reason)
  bump(change)
  return 'applied'
}

function heldOrResumed(change: Change, kind: 'hold' | 'resume'): Disposition {
  const { journey, effects, now } = change
  if (journey.status === 'ended') return 'ended'
  if (journey.held === (kind === 'hold')) return 'inert'
  journey.held = kind === 'hold'
  if (journey.held) effects.push({ kind: 'parkTimers' })
  else {
    for (const timer of ['step', 'arm', 'run', 'life'] as const) {
      const state = journey.timers[timer]
      // What fell due meanwhile falls due now, spread over a minute.
      if (state)
        setTimer(
          change,
          timer,
          state.dueAt > now ? state.dueAt : now + jitterMs(journey.id),
          waitsForEvent(journey, timer),
        )
    }
  }
  bump(change)
  return 'applied'
}

export function waitsForEvent({ wait }: Journey, timer: string): boolean {
  return timer === 'step' && wait?.kind === 'event'
}

/** The same for the same journey: a replay decides the same. */
function jitterMs(id: string): number {
  return Number.parseInt(id.slice(-8), 16) % 60_000
}

/** Only an arm that nobody has started, to a version that has its section and whose inputs are there. */
function moved(change: Change, plan: PinnedPlan): Disposition {
  const { journey } = change
  if (journey.status === 'ended') return 'ended'
  const key = journey.sectionKey
  if (journey.status !== 'armed' || key === null || plan.experienceId !== journey.experienceId) return 'inert'
  const section = sectionOf({ plan }, key)
  if (!section || plan.buildId === journey.buildId) return 'inert'
  const to: Change = { ...change, plan }
  if (!canOffer(to, key)) return 'inert'
  disarm(change, 'withdrawn')
  set(change, { versionNumber: plan.versionNumber, buildId: plan.buildId })
  offer(to, key)
  if (fades(plan)) setTimer(to, 'life', journey.expiresAt)
  bump(change)
  return 'applied'
}

function canOffer(change: Change, key: string): boolean {
  return missingInput(change.journey.context, must(sectionOf(change, key), 'it was found').inputs) === null
}
