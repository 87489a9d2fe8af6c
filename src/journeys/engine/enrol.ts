import { must } from '../../kernel/assert.ts'
import { dayMs, lifetimeDays } from '../../kernel/limits.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Facts, Input, Journey, Ms, Outcome } from '../types.ts'
import { bump, changeOf, end, NeedsMore, sectionOf, set, setTimer } from './change.ts'
import { conversionAt } from './conversion.ts'
import { run } from './run.ts'

/** A device has begun already: where the frequency refuses, what it reports is kept and nothing follows. A server does not begin. */
export function enrol(plan: PinnedPlan, input: Extract<Input, { kind: 'enrol' }>, facts: Facts, now: Ms): Outcome {
  if (facts.frequencyAllows === undefined) throw new NeedsMore({ frequency: true })
  const isDevice = input.by === 'device'
  if (!isDevice && !facts.frequencyAllows) return { journey: null, effects: [], disposition: 'frequency' }
  const change = changeOf(plan, newJourney(plan, input, now), facts, now)
  const { journey, effects } = change
  if (isDevice) {
    const section = must(sectionOf(change, plan.entry), 'devices begin with a section')
    const { startedAt, eventId } = must(input.leg, 'a device tells of its leg')
    const started = { startedAt, ...(eventId === null ? {} : { startedEvent: eventId }) }
    const leg = { sectionKey: plan.entry, legId: section.legId, versionNumber: plan.versionNumber }
    effects.push({
      ...{ kind: 'began', ...leg },
      set: { ...started, status: facts.frequencyAllows ? 'on_device' : 'withdrawn' },
    })
    if (!facts.frequencyAllows) {
      end(change, 'refused', 'frequency')
      return { journey, effects, disposition: 'applied' }
    }
    set(change, { status: 'on_device', sectionKey: plan.entry })
    setTimer(change, 'run', now + section.runForMs)
  }
  effects.push({ kind: 'countEnrolment', at: input.at })
  setTimer(change, 'life', journey.expiresAt)
  bump(change)
  // A call happens at a moment; what an event starts stands in the order of events.
  if (!isDevice) run(change, plan.entry, input.by === 'api' ? { since: input.at } : {})
  return { journey, effects, disposition: 'applied' }
}

function newJourney(plan: PinnedPlan, input: Extract<Input, { kind: 'enrol' }>, now: Ms): Journey {
  const { by, journeyId, customerId, appId, occurrence, context } = input
  const { experienceId, versionNumber, buildId } = plan
  // As reported: clients compare it.
  const startedAt = input.leg?.startedAt ?? input.at
  return {
    ...{ id: journeyId, customerId, appId, experienceId, versionNumber, buildId, origin: by, occurrence, context },
    ...{ status: 'waiting', endReason: null, endDetail: null, rev: 0, generation: 0, sectionKey: null, stepId: null },
    trust: by === 'api' || by === 'server_event' ? 'server' : 'device',
    ...{ held: false, conversion: conversionAt(plan, journeyId, startedAt), wait: null, timers: {}, startedAt },
    expiresAt: now + (plan.policy.lifetimeMs ?? lifetimeDays * dayMs),
    ...{ endedAt: null, watchedUntil: null },
  }
}
