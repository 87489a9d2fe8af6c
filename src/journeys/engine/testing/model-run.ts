import assert from 'node:assert/strict'
import fc from '../../../../test/harness/random.ts'
import type { PinnedPlan } from '../../plan.ts'
import type { Disposition, Effect, Facts, Input, Journey, LegRun, Origin, TimerKind } from '../../types.ts'
import { next } from '../next.ts'
import { aPlan, customerId, dayMs, enrolment, eventId, hourMs, journeyId, section, step, t0 } from './a-plan.ts'
import { onward, type Stand, walk } from './reference.ts'

export const sections = ['s0', 's1', 's2']
const goal = {
  criterion: { type: 'event', eventName: 'paid' },
  attribution: { basis: 'first_shown', window: { amount: 2, unit: 'hour' } },
}

/** Any graph over three sections and six server steps, every loop of which waits somewhere. */
export const anyPlan = fc
  .record({
    steps: fc.array(
      fc.record({
        type: fc.constantFrom('delay', 'wait', 'hook', 'emit', 'grant', 'exit'),
        a: fc.nat(9),
        b: fc.nat(9),
        flag: fc.boolean(),
      }),
      { minLength: 6, maxLength: 6 },
    ),
    outcomes: fc.array(fc.record({ done: fc.nat(9), expired: fc.nat(9), abandoned: fc.nat(9) }), {
      minLength: 3,
      maxLength: 3,
    }),
    entry: fc.nat(8),
    leaves: fc.boolean(),
  })
  .map(({ steps, outcomes, entry, leaves }): PinnedPlan => {
    const target = (n: number) => (n < 3 ? `s${n}` : n < 9 ? `t${n - 3}` : null)
    /** What takes no time leads on to later steps only. */
    const later = (from: number, n: number) => (n < 3 || n - 3 > from ? target(n) : null)
    const made = steps.map(({ type, a, b, flag }, i) => {
      const [one, two] = [target(a), target(b)]
      if (type === 'delay') return step({ type, durationMs: hourMs }, { next: one })
      if (type === 'wait') {
        const wait = { type: 'wait_for_event', eventName: 'paid', trust: flag ? 'server' : 'any', timeoutMs: dayMs }
        return step(wait, { matched: one, timeout: two })
      }
      if (type === 'hook') {
        const hook = { type: 'webhook', endpointId: 'w', body: {}, timeoutMs: 1, attempts: 1, gate: flag }
        return step(hook, { success: one, failure: two })
      }
      if (type === 'emit') return step({ type: 'emit_event', eventName: 'e' }, { next: later(i, a) })
      if (type === 'grant') return step({ type: 'grant_feature', featureId: 'c', amount: 1 }, { next: later(i, a) })
      return step({ type: 'exit' })
    })
    return aPlan({
      entry: target(entry) ?? 's0',
      sections: Object.fromEntries(
        outcomes.map(({ done, expired, abandoned }, i) => [
          `s${i}`,
          section(`s${i}`, {
            outcomes: { done: target(done), expired: target(expired), abandoned: target(abandoned) },
          }),
        ]),
      ),
      steps: Object.fromEntries(made.map((one, i) => [`t${i}`, one])),
      policy: { goal: goal as never, exitWhenAny: leaves ? [{ type: 'goal_met' }] : [] },
    })
  })

/** What somebody does next, before it is known where the journey stands. */
export const anyAct = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('start'), generation: fc.integer({ min: -1, max: 2 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...{ kind: fc.constant('complete'), generation: fc.integer({ min: -1, max: 2 }) },
      outcome: fc.constantFrom('done', 'abandoned', 'invented'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('fire'), early: fc.boolean(), stale: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('event'), server: fc.boolean(), late: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer'), ok: fc.boolean(), wrong: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('goal', 'shown'), ago: fc.nat(4 * hourMs) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('hold', 'resume', 'cancel') }) },
)
export type Act = Parameters<Parameters<typeof anyAct.map>[0]>[0]

export interface Logged {
  input: Input
  facts: Facts
  now: number
  journey: Journey
  effects: Effect[]
}

/** A journey and what the tables would hold of it, told one input after the other. */
export class Run {
  readonly plan: PinnedPlan
  journey: Journey | null = null
  stand: Stand
  now = t0
  readonly legs = new Map<number, LegRun>()
  readonly log: Logged[] = []
  readonly offered: number[] = []
  #events = 100

  constructor(plan: PinnedPlan, by: Origin) {
    this.plan = plan
    this.stand = { at: null, status: 'ended', trusted: by === 'api', granted: 0 }
    const leg = by === 'device' ? { leg: { startedAt: t0, eventId: eventId(1) } } : {}
    this.tell(enrolment({ by, journeyId, customerId, ...leg }), { frequencyAllows: true, grantable: { c: true } })
    this.stand =
      by === 'device' ? { ...this.stand, at: plan.entry, status: 'on_device' } : onward(plan, this.stand, plan.entry)
  }

  tell(input: Input, more: Facts = { grantable: { c: true } }): Disposition {
    const generation = 'generation' in input ? input.generation : null
    const facts: Facts = generation === null ? more : { ...more, leg: this.legs.get(generation) ?? null }
    const before = this.journey
    const outcome = next(this.plan, before, input, facts, this.now)
    if (outcome.needs) throw new Error('everything is there')
    const { journey, effects, disposition } = outcome
    if (disposition === 'applied' && journey) this.log.push({ input, facts, now: this.now, journey, effects })
    else assert.equal(journey, before, 'what is not applied changes nothing')
    this.journey = journey
    for (const effect of effects) this.#note(effect)
    return disposition
  }

  #note(effect: Effect): void {
    if (effect.kind === 'arm' || effect.kind === 'began') {
      const generation = effect.kind === 'arm' ? effect.generation : 0
      const { sectionKey, legId, versionNumber } = effect
      const status = effect.kind === 'arm' ? 'armed' : 'on_device'
      const startedEvent = effect.kind === 'began' ? (effect.set.startedEvent ?? null) : null
      this.legs.set(generation, {
        generation,
        sectionKey,
        legId,
        versionNumber,
        status,
        startedEvent,
        completedEvent: null,
      })
      this.offered.push(generation)
    }
    if (effect.kind !== 'leg') return
    const leg = this.legs.get(effect.generation)
    if (!leg) return
    const { status = leg.status, startedEvent = leg.startedEvent, completedEvent = leg.completedEvent } = effect.set
    this.legs.set(effect.generation, { ...leg, status, startedEvent, completedEvent })
  }

  open(): Journey {
    if (!this.journey) throw new Error('it has begun')
    return this.journey
  }

  /** The input of an act, and what the reference makes of it where it applies. */
  act(act: Act): { input: Input; expected: Stand | null } {
    const { plan, stand } = this
    const journey = this.open()
    const current = journey.generation
    this.now += 1000
    switch (act.kind) {
      case 'start': {
        const { generation: by } = act as { generation: number }
        const generation = current + by
        const leg = this.legs.get(generation)
        const fits = by === 0 && stand.status === 'armed'
        const id = eventId(this.#events++)
        const input: Input = {
          kind: 'legStarted',
          generation,
          legId: leg?.legId ?? 'x',
          startedAt: this.now,
          eventId: id,
        }
        return { input, expected: fits ? walk(plan, stand, { kind: 'start' }) : null }
      }
      case 'complete': {
        const { generation: by, outcome } = act as { generation: number; outcome: string }
        const generation = current + by
        const leg = this.legs.get(generation)
        const fits = by === 0 && (stand.status === 'armed' || stand.status === 'on_device')
        const known = outcome === 'invented' ? 'abandoned' : outcome
        const input: Input = {
          ...{
            kind: 'legCompleted',
            generation,
            legId: leg?.legId ?? 'x',
            outcome,
            outputs: { event: {}, responses: {} },
          },
          ...{ startedAt: this.now, completedAt: this.now, eventId: eventId(this.#events++) },
        }
        return { input, expected: fits ? walk(plan, stand, { kind: 'complete', outcome: known }) : null }
      }
      case 'fire': {
        const { early, stale } = act as { early: boolean; stale: boolean }
        const [kind, state] = (
          Object.entries(journey.timers) as [TimerKind, { rev: number; dueAt: number }][]
        ).toSorted(([, a], [, b]) => a.dueAt - b.dueAt)[0] ?? ['life', { rev: 0, dueAt: this.now }]
        if (!early) this.now = Math.max(this.now, state.dueAt)
        const fires = !stale && !journey.held && stand.status !== 'ended' && this.now >= state.dueAt
        const happening = { step: 'due', arm: 'expire', run: 'lose', life: 'end' } as const
        const input: Input = { kind: 'timer', timer: kind, rev: stale ? state.rev - 1 : state.rev }
        return { input, expected: fires ? walk(plan, stand, { kind: happening[kind] }) : null }
      }
      case 'event': {
        const { server, late } = act as { server: boolean; late: boolean }
        const { action } = plan.steps[stand.at ?? ''] ?? {}
        const due = journey.timers.step?.dueAt ?? 0
        const receivedAt = late ? due + 1 : Math.min(this.now, due)
        const waits = stand.status === 'waiting' && action?.type === 'wait_for_event' && receivedAt >= since(journey)
        const fits = waits && !late && (server || action.trust === 'any')
        const uuid = eventId(this.#events++)
        const event = { uuid, name: 'paid', distinctId: 'u', at: receivedAt, receivedAt, properties: {} }
        const input: Input = { kind: 'event', event, trust: server ? 'server' : 'device' }
        return { input, expected: fits ? walk(plan, stand, { kind: 'match', trusted: server }) : null }
      }
      case 'answer': {
        const { ok, wrong } = act as { ok: boolean; wrong: boolean }
        const key = journey.wait?.kind === 'webhook' && !wrong ? journey.wait.key : 'other'
        const fits = key !== 'other' && stand.status === 'waiting'
        return {
          input: { kind: 'webhookResult', key, ok },
          expected: fits ? walk(plan, stand, { kind: 'answer', ok }) : null,
        }
      }
      case 'goal':
      case 'shown': {
        const { ago } = act as { ago: number }
        const input: Input = { kind: act.kind, eventId: eventId(this.#events++), occurredAt: this.now - ago }
        return { input, expected: null }
      }
      case 'hold':
      case 'resume':
        return { input: { kind: act.kind }, expected: null }
      case 'cancel': {
        const ends = stand.status !== 'ended'
        return { input: { kind: 'cancel', reason: 'x' }, expected: ends ? walk(plan, stand, { kind: 'end' }) : null }
      }
      default:
        throw new Error('nobody does that')
    }
  }

  /** Where it stands is where the reference stands. */
  check(): void {
    const { status, sectionKey, stepId } = this.open()
    assert.deepEqual([status, sectionKey ?? stepId], [this.stand.status, this.stand.at])
  }
}

const since = ({ wait }: Journey) => (wait?.kind === 'event' ? wait.since : Number.POSITIVE_INFINITY)

/** Runs acts; `each` sees the state before and what was told. */
export function play(
  plan: PinnedPlan,
  by: Origin,
  acts: Act[],
  each: (run: Run, told: { input: Input; before: Journey }) => void = () => {},
) {
  const run = new Run({ ...plan, entry: by === 'device' && !plan.sections[plan.entry] ? 's0' : plan.entry }, by)
  run.check()
  for (const act of acts) {
    const before = run.open()
    const { input, expected } = run.act(act)
    run.tell(input)
    if (expected) run.stand = expected
    else if (run.open().status === 'ended' && before.status !== 'ended' && input.kind === 'goal') {
      run.stand = walk(run.plan, run.stand, { kind: 'end' })
    }
    run.check()
    each(run, { input, before })
  }
  return run
}
