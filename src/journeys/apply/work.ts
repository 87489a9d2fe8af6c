import { must } from '../../kernel/assert.ts'
import { frequencyAllows } from '../engine/frequency.ts'
import { next } from '../engine/next.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Disposition, Effect, Facts, Input, Journey, LegRun, Ms, Needs } from '../types.ts'

/** One input for one journey. `plan`: of an enrolment. */
export interface Told {
  journeyId: string
  input: Input
  plan?: PinnedPlan
}

/** A transition, or what an input left beside one. */
export interface Taken {
  journey: Journey
  /** Null: it changed no state. */
  rev: number | null
  input: Input
  facts: Facts
  from: string
  to: string
  effects: Effect[]
}

/** A journey while its inputs of one batch are applied, in their order. */
export interface Work {
  journeyId: string
  /** 0: there is none yet. */
  seenRev: number
  journey: Journey | null
  plan: PinnedPlan | null
  told: { input: Input; index: number }[]
  /** How many of them are done. */
  done: number
  legs: Map<number, LegRun | null>
  facts: Facts
  /** Shared by those that enrol the same customer in the same Experience. */
  counted: { count: number; times: Ms[] } | null
  taken: Taken[]
  dispositions: { index: number; disposition: Disposition }[]
  /** It did what later inputs have to see from the database: they come after it is written. */
  paused: boolean
}

export function workOf(journeyId: string): Work {
  return {
    ...{
      journeyId,
      seenRev: 0,
      journey: null,
      plan: null,
      told: [],
      done: 0,
      legs: new Map(),
      facts: {},
      counted: null,
    },
    ...{ taken: [], dispositions: [], paused: false },
  }
}

/** Applies what is left, as far as what was loaded goes; gives what it needs to go on. */
export function advance(work: Work, now: Ms): Needs | null {
  while (work.done < work.told.length && !work.paused) {
    const { input, index } = must(work.told[work.done], 'it is not done')
    if (work.plan === null) {
      work.dispositions.push({ index, disposition: 'unknown_key' })
      work.done++
      continue
    }
    const facts = factsFor(work, work.plan, input)
    const before = work.journey
    const outcome = next(work.plan, before, input, facts, now)
    if (outcome.needs) return outcome.needs
    const { journey, effects, disposition } = outcome
    work.dispositions.push({ index, disposition })
    work.done++
    if (journey === null) continue
    const rev = journey === before ? null : journey.rev
    if (rev !== null || effects.length > 0) {
      work.taken.push({ journey, rev, input, facts, effects, from: stateText(before), to: stateText(journey) })
    }
    work.journey = journey
    if (input.kind === 'move' && disposition === 'applied') work.plan = input.plan
    noteLegs(work, effects)
    for (const effect of effects) {
      if (effect.kind !== 'countEnrolment' || !work.counted) continue
      work.counted.count++
      work.counted.times.push(effect.at)
    }
    work.paused = effects.some(({ kind }) => kind === 'grant' || kind === 'append')
  }
  return null
}

/** Only what this input may look at: what is written down with it stays small. */
function factsFor({ legs, facts, counted }: Work, plan: PinnedPlan, input: Input): Facts {
  if (input.kind === 'enrol') {
    return counted ? { ...facts, frequencyAllows: frequencyAllows(plan, counted, input.at) } : facts
  }
  if (input.kind !== 'legStarted' && input.kind !== 'legCompleted') return facts
  const leg = legs.get(input.generation)
  return leg === undefined ? facts : { ...facts, leg }
}

/** Later inputs of the batch see the legs as these leave them. */
function noteLegs({ legs }: Work, effects: Effect[]): void {
  for (const effect of effects) {
    if (effect.kind === 'arm' || effect.kind === 'began') {
      const { sectionKey, legId, versionNumber } = effect
      const run = { sectionKey, legId, versionNumber, startedEvent: null, completedEvent: null }
      if (effect.kind === 'arm') legs.set(effect.generation, { ...run, generation: effect.generation, status: 'armed' })
      else {
        const { status = 'on_device', startedEvent = null } = effect.set
        legs.set(0, { ...run, generation: 0, status, startedEvent })
      }
    } else if (effect.kind === 'leg') {
      const known = legs.get(effect.generation)
      if (!known) continue
      const { status, startedEvent, completedEvent } = effect.set
      legs.set(effect.generation, {
        ...known,
        status: status ?? known.status,
        startedEvent: startedEvent ?? known.startedEvent,
        completedEvent: completedEvent ?? known.completedEvent,
      })
    }
  }
}

/** Where a journey stands, in the log: such as `waiting:later`, `ended:exited`. */
function stateText(journey: Journey | null): string {
  if (journey === null) return 'none'
  const { status, endReason, sectionKey, stepId } = journey
  return `${status}:${status === 'ended' ? endReason : (stepId ?? sectionKey)}`
}
