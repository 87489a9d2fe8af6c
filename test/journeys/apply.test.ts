import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import {
  completed,
  dayMs,
  deviceEnrolment,
  enrolment,
  eventId,
  hourMs,
  section,
  started,
  step,
  t0,
} from '../../src/journeys/engine/testing/a-plan.ts'
import { updateJourneys } from '../../src/journeys/store/journey-store.ts'
import { newJourneyId, openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool } = world
beforeEach(() => pool.query('delete from journey_timer'))

const twoLegs = {
  sections: { offer: section('offer', { outcomes: { done: 'wait' } }), again: section('again') },
  steps: { wait: step({ type: 'delay', durationMs: hourMs }, { next: 'again' }) },
}

test('a journey goes through its plan, each step a transition, each leg a run', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, twoLegs)
  const customerId = await world.customer(scope)
  const id = await world.start(scope, plan, customerId, t0)
  const told = [
    { journeyId: id, input: started(plan) },
    { journeyId: id, input: completed(plan, 'done') },
  ]
  const applied = await world.tell(scope, told, t0 + 100)
  assert.deepEqual(
    applied.map(({ disposition }) => disposition),
    ['applied', 'applied'],
  )
  assert.equal(await world.fire(t0 + 100 + hourMs), 1)
  const journey = await world.journey(scope, id)
  assert.deepEqual([journey.status, journey.sectionKey, journey.generation, journey.rev], ['armed', 'again', 2, 4])
  const { transitions, legs, timers, enrolments } = await world.rows(scope)
  assert.deepEqual(
    transitions.map(({ rev, from_state, to_state }) => [rev, from_state, to_state]),
    [
      [1, 'none', 'armed:offer'],
      [2, 'armed:offer', 'on_device:offer'],
      [3, 'on_device:offer', 'waiting:wait'],
      [4, 'waiting:wait', 'armed:again'],
    ],
  )
  assert.deepEqual(
    legs.map(({ generation, status, outcome, started_at_ms, completed_at_ms }) => [
      ...[generation, status, outcome, started_at_ms, completed_at_ms],
    ]),
    [
      [1, 'completed', 'done', BigInt(t0 + 5), BigInt(t0 + 10)],
      [2, 'armed', null, null, null],
    ],
  )
  assert.deepEqual(
    timers.map(({ kind, due_at_ms }) => [kind, due_at_ms]),
    [
      ['arm', BigInt(t0 + 100 + hourMs + 7 * dayMs)],
      ['life', BigInt(t0 + 30 * dayMs)],
    ],
  )
  assert.deepEqual([enrolments[0]?.count, enrolments[0]?.last_enrolled_at_ms], [1, BigInt(t0)])
  const [rev] = await pool.query<{ rev: bigint }>('select rev from customer_rev where customer_id = $1', [customerId])
  assert.ok((rev?.rev ?? 0n) >= 3n, 'its profile looks different each time')
})

test('1 the same inputs again change nothing: not state, not effects, not the outbox', async () => {
  const scope = await world.scope()
  const hook = { type: 'webhook', endpointId: 'whe_1', body: {}, timeoutMs: 1000, attempts: 2 }
  const plan = await world.plan(scope, {
    ...{ isDeviceEnrolled: true, sections: { offer: section('offer', { outcomes: { done: 'say' } }) } },
    steps: {
      say: step({ type: 'emit_event', eventName: 'said' }, { next: 'hook' }),
      hook: step(hook, { success: null, failure: null }),
    },
  })
  const customerId = await world.customer(scope)
  const id = newJourneyId()
  const enrol = { journeyId: id, plan, input: deviceEnrolment({ journeyId: id, customerId }) }
  const done = (event: number) => {
    const input = completed(plan, 'done', { generation: 0, eventId: eventId(event) })
    return { journeyId: id, input }
  }
  await world.tell(scope, [enrol, done(3)], t0)
  const before = await world.rows(scope)
  assert.deepEqual([before.outbox.length, before.events.length], [1, 1])
  const again = await world.tell(
    scope,
    [enrol, done(3), done(4), { journeyId: id, input: started(plan, 'offer', 0) }],
    t0 + 5,
  )
  assert.deepEqual(
    again.map(({ disposition }) => disposition),
    ['duplicate', 'duplicate', 'duplicate', 'duplicate'],
  )
  assert.deepEqual(await world.rows(scope), before)
  const counted = await pool.query<{ count: bigint }>(
    `select count from journey_disposition where scope_id = $1 and disposition = 'duplicate'`,
    [scope.scopeId],
  )
  assert.deepEqual(counted, [{ count: 4n }])
})

test('6 what counts is counted under one lock, whatever comes at once', async () => {
  const scope = await world.scope()
  const window = { type: 'once_per_window', window: { amount: 1, unit: 'hour' } } as const
  const plan = await world.plan(scope, { policy: { entry: { trigger: { type: 'api' }, frequency: window } } })
  const customerId = await world.customer(scope)
  const one = (at: number) => {
    const journeyId = newJourneyId()
    return { journeyId, plan, input: enrolment({ journeyId, customerId, at, occurrence: journeyId }) }
  }
  const times = [0, 10, hourMs - 1, hourMs, 2 * hourMs, 3 * hourMs - 1].map((ms) => t0 + ms)
  const answers = await Promise.all(times.map((at) => world.tell(scope, [one(at)], t0 + dayMs)))
  const batch = await world.tell(scope, [one(t0 + 10 * hourMs), one(t0 + 10 * hourMs + 5)], t0 + dayMs)
  assert.deepEqual(
    batch.map(({ disposition }) => disposition),
    ['applied', 'frequency'],
  )
  const { enrolments } = await world.rows(scope)
  const [row] = enrolments
  const kept = (row?.times ?? []).map(Number).toSorted((a, b) => a - b)
  for (const [i, at] of kept.entries()) if (i > 0) assert.ok(at - (kept[i - 1] ?? 0) >= hourMs, 'never within a window')
  const applied = answers.flat().filter(({ disposition }) => disposition === 'applied').length + 1
  assert.deepEqual([row?.count, kept.length], [applied, applied])
})

test('grants, events and properties of steps are made in the transaction that decides them', async () => {
  const scope = await world.scope()
  await world.feature(scope, 'credits')
  const plan = await world.plan(scope, {
    entry: 'grant',
    steps: {
      grant: step({ type: 'grant_feature', featureId: 'credits', amount: 50 }, { next: 'set' }),
      set: step({ type: 'set_properties', set: { tier: 'gold' }, increment: { gifts: 1 } }, { next: 'say' }),
      say: step({ type: 'emit_event', eventName: 'gift_given', properties: { n: 50 } }, { next: null }),
    },
  })
  const customerId = await world.customer(scope, 'u')
  const id = await world.start(scope, plan, customerId, t0)
  const { grants, events } = await world.rows(scope)
  assert.deepEqual(
    grants.map(({ origin, source_ref, amount }) => [origin, source_ref, amount]),
    [['journey', `jrn:${id}:1`, 50n]],
  )
  const payloads = events.map(
    ({ payload }) => JSON.parse(String(payload)) as { event: string; trust: string; properties: object },
  )
  const said = payloads.find(({ event }) => event === 'gift_given')
  assert.deepEqual([said?.trust, said?.properties], ['server', { n: 50 }])
  const [customer] = await pool.query<{ properties: object }>('select properties from customer where id = $1', [
    customerId,
  ])
  assert.deepEqual(customer?.properties, { tier: 'gold', gifts: 1 })
  assert.equal((await world.journey(scope, id)).endReason, 'completed')
})

test('properties that journeys of one batch set are each written, those of one customer one after the other', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'set',
    steps: { set: step({ type: 'set_properties', increment: { gifts: 1 } }, { next: null }) },
  })
  const customers = [await world.customer(scope), await world.customer(scope), await world.customer(scope)]
  const told = [0, 1, 2, 0, 0].map((i) => {
    const journeyId = newJourneyId()
    const customerId = customers[i] ?? ''
    return { journeyId, plan, input: enrolment({ journeyId, customerId, at: t0, occurrence: journeyId }) }
  })
  await world.tell(scope, told, t0)
  const rows = await pool.query<{ id: string; gifts: number }>(
    `select id, (properties ->> 'gifts')::int as gifts from customer where scope_id = $1`,
    [scope.scopeId],
  )
  const gifts = new Map(rows.map((row) => [row.id, row.gifts]))
  assert.deepEqual(
    customers.map((id) => gifts.get(id)),
    [3, 1, 1],
  )
})

test('20 no report of a device leads to a grant', async () => {
  const scope = await world.scope()
  await world.feature(scope, 'credits')
  const plan = await world.plan(scope, {
    sections: { offer: section('offer', { outcomes: { done: 'grant', expired: 'grant' } }) },
    steps: { grant: step({ type: 'grant_feature', featureId: 'credits', amount: 50 }, { next: null }) },
  })
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  const silent = await world.start(scope, plan, await world.customer(scope), t0)
  await world.tell(scope, [{ journeyId: id, input: completed(plan, 'done') }], t0 + 20)
  await world.fire(t0 + 8 * dayMs)
  for (const one of [id, silent]) {
    const { endReason, endDetail } = await world.journey(scope, one)
    assert.deepEqual([endReason, endDetail], ['failed', 'untrusted_grant'])
  }
  assert.deepEqual((await world.rows(scope)).grants, [])
})

test('3 an ended journey has no timer, subscription or offered leg', async () => {
  const scope = await world.scope()
  const wait = { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: dayMs }
  const waiting = await world.plan(scope, { entry: 'w', steps: { w: step(wait, { matched: null, timeout: null }) } })
  const armed = await world.plan(scope)
  const customerId = await world.customer(scope)
  const ids = [await world.start(scope, waiting, customerId, t0), await world.start(scope, armed, customerId, t0)]
  assert.equal((await world.rows(scope)).subscriptions.length, 1)
  await world.tell(
    scope,
    ids.map((journeyId) => ({ journeyId, input: { kind: 'cancel', reason: 'asked' } })),
    t0 + 1,
  )
  const { timers, subscriptions, legs, journeys } = await world.rows(scope)
  assert.deepEqual([timers, subscriptions, legs.map(({ status }) => status)], [[], [], ['withdrawn']])
  assert.deepEqual(
    journeys.map(({ status, end_reason }) => [status, end_reason]),
    [
      ['ended', 'cancelled'],
      ['ended', 'cancelled'],
    ],
  )
})

test('of two that change a journey at once the second sees what the first did', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, twoLegs)
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  const input = completed(plan, 'done')
  const both = await Promise.all([1, 2].map(() => world.tell(scope, [{ journeyId: id, input }], t0 + 20)))
  assert.deepEqual(
    both
      .flat()
      .map(({ disposition }) => disposition)
      .toSorted(),
    ['applied', 'duplicate'],
  )
  assert.equal((await world.journey(scope, id)).rev, 2)
})

test('a change that saw another rev writes nothing', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, twoLegs)
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  const journey = { ...(await world.journey(scope, id)), rev: 2, trust: 'device' as const }
  const { scopeId } = scope
  const write = (seenRev: number) => pool.connected((client) => updateJourneys(client, [{ scopeId, journey, seenRev }]))
  assert.equal(await write(2), 0)
  assert.deepEqual((await world.journey(scope, id)).rev, 1)
  assert.equal(await write(1), 1)
})

test('a journey on hold keeps its timers parked', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'd',
    steps: { d: step({ type: 'delay', durationMs: hourMs }, { next: null }) },
  })
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  await world.tell(scope, [{ journeyId: id, input: { kind: 'hold' } }], t0 + 1)
  assert.equal(await world.fire(t0 + 40 * dayMs), 0)
  await world.tell(scope, [{ journeyId: id, input: { kind: 'resume' } }], t0 + dayMs)
  assert.equal(await world.fire(t0 + dayMs + 60_000), 1)
  assert.equal((await world.journey(scope, id)).endReason, 'completed')
})
