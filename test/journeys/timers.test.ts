import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { Pool } from '../../src/db/pool.ts'
import { insertFacts } from '../../src/events/facts-store.ts'
import { completed, dayMs, eventId, hourMs, section, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { journeySettings } from '../../src/journeys/store/journey-store.ts'
import { runJourneys } from '../../src/journeys/timers/run.ts'
import { eligibilityLookMs, journeyTriesMax } from '../../src/kernel/limits.ts'
import { openJourneys, services } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool, database } = world
beforeEach(() => pool.query('delete from journey_timer'))

const ticking = {
  entry: 'd',
  steps: {
    d: step({ type: 'delay', durationMs: hourMs }, { next: 'e' }),
    e: step({ type: 'delay', durationMs: hourMs }, { next: null }),
  },
}
const wait = { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: dayMs }
const waiting = {
  entry: 'w',
  steps: { w: step(wait, { matched: 'offer', timeout: 'late' }), late: step({ type: 'exit', reason: 'late' }) },
}

test('17 no timer fires before it is due, and at that moment it does', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, ticking)
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  assert.equal(await world.fire(t0 + hourMs - 1), 0)
  assert.equal(await world.fire(t0 + hourMs), 1)
  assert.equal((await world.journey(scope, id)).stepId, 'e')
})

test('17 with workers running each timer fires within moments of its time', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'd',
    steps: { d: step({ type: 'delay', durationMs: 50 }, { next: null }) },
  })
  const stop = new AbortController()
  const common = { url: database.url, services, turns: [], sealingKey: Buffer.alloc(32), webhooksToPrivate: false }
  const workers = [1, 2].map(() => runJourneys({ ...common, signal: stop.signal }))
  const now = Date.now()
  const ids = await Promise.all(
    [1, 2, 3, 4].map(async () => world.start(scope, plan, await world.customer(scope), now)),
  )
  const isOver = async () =>
    (await Promise.all(ids.map((id) => world.journey(scope, id)))).every(({ status }) => status === 'ended')
  while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 10))
  const { transitions } = await world.rows(scope)
  for (const { rev, at_ms } of transitions) {
    if (rev !== 2) continue
    const lag = Number(at_ms) - now - 50
    assert.ok(lag >= 0 && lag < 3000, `${lag} ms`)
  }
  stop.abort()
  await Promise.all(workers)
})

test('eligibility that time alone takes away ends a journey at the next look, and no look before that changes anything', async () => {
  const scope = await world.scope()
  const expr = { type: 'User', op: 'gt', key: 'trial_ends', value: { type: 'Time.Now' } }
  const entry = {
    trigger: { type: 'api' },
    frequency: { type: 'every_match' },
    eligibility: { ir_version: 1, expr },
  } as const
  const plan = await world.plan(scope, { policy: { entry, exitWhenAny: [{ type: 'eligibility_lost' }] } })
  const heedless = await world.plan(scope, { policy: { entry } })
  const ends = t0 + hourMs + 1
  const customerId = await world.customer(scope, 'ada', { trial_ends: ends / 1000 })
  const [id, other] = [
    await world.start(scope, plan, customerId, t0),
    await world.start(scope, heedless, customerId, t0),
  ]
  assert.equal(await world.fire(t0 + eligibilityLookMs - 1), 0)
  for (let now = t0 + eligibilityLookMs; now < ends; now += eligibilityLookMs) assert.equal(await world.fire(now), 1)
  const before = await world.journey(scope, id)
  assert.deepEqual([before.status, before.rev, before.timers.life?.dueAt], ['armed', 1, before.expiresAt])
  assert.equal(await world.fire(ends + eligibilityLookMs), 1)
  const { status, endReason, endDetail } = await world.journey(scope, id)
  assert.deepEqual([status, endReason, endDetail], ['ended', 'exited', 'eligibility_lost'])
  const { legs } = await world.rows(scope)
  const howIs = (journeyId: string) => legs.find(({ journey_id: own }) => own === journeyId)?.status
  assert.deepEqual([howIs(id), howIs(other)], ['withdrawn', 'armed'])
})

test('several workers fire each timer once, and every rev is as expected', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, ticking)
  const customerId = await world.customer(scope)
  const ids: string[] = []
  for (let n = 0; n < 300; n++) ids.push(await world.start(scope, plan, customerId, t0))
  const pools = [1, 2, 3].map(() => new Pool(database.url, { name: 'worker', max: 1, settings: journeySettings }))
  await Promise.all(
    pools.map(async (own) => {
      for (const now of [t0 + hourMs, t0 + 2 * hourMs]) {
        for (let left = 20; left > 0; left--) {
          try {
            await world.fire(now, own)
          } catch (error) {
            // Two workers may meet at the customer's row: one of them goes again.
            assert.ok(String(error).includes('deadlock') || String(error).includes('changed'), String(error))
          }
        }
      }
    }),
  )
  while ((await world.fire(t0 + 2 * hourMs)) > 0);
  for (const own of pools) await own[Symbol.asyncDispose]()
  const { journeys, transitions } = await world.rows(scope)
  assert.deepEqual([...new Set(journeys.map(({ status, rev }) => JSON.stringify([status, rev])))], ['["ended",3]'])
  assert.equal(transitions.length, 3 * ids.length)
})

test('a timer whose journey somebody holds waits for its turn', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, ticking)
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  await pool.transaction(async (tx) => {
    await tx.query('select id from journey where id = $1 for update', [id])
    assert.equal(await world.fire(t0 + hourMs), 1)
    assert.equal((await world.rows(scope)).timers.length, 2, 'it is back on the list')
  })
  assert.equal(await world.fire(t0 + hourMs + 1000), 1)
  assert.equal((await world.journey(scope, id)).stepId, 'e')
})

test('one that cannot be applied stops no other: tried again, later each time, and set aside in the end', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, ticking)
  const customerId = await world.customer(scope)
  const ids: string[] = []
  for (let n = 0; n < 9; n++) ids.push(await world.start(scope, plan, customerId, t0))
  const [poisoned = ''] = ids.slice(4)
  await pool.query(
    `update journey set pending = '{"wait":null,"timers":' || (pending::jsonb ->> 'timers') || '}' where id = $1`,
    [poisoned],
  )
  let now = t0 + hourMs
  await world.fire(now)
  const states = await Promise.all(ids.map((id) => world.journey(scope, id)))
  assert.deepEqual(
    states.map(({ stepId }) => stepId),
    ids.map((id) => (id === poisoned ? 'd' : 'e')),
  )
  const looks: number[] = []
  for (let tries = 1; tries < journeyTriesMax; tries++) {
    const timer = (await world.rows(scope)).timers.find(
      ({ journey_id, kind }) => journey_id === poisoned && kind === 'step',
    )
    assert.equal(timer?.attempts, tries)
    looks.push(Number(timer?.look_at_ms) - now)
    now = Number(timer?.look_at_ms)
    await world.fire(now)
  }
  assert.deepEqual(looks, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000])
  const aside = await pool.query<{ source: string; journey_id: string }>(
    'select source, journey_id from journey_quarantine where scope_id = $1',
    [scope.scopeId],
  )
  assert.deepEqual(aside, [{ source: 'timer', journey_id: poisoned }])
  assert.ok(
    !(await world.rows(scope)).timers.some(({ journey_id, kind }) => journey_id === poisoned && kind === 'step'),
  )
})

test('18 a wait times out only after lane and inbox have passed what was received until then', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, waiting)
  const customerId = await world.customer(scope)
  const now = Date.now()
  const id = await world.start(scope, plan, customerId, now - dayMs)
  const due = now
  const isWaiting = async () => (await world.journey(scope, id)).status === 'waiting'
  await pool.query(
    `insert into journey_inbox (scope_id, customer_id, pos, n, kind, received_at_ms, body) values ($1, $2, 1, 0, 'event', $3, '{}')`,
    [scope.scopeId, customerId, due],
  )
  assert.equal(await world.fire(due + 10), 1)
  assert.ok(await isWaiting(), 'an event received in time waits in the inbox')
  const event = { uuid: eventId(1), name: 'paid', distinctId: 'u', at: due, receivedAt: due, properties: {} }
  await world.tell(scope, [{ journeyId: id, input: { kind: 'event', event, trust: 'device' } }], due + 20)
  assert.equal((await world.journey(scope, id)).status, 'armed', 'it wins')

  await pool.query('delete from journey_inbox where scope_id = $1', [scope.scopeId])
  const other = await world.start(scope, plan, customerId, now - dayMs)
  const logged = { scopeId: scope.scopeId, distinctId: 'u', uuid: eventId(2), at: now, text: '{}' }
  await pool.connected((client) => insertFacts(client, [logged]))
  await pool.query(`update event_log set logged_at = to_timestamp($2::float8 / 1000) where lane = $1`, [
    scope.scopeId,
    due - 5,
  ])
  assert.equal(await world.fire(due + 1000), 1)
  assert.equal((await world.journey(scope, other)).status, 'waiting', 'the lane has not come so far')
  await pool.query('delete from event_log where lane = $1', [scope.scopeId])
  await world.fire(due + 2000)
  assert.equal((await world.journey(scope, other)).endDetail, 'late')
})

test('18 a wait leaves once: a result after its timeout changes nothing', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, waiting)
  const customerId = await world.customer(scope)
  const id = await world.start(scope, plan, customerId, t0)
  await world.fire(t0 + dayMs)
  const event = { uuid: eventId(1), name: 'paid', distinctId: 'u', at: t0, receivedAt: t0 + 5, properties: {} }
  const [late] = await world.tell(
    scope,
    [{ journeyId: id, input: { kind: 'event', event, trust: 'device' } }],
    t0 + dayMs + 1,
  )
  assert.equal(late?.disposition, 'ended')
})

test('several that are overdue fire in the order in which they were due', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, { ...ticking, policy: { lifetimeMs: 2 * hourMs } })
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  assert.equal(await world.fire(t0 + 40 * dayMs), 2)
  assert.deepEqual(
    (await world.rows(scope)).transitions.map(({ to_state }) => to_state),
    ['waiting:d', 'waiting:e', 'ended:expired'],
  )
  assert.equal((await world.journey(scope, id)).endReason, 'expired')
})

test('a leg that nobody starts is taken back when its time is over', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    sections: { offer: section('offer', { armForMs: hourMs, outcomes: { expired: null } }) },
  })
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  await world.fire(t0 + hourMs)
  const { legs } = await world.rows(scope)
  assert.deepEqual(
    legs.map(({ status }) => status),
    ['expired'],
  )
  const [late] = await world.tell(scope, [{ journeyId: id, input: completed(plan, 'x') }], t0 + 2 * hourMs)
  assert.equal(late?.disposition, 'late')
})
