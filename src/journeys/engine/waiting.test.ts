import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Effect, Input, Journey } from '../types.ts'
import { aPlan, begun, dayMs, decide, enrolment, eventId, hourMs, journeyId, step, t0 } from './testing/a-plan.ts'

const kindsOf = (effects: Effect[]) => effects.map(({ kind }) => kind)
const timersOf = ({ timers }: Journey) =>
  Object.fromEntries(Object.entries(timers).map(([kind, { dueAt }]) => [kind, dueAt]))

describe('waiting', () => {
  const waits = { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: dayMs }
  const fields = { event: { amount: { type: 'number', required: false } } } as const
  const wait = (more: object = {}) =>
    aPlan({
      entry: 'wait',
      fields,
      steps: {
        wait: step({ ...waits, ...more }, { matched: 'offer', timeout: 'late' }),
        late: step({ type: 'delay', durationMs: hourMs }, { next: null }),
      },
    })
  const paid = (more: object = {}, trust: 'device' | 'server' = 'device'): Input => ({
    kind: 'event',
    event: {
      ...{ uuid: eventId(9), name: 'paid', distinctId: 'u', at: t0, receivedAt: t0 + 1, properties: {} },
      ...more,
    },
    trust,
  })

  test('wait_for_event subscribes, and its timeout comes after what the lane has to tell', () => {
    const { journey, effects } = decide(wait(), null, enrolment())
    assert.deepEqual([journey.status, journey.stepId, timersOf(journey).step], ['waiting', 'wait', t0 + dayMs])
    assert.deepEqual(
      effects.find(({ kind }) => kind === 'subscribe'),
      { kind: 'subscribe', eventName: 'paid' },
    )
    assert.ok(effects.some((effect) => effect.kind === 'setTimer' && effect.timer === 'step' && effect.afterLane))
  })

  test('a matching event: goes on, unsubscribes, keeps declared fields, takes the event’s trust', () => {
    const plan = wait()
    const { journey, effects } = decide(plan, begun(plan), paid({ properties: { amount: 3, other: 1 } }))
    assert.deepEqual([journey.status, journey.trust, journey.context.event], ['armed', 'device', { amount: 3 }])
    assert.deepEqual(kindsOf(effects), ['unsubscribe', 'clearTimers', 'bump', 'arm', 'setTimer'])
    assert.equal(decide(plan, begun(plan), paid({}, 'server')).journey.trust, 'server')
  })

  test('a wait that is entered by advancing a delay hears of events from then on', () => {
    const steps = {
      day: step({ type: 'delay', durationMs: dayMs }, { next: 'wait' }),
      wait: step(waits, { matched: null, timeout: null }),
    }
    const plan = aPlan({ entry: 'day', fields, steps })
    const advance: Input = { kind: 'timer', timer: 'step', rev: 1, advanced: true }
    const { journey } = decide(plan, begun(plan), advance, {}, t0 + hourMs)
    assert.deepEqual([journey.stepId, timersOf(journey).step], ['wait', t0 + hourMs + dayMs])
    const heard = decide(plan, journey, paid({ receivedAt: t0 + hourMs }), {}, t0 + hourMs)
    assert.equal(heard.journey.status, 'ended')
  })

  test('another event, one of a client where the server’s is waited for, one too late or before the wait: unchanged', () => {
    const plan = wait()
    const waiting = begun(plan)
    const inert = (plan: ReturnType<typeof wait>, journey: Journey, input: Input) =>
      assert.deepEqual(decide(plan, journey, input), { journey, effects: [], disposition: 'inert' })
    inert(plan, waiting, paid({ name: 'other' }))
    inert(wait({ trust: 'server' }), begun(wait({ trust: 'server' })), paid())
    inert(plan, waiting, paid({ receivedAt: t0 + dayMs + 1 }))
    inert(plan, waiting, paid({ receivedAt: t0 - 1 }))
    assert.equal(
      decide(plan, waiting, paid({ receivedAt: t0 + dayMs })).disposition,
      'applied',
      'the last moment counts',
    )
  })

  test('correlation: the event’s key equals the field, and both are there', () => {
    const plan = wait({ correlate: { eventKey: 'order', field: 'event.amount' } })
    const waiting = begun(plan, {}, enrolment({ context: { event: { amount: 7 }, responses: {} } }))
    assert.equal(decide(plan, waiting, paid({ properties: { order: 8 } })).disposition, 'inert')
    assert.equal(decide(plan, waiting, paid()).disposition, 'inert')
    assert.equal(decide(plan, waiting, paid({ properties: { order: 7 } })).disposition, 'applied')
    assert.equal(decide(plan, begun(plan), paid({ properties: { order: 7 } })).disposition, 'inert')
  })

  test('a condition that is not true leaves it waiting', () => {
    const above = { type: 'Event', op: 'gt', key: 'amount', value: { type: 'Number', value: 5 } }
    const plan = wait({ condition: { ir_version: 1, expr: above } })
    assert.equal(decide(plan, begun(plan), paid({ properties: { amount: 5 } })).disposition, 'inert')
    assert.equal(decide(plan, begun(plan), paid({ properties: { amount: 6 } })).disposition, 'applied')
  })

  test('timer step of a wait: goes on with timeout; silence is as good as a client’s word', () => {
    const plan = wait()
    const { journey } = decide(plan, begun(plan), { kind: 'timer', timer: 'step', rev: 1 }, {}, t0 + dayMs)
    assert.deepEqual([journey.stepId, journey.trust], ['late', 'device'])
  })

  test('timer step of a delay: goes on with next', () => {
    const plan = aPlan({ entry: 'd', steps: { d: step({ type: 'delay', durationMs: hourMs }, { next: 'offer' }) } })
    const { journey } = decide(plan, begun(plan), { kind: 'timer', timer: 'step', rev: 1 }, {}, t0 + hourMs)
    assert.deepEqual([journey.status, journey.trust], ['armed', 'server'])
  })

  const hook = { type: 'webhook', endpointId: 'whe_1', body: { a: 1 }, timeoutMs: 1000, attempts: 3 }
  const hooked = (more: object = {}) =>
    aPlan({ entry: 'h', fields, steps: { h: step({ ...hook, ...more }, { success: 'offer', failure: null }) } })

  test('a webhook waits for its result, saves what fits, and a gate makes it the server’s word', () => {
    const plan = hooked({ gate: true, save: { 'event.amount': '/order/amount' } })
    const { journey, effects } = decide(plan, null, enrolment({ by: 'event' }))
    const key = `${journeyId}:1:0`
    assert.deepEqual(
      effects.find(({ kind }) => kind === 'webhook'),
      { kind: 'webhook', index: 0, key, endpointId: 'whe_1', body: { a: 1 }, timeoutMs: 1000, attempts: 3 },
    )
    const after = decide(plan, journey, {
      kind: 'webhookResult',
      key,
      ok: true,
      body: { order: { amount: 12 } },
    }).journey
    assert.deepEqual([after.status, after.trust, after.context.event], ['armed', 'server', { amount: 12 }])
  })

  test('a failed webhook goes on with failure, trusted as before', () => {
    const plan = hooked({ gate: true })
    const waiting = begun(plan, {}, enrolment({ by: 'event' }))
    const { journey } = decide(plan, waiting, { kind: 'webhookResult', key: `${journeyId}:1:0`, ok: false })
    assert.deepEqual([journey.status, journey.endReason, journey.trust], ['ended', 'completed', 'device'])
  })
})
