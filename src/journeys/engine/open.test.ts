import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Effect, Input, Journey } from '../types.ts'
import {
  aPlan,
  begun,
  completed,
  dayMs,
  decide,
  eventId,
  journeyId,
  legOf,
  section,
  started,
  t0,
} from './testing/a-plan.ts'

const kindsOf = (effects: Effect[]) => effects.map(({ kind }) => kind)
const timersOf = ({ timers }: Journey) =>
  Object.fromEntries(Object.entries(timers).map(([kind, { dueAt }]) => [kind, dueAt]))
const goal = {
  criterion: { type: 'event', eventName: 'paid' },
  attribution: { basis: 'entry', window: { amount: 3, unit: 'day' } },
} as const

describe('open', () => {
  const plan = aPlan({ policy: { goal } })
  const open = begun(plan)

  test('goal: converted once, and it goes on; ended where goal_met is listed', () => {
    const met: Input = { kind: 'goal', eventId: eventId(5), occurredAt: t0 + dayMs }
    const { journey, effects } = decide(plan, open, met)
    assert.deepEqual(journey.conversion, {
      ...{ startedAt: t0, revision: 2, basis: { eventId: journeyId, occurredAt: t0 } },
      conversion: { eventId: eventId(5), occurredAt: t0 + dayMs },
    })
    assert.deepEqual([journey.status, kindsOf(effects)], ['armed', ['conversion', 'bump']])
    assert.equal(decide(plan, journey, { ...met, occurredAt: t0 + 2 * dayMs }).disposition, 'inert', 'the first counts')
    const leaving = aPlan({ policy: { goal, exitWhenAny: [{ type: 'goal_met' }] } })
    const left = decide(leaving, open, met)
    assert.deepEqual([left.journey.status, left.journey.endReason, left.journey.timers], ['ended', 'exited', {}])
    assert.deepEqual(kindsOf(left.effects), ['conversion', 'clearTimers', 'disarm', 'leg', 'clearTimers', 'bump'])
  })

  test('goal outside its window, or not after its basis: unchanged', () => {
    const at = (occurredAt: number, id = eventId(5)) =>
      decide(plan, open, { kind: 'goal', eventId: id, occurredAt }).disposition
    assert.deepEqual(
      [at(t0 - 1), at(t0, '00000000-0000-4000-8000-000000000000'), at(t0 + 3 * dayMs + 1)],
      [...['inert', 'inert', 'inert']],
    )
    assert.deepEqual([at(t0, 'ffffffff-0000-4000-8000-000000000000'), at(t0 + 3 * dayMs)], ['applied', 'applied'])
  })

  test('shown: the earliest is the basis, until something was converted', () => {
    const attribution = { basis: 'first_shown', window: { amount: 1, unit: 'hour' } } as const
    const plan = aPlan({ policy: { goal: { ...goal, attribution } } })
    const shown = (journey: Journey, occurredAt: number, n: number) =>
      decide(plan, journey, { kind: 'shown', eventId: eventId(n), occurredAt })
    const before = decide(plan, begun(plan), { kind: 'goal', eventId: eventId(9), occurredAt: t0 + 1 })
    assert.equal(before.disposition, 'inert', 'nothing was shown')
    const first = shown(begun(plan), t0 + 20, 2)
    assert.deepEqual(first.journey.conversion.basis, { eventId: eventId(2), occurredAt: t0 + 20 })
    assert.equal(shown(first.journey, t0 + 30, 3).disposition, 'inert')
    const earlier = shown(first.journey, t0 + 10, 4)
    assert.deepEqual([earlier.journey.conversion.basis?.occurredAt, earlier.journey.conversion.revision], [t0 + 10, 3])
    const won = decide(plan, earlier.journey, { kind: 'goal', eventId: eventId(9), occurredAt: t0 + 15 }).journey
    assert.equal(shown(won, t0, 5).disposition, 'inert')
  })

  test('criterion, timer life and cancel end it; nothing of it is left', () => {
    const ends: [Input, string][] = [
      [{ kind: 'criterion', reason: 'eligibility_lost' }, 'exited'],
      [{ kind: 'timer', timer: 'life', rev: 1 }, 'expired'],
      [{ kind: 'cancel', reason: 'asked' }, 'cancelled'],
      [{ kind: 'supersede' }, 'superseded'],
    ]
    for (const [input, reason] of ends) {
      const { journey, effects } = decide(plan, open, input, {}, t0 + 30 * dayMs)
      assert.deepEqual([journey.status, journey.endReason, journey.timers, journey.wait], ['ended', reason, {}, null])
      assert.ok(['disarm', 'clearTimers', 'bump'].every((kind) => effects.some((effect) => effect.kind === kind)))
      assert.equal(journey.watchedUntil, t0 + 63 * dayMs)
    }
  })

  test('hold parks timers, resume restores them; what fell due meanwhile falls due soon', () => {
    const held = decide(plan, open, { kind: 'hold' })
    assert.deepEqual(
      [held.journey.held, held.journey.status, kindsOf(held.effects)],
      [true, 'armed', ['parkTimers', 'bump']],
    )
    const rev = open.timers.arm?.rev ?? 0
    const fired = decide(plan, held.journey, { kind: 'timer', timer: 'arm', rev }, {}, t0 + 8 * dayMs)
    assert.deepEqual([fired.disposition, fired.journey], ['held', held.journey])
    const resumed = decide(plan, held.journey, { kind: 'resume' }, {}, t0 + 8 * dayMs).journey
    const { arm = 0, life } = timersOf(resumed)
    assert.ok(arm >= t0 + 8 * dayMs && arm < t0 + 8 * dayMs + 60_000)
    assert.equal(life, t0 + 30 * dayMs)
    assert.equal(decide(plan, resumed, { kind: 'resume' }).disposition, 'inert')
    assert.equal(decide(plan, held.journey, { kind: 'hold' }).disposition, 'inert')
  })
})

describe('any', () => {
  const plan = aPlan({ sections: { offer: section('offer', { outcomes: { done: 'offer' } }) } })
  const armed = begun(plan)
  const leg = legOf(plan, 'offer')

  test('a report of a generation never offered, or of another leg: unchanged', () => {
    const unknown = decide(plan, armed, started(plan, 'offer', 9), { leg: null })
    assert.deepEqual(unknown, { journey: armed, effects: [], disposition: 'unknown_generation' })
    const other = { ...leg, legId: 'f'.repeat(64) }
    assert.equal(decide(plan, armed, started(plan), { leg: other }).disposition, 'reference_mismatch')
  })

  test('the same report again is a duplicate, also under a new event id', () => {
    const onDevice = { ...leg, startedEvent: eventId(7) }
    assert.equal(decide(plan, armed, started(plan), { leg: onDevice }).disposition, 'duplicate')
    const over = { ...leg, status: 'completed' as const, completedEvent: eventId(7) }
    assert.equal(decide(plan, armed, completed(plan, 'done'), { leg: over }).disposition, 'duplicate')
  })

  test('a start after its completion fills its time only', () => {
    const over = { ...leg, status: 'completed' as const, completedEvent: eventId(7) }
    const { journey, effects, disposition } = decide(plan, armed, started(plan), { leg: over })
    assert.deepEqual([journey, disposition], [armed, 'late_start'])
    const set = { startedAt: t0 + 5, startedEvent: eventId(2), note: 'late_start' }
    assert.deepEqual(effects, [{ kind: 'leg', generation: 1, set }])
  })

  test('a report of a closed leg or an earlier generation keeps its outputs on the leg, and changes nothing', () => {
    const expired = { ...leg, status: 'expired' as const }
    const { journey, effects, disposition } = decide(plan, armed, completed(plan, 'done'), { leg: expired })
    assert.deepEqual([journey, disposition, effects.length], [armed, 'late', 1])
    const second = { ...armed, generation: 2 }
    assert.equal(decide(plan, second, completed(plan, 'done'), { leg }).disposition, 'late')
  })

  test('a timer of another rev is stale, one before its time fires never', () => {
    assert.equal(decide(plan, armed, { kind: 'timer', timer: 'arm', rev: 7 }).disposition, 'stale_timer')
    const { rev = 0 } = armed.timers.arm ?? {}
    const early = decide(plan, armed, { kind: 'timer', timer: 'arm', rev }, {}, t0 + 7 * dayMs - 1)
    assert.deepEqual([early.disposition, early.journey, kindsOf(early.effects)], ['early', armed, ['setTimer']])
  })

  test('a webhook’s result for a step that was left is inert', () => {
    const result = decide(plan, armed, { kind: 'webhookResult', key: 'whatever', ok: true })
    assert.deepEqual(result, { journey: armed, effects: [], disposition: 'unknown_key' })
  })
})

describe('ended', () => {
  const plan = aPlan({ policy: { goal } })
  const ended = decide(plan, begun(plan), { kind: 'cancel', reason: 'asked' }).journey

  test('goal inside the watch time: conversion only; after it nothing', () => {
    const met: Input = { kind: 'goal', eventId: eventId(5), occurredAt: t0 + dayMs }
    const { journey, effects } = decide(plan, ended, met, {}, t0 + 10 * dayMs)
    assert.deepEqual([journey.status, journey.conversion.revision, kindsOf(effects)], ['ended', 2, ['conversion']])
    const watched = t0 + 33 * dayMs
    assert.equal(decide(plan, ended, met, {}, watched).disposition, 'applied')
    assert.equal(decide(plan, ended, met, {}, watched + 1).disposition, 'ended')
  })

  test('anything else changes nothing', () => {
    const inputs: Input[] = [
      ...([{ kind: 'cancel', reason: 'again' }, { kind: 'criterion', reason: 'x' }, { kind: 'supersede' }] as const),
      ...([
        { kind: 'hold' },
        { kind: 'resume' },
        { kind: 'move', plan },
        { kind: 'timer', timer: 'life', rev: 1 },
      ] as const),
      { kind: 'webhookResult', key: 'k', ok: true },
    ]
    for (const input of inputs) {
      assert.deepEqual(decide(plan, ended, input), { journey: ended, effects: [], disposition: 'ended' })
    }
    const withdrawn = legOf(plan, 'offer', { status: 'withdrawn' })
    assert.equal(decide(plan, ended, completed(plan, 'done'), { leg: withdrawn }).disposition, 'late')
  })
})
