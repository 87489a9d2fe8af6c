import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect } from '../types.ts'
import { next } from './next.ts'
import { aPlan, begun, dayMs, decide, enrolment, hourMs, journeyId, section, step, t0 } from './testing/a-plan.ts'

const emit = (n: number, to: string | null) => step({ type: 'emit_event', eventName: `e${n}` }, { next: to })

test('26 after 64 steps at once a journey rests for a second and goes on there', () => {
  const chain = (length: number) =>
    aPlan({
      entry: 's0',
      steps: Object.fromEntries(
        Array.from({ length }, (_, n) => [`s${n}`, emit(n, n + 1 < length ? `s${n + 1}` : 'offer')]),
      ),
    })
  assert.equal(begun(chain(64)).status, 'armed')
  const plan = chain(65)
  const { journey, effects } = decide(plan, null, enrolment())
  assert.deepEqual([journey.status, journey.stepId, journey.timers.step?.dueAt], ['waiting', 's64', t0 + 1000])
  assert.equal(effects.filter(({ kind }) => kind === 'append').length, 64)
  const rested = decide(plan, journey, { kind: 'timer', timer: 'step', rev: 1 }, {}, t0 + 1000)
  assert.deepEqual([rested.journey.status, rested.effects.filter(({ kind }) => kind === 'append').length], ['armed', 1])
})

test('after 1,000 transitions a journey fails with step_limit', () => {
  const plan = aPlan({ entry: 'd', steps: { d: step({ type: 'delay', durationMs: 1000 }, { next: 'd' }) } })
  const journey = { ...begun(plan), rev: 999, timers: { step: { rev: 999, dueAt: t0 } } }
  const thousandth = decide(plan, journey, { kind: 'timer', timer: 'step', rev: 999 }).journey
  assert.deepEqual([thousandth.status, thousandth.rev], ['waiting', 1000])
  const over = decide(plan, thousandth, { kind: 'timer', timer: 'step', rev: 1000 }, {}, t0 + 1000)
  assert.deepEqual([over.journey.endReason, over.journey.endDetail], ['failed', 'step_limit'])
  assert.ok(over.effects.some((effect) => effect.kind === 'alert' && effect.what === 'step_limit'))
})

test('a delay is due at a fixed time: a duration, a time in a property or field, or the next window', () => {
  const dueOf = (action: object, facts = {}, context = { event: {}, responses: {} }) => {
    const plan = aPlan({ entry: 'd', steps: { d: step({ type: 'delay', ...action }, { next: 'offer' }) } })
    const journey = decide(plan, null, enrolment({ context }), facts).journey
    return journey.status === 'waiting' ? journey.timers.step?.dueAt : journey.status
  }
  const until = { until: { property: 'renews_at' } }
  const properties = (value: string | number) => ({ customer: { properties: { renews_at: value } } })
  assert.equal(dueOf({ durationMs: hourMs }), t0 + hourMs)
  assert.equal(dueOf(until, properties(new Date(t0 + dayMs).toISOString())), t0 + dayMs)
  assert.equal(dueOf(until, properties(t0 + dayMs)), t0 + dayMs)
  assert.equal(dueOf(until, properties('soon')), 'armed')
  assert.equal(dueOf(until, properties(t0 - 1)), 'armed', 'a time that has passed')
  assert.equal(dueOf(until, properties(t0 + 100 * dayMs)), t0 + 90 * dayMs, 'at most 90 days')
  assert.equal(dueOf({ until: { field: 'event.at' } }, {}, { event: { at: t0 + 5 }, responses: {} }), t0 + 5)
  const window = { startTime: '18:00', endTime: '20:00', timezone: 'Europe/Berlin', daysOfWeek: [] }
  assert.equal(dueOf({ window }), Date.UTC(2026, 10, 20, 17))
  assert.equal(dueOf({ window: { ...window, startTime: '09:00', endTime: '11:00' } }), 'armed', 'it is open')
})

test('a delay until a property asks for the customer', () => {
  const plan = aPlan({ entry: 'd', steps: { d: step({ type: 'delay', until: { property: 'x' } }, { next: null }) } })
  assert.deepEqual(next(plan, null, enrolment(), { frequencyAllows: true }, t0), { needs: { customer: true } })
})

test('a branch takes the first that is true, unknown never, and trusts no more than what it looked at', () => {
  const is = (plan: string) => ({
    ir_version: 1,
    expr: { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: plan } },
  })
  const action = {
    type: 'branch',
    branches: [
      { id: 'pro', condition: is('pro') },
      { id: 'free', condition: is('free') },
    ],
  }
  const outlets = { pro: 'offer', free: 'other', default: null }
  const plan = aPlan({
    entry: 'b',
    sections: { offer: section('offer'), other: section('other') },
    steps: { b: step(action, outlets, true) },
  })
  const of = (value: string) => decide(plan, null, enrolment(), { customer: { properties: { plan: value } } }).journey
  assert.deepEqual([of('pro').sectionKey, of('free').sectionKey, of('x').endReason], ['offer', 'other', 'completed'])
  assert.equal(of('pro').trust, 'device')
  assert.equal(decide(plan, null, enrolment(), { customer: {} }).journey.endReason, 'completed', 'unknown is default')
})

test('what a step writes to properties a later branch of the same run sees', () => {
  const expr = { type: 'User', op: 'eq', key: 'n', value: { type: 'Number', value: 3 } }
  const plan = aPlan({
    entry: 's',
    steps: {
      s: step({ type: 'set_properties', increment: { n: 1 } }, { next: 'b' }),
      b: step(
        { type: 'branch', branches: [{ id: 'yes', condition: { ir_version: 1, expr } }] },
        { yes: 'offer', default: null },
      ),
    },
  })
  assert.equal(decide(plan, null, enrolment(), { customer: { properties: { n: 2 } } }).journey.status, 'armed')
})

test('a split runs the assigned variant and records it; without one the fallback, so marked', () => {
  const variants = [
    { id: 'a', isHoldout: false },
    { id: 'b', isHoldout: true },
  ]
  const action = { type: 'experiment_split', experimentId: 'xp_1', fallbackVariantId: 'a', variants }
  const plan = aPlan({ entry: 'x', steps: { x: step(action, { a: 'offer', b: null }) } })
  assert.deepEqual(next(plan, null, enrolment(), { frequencyAllows: true }, t0), { needs: { assignments: ['xp_1'] } })
  const b = decide(plan, null, enrolment(), { assignments: { xp_1: { variantId: 'b', isHoldout: true } } })
  const exposure = (effects: Effect[]) => effects.find(({ kind }) => kind === 'exposure')
  assert.equal(b.journey.endReason, 'completed')
  assert.deepEqual(exposure(b.effects), {
    ...{ kind: 'exposure', experimentId: 'xp_1', variantId: 'b', isHoldout: true, assigned: true },
  })
  for (const assigned of [null, { variantId: 'gone', isHoldout: true }]) {
    const none = decide(plan, null, enrolment(), { assignments: { xp_1: assigned } })
    assert.equal(none.journey.status, 'armed')
    assert.deepEqual(exposure(none.effects), {
      ...{ kind: 'exposure', experimentId: 'xp_1', variantId: 'a', isHoldout: false, assigned: false },
    })
  }
})

test('a grant names its journey and rev, once each', () => {
  const grant = { type: 'grant_feature', featureId: 'credits', amount: 50, expiresAfterMs: dayMs }
  const plan = aPlan({
    entry: 'g',
    steps: { g: step(grant, { next: 'h' }), h: step({ ...grant, amount: 1 }, { next: null }) },
  })
  assert.deepEqual(next(plan, null, enrolment(), { frequencyAllows: true }, t0), { needs: { grantable: ['credits'] } })
  const { effects } = decide(plan, null, enrolment(), { grantable: { credits: true } })
  const grants = effects.filter((effect) => effect.kind === 'grant')
  assert.deepEqual(
    grants.map(({ operationId, amount, expiresAt }) => [operationId, amount, expiresAt]),
    [
      [`jrn:${journeyId}:1`, 50, t0 + dayMs],
      [`jrn:${journeyId}:1:1`, 1, t0 + dayMs],
    ],
  )
  const gone = decide(plan, null, enrolment(), { grantable: { credits: false } })
  assert.deepEqual([gone.journey.endReason, gone.journey.endDetail], ['failed', 'feature_missing: credits'])
})

test('20 a grant after anything a client could make up fails the journey, with an alert', () => {
  const plan = aPlan({
    entry: 'g',
    steps: { g: step({ type: 'grant_feature', featureId: 'c', amount: 1 }, { next: null }) },
  })
  const { journey, effects } = decide(plan, null, enrolment({ by: 'event' }), { grantable: { c: true } })
  assert.deepEqual([journey.endReason, journey.endDetail], ['failed', 'untrusted_grant'])
  assert.ok(effects.some((effect) => effect.kind === 'alert' && effect.what === 'untrusted_grant'))
  assert.ok(!effects.some(({ kind }) => kind === 'grant'))
})

test('a grant for an entity takes it from its field, and fails without one', () => {
  const grant = { type: 'grant_feature', featureId: 'c', amount: 1, entityField: 'event.seat' }
  const plan = aPlan({ entry: 'g', steps: { g: step(grant, { next: null }) } })
  const of = (event: { seat?: string }) =>
    decide(plan, null, enrolment({ context: { event, responses: {} } }), { grantable: { c: true } })
  const effect = of({ seat: 's1' }).effects.find(({ kind }) => kind === 'grant')
  assert.equal(effect?.kind === 'grant' && effect.entityId, 's1')
  assert.equal(of({}).journey.endDetail, 'entity_missing: event.seat')
})

test('values come from fields and properties where they are named, and an event has the trust of its journey', () => {
  const properties = {
    a: { type: 'Event.Field', key: 'x' },
    b: [
      { type: 'Response.Field', key: 'none' },
      { type: 'Customer.Field', key: 'name' },
    ],
    c: { type: 'Event.Field', key: 'x', more: 1 },
  }
  const plan = aPlan({
    entry: 'e',
    steps: { e: step({ type: 'emit_event', eventName: 'done', properties }, { next: null }) },
  })
  const context = { event: { x: 1 }, responses: {} }
  const { effects } = decide(plan, null, enrolment({ context }), { customer: { properties: { name: 'N' } } })
  assert.deepEqual(
    effects.find(({ kind }) => kind === 'append'),
    {
      ...{ kind: 'append', what: 'event', index: 0, eventName: 'done', trust: 'server' },
      properties: { a: 1, b: [null, 'N'], c: { type: 'Event.Field', key: 'x', more: 1 } },
    },
  )
})

test('exit ends it with its reason', () => {
  const plan = aPlan({ entry: 'e', steps: { e: step({ type: 'exit', reason: 'enough' }) } })
  const { journey } = decide(plan, null, enrolment())
  assert.deepEqual([journey.endReason, journey.endDetail], ['exited', 'enough'])
})

test('a leg is not offered without its required inputs: the journey fails', () => {
  const inputs = { eventFields: [{ key: 'plan', type: 'string', required: true }], responseFields: [] }
  const plan = aPlan({ sections: { offer: section('offer', { inputs }) } })
  const { journey } = decide(plan, null, enrolment())
  assert.deepEqual([journey.endReason, journey.endDetail], ['failed', 'input_missing: event.plan'])
})
