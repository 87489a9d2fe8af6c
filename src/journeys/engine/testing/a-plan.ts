import type { PlanFields, PlanSection, PlanStep } from '../../../experiences/index.ts'
import type { PinnedPlan } from '../../plan.ts'
import type { Facts, Input, Journey, LegRun, Outcome } from '../../types.ts'
import { next } from '../next.ts'

/** A moment to count from. */
export const t0 = Date.UTC(2026, 10, 20, 9)
export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export const noFields: PlanFields = { eventFields: [], responseFields: [] }

export function step(action: PlanStep['action'], outlets: PlanStep['outlets'] = {}, forgeable = false): PlanStep {
  return { action, outlets, forgeable }
}

export function section(key: string, more: Partial<PlanSection> = {}): PlanSection {
  return {
    ...{ legId: key.padEnd(64, '0'), armForMs: null, runForMs: 7 * dayMs, outcomes: {}, inputs: noFields, outputs: {} },
    ...more,
  }
}

/** A plan of an Experience that the server starts, with these parts. */
export function aPlan(
  more: Partial<Omit<PinnedPlan, 'policy'>> & { policy?: Partial<PinnedPlan['policy']> } = {},
): PinnedPlan {
  const { policy, ...rest } = more
  return {
    ...{
      entry: 'offer',
      isDeviceEnrolled: false,
      priority: 0,
      fields: {},
      sections: { offer: section('offer') },
      steps: {},
    },
    ...{ experienceId: 1, experiencePublicId: 'exp_1', versionNumber: 1, versionPublicId: 'ver_1', buildId: 'bld_1' },
    ...rest,
    policy: {
      entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } },
      exitWhenAny: [],
      ...policy,
    } as PinnedPlan['policy'],
  }
}

export const journeyId = '01936b2e-7c00-7000-8000-000000000001'
export const customerId = '0f0e0d0c-0b0a-4000-8000-000000000001'
export const eventId = (n: number) => `e0000000-0000-4000-8000-${String(n).padStart(12, '0')}`

type Enrol = Extract<Input, { kind: 'enrol' }>

export function enrolment(more: Partial<Enrol> = {}): Enrol {
  return {
    ...{ kind: 'enrol', by: 'api', journeyId, customerId, appId: 'app_1', occurrence: 'api:k', at: t0 },
    context: { event: {}, responses: {} },
    ...more,
  }
}

export function deviceEnrolment(more: Partial<Enrol> = {}): Enrol {
  const leg = { startedAt: t0 - 1000, eventId: eventId(1) }
  return enrolment({ by: 'device', occurrence: `dev:${journeyId}`, leg, ...more })
}

type Decided = Exclude<Outcome, { needs: object }>

/** `next`, where nothing more is needed. */
export function decide(
  plan: PinnedPlan,
  journey: Journey | null,
  input: Input,
  facts: Facts = {},
  now: number = t0,
): Decided & { journey: Journey } {
  const outcome = next(plan, journey, input, { frequencyAllows: true, ...facts }, now)
  if (outcome.needs) throw new Error(`it needs ${JSON.stringify(outcome.needs)}`)
  if (outcome.journey === null) throw new Error('there is no journey')
  return { ...outcome, journey: outcome.journey }
}

/** A journey of the plan that has just begun. */
export function begun(plan: PinnedPlan, facts: Facts = {}, input: Input = enrolment()): Journey {
  return decide(plan, null, input, facts).journey
}

export function legOf(plan: PinnedPlan, key: string, more: Partial<LegRun> = {}): LegRun {
  return {
    ...{ generation: 1, sectionKey: key, legId: plan.sections[key]?.legId ?? '', versionNumber: plan.versionNumber },
    ...{ status: 'armed', startedEvent: null, completedEvent: null },
    ...more,
  }
}

export function started(plan: PinnedPlan, key = 'offer', generation = 1): Input {
  const legId = plan.sections[key]?.legId ?? ''
  return { kind: 'legStarted', generation, legId, startedAt: t0 + 5, eventId: eventId(2) }
}

export function completed(plan: PinnedPlan, outcome: string, more: object = {}, key = 'offer'): Input {
  const legId = plan.sections[key]?.legId ?? ''
  return {
    ...{ kind: 'legCompleted', generation: 1, legId, outcome, outputs: { event: {}, responses: {} } },
    ...{ startedAt: t0 + 5, completedAt: t0 + 10, eventId: eventId(3), ...more },
  }
}
