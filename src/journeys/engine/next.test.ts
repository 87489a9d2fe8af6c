import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Effect, Input, Journey } from '../types.ts'
import { next } from './next.ts'
import {
  aPlan,
  begun,
  completed,
  customerId,
  dayMs,
  decide,
  deviceEnrolment,
  enrolment,
  eventId,
  hourMs,
  legOf,
  section,
  started,
  step,
  t0,
} from './testing/a-plan.ts'

const kindsOf = (effects: Effect[]) => effects.map(({ kind }) => kind)
const timersOf = ({ timers }: Journey) =>
  Object.fromEntries(Object.entries(timers).map(([kind, { dueAt }]) => [kind, dueAt]))

describe('none', () => {
  const plan = aPlan({ isDeviceEnrolled: true })

  test('enrol by device, where the frequency allows: on the device with generation 0, pinned, counted, with timers run and life', () => {
    const { journey, effects } = decide(plan, null, deviceEnrolment(), {}, t0 + 50)
    assert.deepEqual(
      [journey.status, journey.generation, journey.rev, journey.sectionKey, journey.trust],
      ['on_device', 0, 1, 'offer', 'device'],
    )
    assert.deepEqual([journey.experienceId, journey.versionNumber, journey.buildId], [1, 1, 'bld_1'])
    assert.deepEqual(kindsOf(effects), ['began', 'setTimer', 'countEnrolment', 'setTimer', 'bump'])
    assert.deepEqual(timersOf(journey), { run: t0 + 50 + 7 * dayMs, life: t0 + 50 + 30 * dayMs })
    assert.equal(journey.startedAt, t0 - 1000, 'as reported')
  })

  test('enrol by device, where the frequency refuses: refused, and nothing follows', () => {
    const { journey, effects } = decide(plan, null, deviceEnrolment(), { frequencyAllows: false })
    assert.deepEqual([journey.status, journey.endReason, journey.timers], ['ended', 'refused', {}])
    assert.deepEqual(kindsOf(effects), ['began'])
  })

  test('enrol by the server: runs from the entry, pinned to what is live, counted, with the timer life', () => {
    const { journey, effects } = decide(aPlan(), null, enrolment())
    assert.deepEqual(
      [journey.status, journey.generation, journey.trust, journey.sectionKey],
      ['armed', 1, 'server', 'offer'],
    )
    assert.deepEqual(kindsOf(effects), ['countEnrolment', 'setTimer', 'bump', 'arm', 'setTimer'])
    assert.deepEqual(timersOf(journey), { life: t0 + 30 * dayMs, arm: t0 + 7 * dayMs })
  })

  test('enrol by the server, where the frequency refuses: no journey', () => {
    const outcome = next(aPlan(), null, enrolment(), { frequencyAllows: false }, t0)
    assert.deepEqual(outcome, { journey: null, effects: [], disposition: 'frequency' })
  })

  test('trust begins as server for calls of a backend, and as device for what a client can make up', () => {
    const trustOf = (by: 'api' | 'server_event' | 'event' | 'segment') =>
      decide(aPlan(), null, enrolment({ by })).journey.trust
    assert.deepEqual(
      [trustOf('api'), trustOf('server_event'), trustOf('event'), trustOf('segment')],
      [...['server', 'server', 'device', 'device']],
    )
  })

  test('the author says how long it lives and how long a leg is offered', () => {
    const plan = aPlan({
      sections: { offer: section('offer', { armForMs: hourMs }) },
      policy: { lifetimeMs: 2 * hourMs },
    })
    assert.deepEqual(timersOf(begun(plan)), { life: t0 + 2 * hourMs, arm: t0 + hourMs })
  })

  test('enrolled again under the same id it is a duplicate', () => {
    const journey = begun(aPlan())
    assert.deepEqual(decide(aPlan(), journey, enrolment()), { journey, effects: [], disposition: 'duplicate' })
  })
})

describe('armed', () => {
  const plan = aPlan({
    sections: {
      offer: section('offer', { outcomes: { later: 'later', expired: 'tell', abandoned: 'again' } }),
      again: section('again'),
    },
    steps: {
      later: step({ type: 'delay', durationMs: hourMs }, { next: 'again' }),
      tell: step({ type: 'delay', durationMs: dayMs }, { next: null }),
    },
  })
  const armed = begun(plan)

  test('legStarted of its generation: on the device, disarmed, timer run in place of arm', () => {
    const { journey, effects, disposition } = decide(plan, armed, started(plan), { leg: legOf(plan, 'offer') })
    assert.deepEqual([disposition, journey.status, journey.rev], ['applied', 'on_device', 2])
    assert.deepEqual(kindsOf(effects), ['clearTimers', 'disarm', 'leg', 'setTimer', 'bump'])
    assert.deepEqual(Object.keys(journey.timers).toSorted(), ['life', 'run'])
  })

  test('legCompleted without a start: goes on as the plan says, trusts no more than a device', () => {
    const { journey, effects } = decide(plan, armed, completed(plan, 'later'), { leg: legOf(plan, 'offer') })
    assert.deepEqual([journey.status, journey.stepId, journey.trust], ['waiting', 'later', 'device'])
    assert.deepEqual(Object.keys(journey.timers).toSorted(), ['life', 'step'])
    const leg = effects.find((effect) => effect.kind === 'leg')
    assert.deepEqual(leg?.set, {
      ...{ startedAt: t0 + 5, completedAt: t0 + 10, completedEvent: eventId(3), status: 'completed', outcome: 'later' },
      outputs: { event: {}, responses: {} },
    })
  })

  test('timer arm: the leg is expired, and what follows it is a device’s silence', () => {
    const rev = armed.timers.arm?.rev ?? 0
    const { journey, effects } = decide(plan, armed, { kind: 'timer', timer: 'arm', rev }, {}, t0 + 7 * dayMs)
    assert.deepEqual([journey.status, journey.stepId, journey.trust], ['waiting', 'tell', 'device'])
    assert.deepEqual(kindsOf(effects), ['clearTimers', 'disarm', 'leg', 'setTimer', 'bump'])
  })

  test('a leg is closed by what closed it, also where the journey ends with it', () => {
    const last = aPlan()
    const rev = begun(last).timers.arm?.rev ?? 0
    const statusesOf = (input: Input) =>
      decide(last, begun(last), input, { leg: legOf(last, 'offer') }, t0 + 7 * dayMs).effects.flatMap((effect) =>
        effect.kind === 'leg' ? [effect.set.status] : [],
      )
    assert.deepEqual(statusesOf({ kind: 'timer', timer: 'arm', rev }), ['expired'])
    assert.deepEqual(statusesOf(completed(last, 'completed')), ['completed'])
  })

  test('move: armed anew under the next generation and pin', () => {
    const to = { ...plan, versionNumber: 2, buildId: 'bld_2' }
    const { journey, effects } = decide(plan, armed, { kind: 'move', plan: to })
    assert.deepEqual(
      [journey.status, journey.generation, journey.versionNumber, journey.buildId],
      ['armed', 2, 2, 'bld_2'],
    )
    assert.deepEqual(kindsOf(effects), ['clearTimers', 'disarm', 'leg', 'arm', 'setTimer', 'bump'])
  })

  test('move to a version without its section, with inputs that are not there, or of another Experience: unchanged', () => {
    const needs = { eventFields: [{ key: 'x', type: 'string', required: true }], responseFields: [] }
    const others = [
      { ...plan, buildId: 'bld_2', sections: {} },
      { ...plan, buildId: 'bld_2', sections: { offer: section('offer', { inputs: needs }) } },
      { ...plan, buildId: 'bld_2', experienceId: 2 },
    ]
    for (const to of others) {
      assert.deepEqual(decide(plan, armed, { kind: 'move', plan: to }), {
        journey: armed,
        effects: [],
        disposition: 'inert',
      })
    }
  })
})

describe('on_device', () => {
  const plan = aPlan({
    sections: { offer: section('offer', { outcomes: { abandoned: 'later', done: null } }) },
    steps: { later: step({ type: 'delay', durationMs: hourMs }, { next: 'offer' }) },
  })
  const onDevice = decide(plan, begun(plan), started(plan), { leg: legOf(plan, 'offer') }).journey
  const leg = legOf(plan, 'offer', { status: 'on_device', startedEvent: eventId(2) })

  test('legCompleted: its end', () => {
    const { journey } = decide(plan, onDevice, completed(plan, 'done'), { leg })
    assert.deepEqual([journey.status, journey.endReason, journey.timers], ['ended', 'completed', {}])
  })

  test('timer run: the leg is lost, and it goes on as if abandoned', () => {
    const rev = onDevice.timers.run?.rev ?? 0
    const { journey, effects } = decide(plan, onDevice, { kind: 'timer', timer: 'run', rev }, {}, t0 + 8 * dayMs)
    assert.deepEqual([journey.status, journey.stepId, journey.trust], ['waiting', 'later', 'device'])
    assert.deepEqual(effects[0], { kind: 'leg', generation: 1, set: { status: 'lost' } })
  })

  test('an outcome that the plan does not know counts as abandoned, and one that leads nowhere ends it', () => {
    const unknown = decide(plan, onDevice, completed(plan, 'invented'), { leg })
    assert.equal(unknown.journey.stepId, 'later')
    const set = unknown.effects.find((effect) => effect.kind === 'leg')?.set
    assert.deepEqual([set?.outcome, set?.note], ['abandoned', 'outcome_unknown'])
    assert.equal(decide(plan, onDevice, completed(plan, 'host_dismissed'), { leg }).journey.endReason, 'completed')
  })

  test('outputs that are declared and fit are kept, others dropped and noted', () => {
    const fields = {
      eventFields: [{ key: 'plan', type: 'string', required: false }],
      responseFields: [{ key: 'age', type: 'number', required: false, max: 99 }],
    }
    const telling = {
      ...plan,
      sections: { offer: section('offer', { outcomes: { abandoned: 'later' }, outputs: { abandoned: fields } }) },
    }
    const outputs = { event: { plan: 'pro', more: 1 }, responses: { age: 100 } }
    const { journey, effects } = decide(telling, onDevice, completed(plan, 'abandoned', { outputs }), { leg })
    assert.deepEqual(journey.context, { event: { plan: 'pro' }, responses: {} })
    assert.equal(effects.find((effect) => effect.kind === 'leg')?.set.note, 'output_dropped')
  })
})

test('a customer is who it is enrolled for', () => {
  assert.equal(begun(aPlan()).customerId, customerId)
})
