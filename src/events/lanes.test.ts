import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { silent } from '../../test/harness/server.ts'
import { createTally, customerIdOf, effects, runTally, tallied, tally } from '../../test/harness/tally.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
import { applyCommand } from './command.ts'
import { checkLogMeta } from './log-meta.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import { type Consumer, type LaneEvent, type NewEvent, StaleSlice } from './types.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
await checkLogMeta(pool)
await createTally(pool)
const log = createLog({ url, tombstoneKey: Buffer.from('key'), clock: systemClock })
after(async () => {
  await log[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

let scope: Scope
beforeEach(async () => {
  scope = await testScope(pool)
})

const receivedAt = Date.parse('2026-11-20T12:00:00.123Z')

function event(fields: Record<string, unknown> = {}, at = receivedAt, trust: 'device' | 'server' = 'device'): NewEvent {
  const judged = normalise({ event: 'e', distinct_id: 'u1', uuid: randomUUID(), ...fields }, { receivedAt: at, trust })
  assert.equal(judged.kind, 'event')
  return judged.event
}

const origin = () => ({ scopeId: scope.scopeId, appId: 'app_1' })
const live = (events: NewEvent[]) => log.appendBatch(origin(), events, { stream: 'live' })
const historical = (events: NewEvent[]) => log.appendBatch(origin(), events, { stream: 'historical' })

test('events are applied once, in the order of the log, at positions without gaps', async () => {
  const events = Array.from({ length: 50 }, (_, n) => event({ distinct_id: `u${n % 7}`, value: n }))
  await using lanes = runTally(url)
  for (const each of events) await log.append(origin(), each)
  await lanes.taken(50)
  const applied = await effects(pool, scope)
  assert.deepEqual(
    applied.map(({ value }) => value),
    events.map((_, n) => n),
  )
  assert.deepEqual(
    applied.map(({ pos }) => pos),
    events.map((_, n) => BigInt(n + 1)),
  )
  assert.deepEqual((await tallied(pool, scope)).u0, [8, 0 + 7 + 14 + 21 + 28 + 35 + 42 + 49])
})

test('an applied event is stored with everything that was sent', async () => {
  const sent = event(
    {
      ...{
        event: '$no_such_event',
        distinct_id: 'ü"\\',
        timestamp: '0001-01-01T00:00:00+01',
        value: 0.1,
        entityId: 'e"1',
      },
      properties: { 'a"\\': ['\0', null, 1e300], __proto__: 1, $set: { k: 1, both: 'under' }, $unset: ['x'] },
      ...{ $set: { both: 'top' }, $unset: ['y', 5], $increment: { n: 1 }, $anon_distinct_id: 'anon' },
      journeyOrigin: { journeyId: 'j' },
    },
    receivedAt,
    'server',
  )
  await using lanes = runTally(url)
  await live([sent])
  await lanes.taken(1)
  const [row] = await pool.query(
    `select pos, uuid, customer_id, distinct_id, app_id, event, date_part('epoch', ts) * 1000 as at, received_at, value, entity_id,
      props, trust, recognised, historical, merge, journey_origin, warnings
    from event
    where scope_id = $1`,
    [scope.scopeId],
  )
  assert.deepEqual(row, {
    ...{ pos: 1n, uuid: sent.uuid, customer_id: customerIdOf('ü"\\'), distinct_id: 'ü"\\', app_id: 'app_1' },
    ...{
      event: '$no_such_event',
      at: Date.parse('0001-01-01T00:00:00Z') - 3_600_000,
      received_at: new Date(receivedAt),
    },
    ...{ value: 0.1, entity_id: 'e"1', trust: 1, recognised: false, historical: false, merge: null },
    props: {
      'a"\\': ['\ufffd', null, 1e300],
      $set: { k: 1, both: 'top' },
      $unset: ['x', 'y', 5],
      $increment: { n: 1 },
      $anon_distinct_id: 'anon',
    },
    journey_origin: { journeyId: 'j' },
    warnings: [{ code: 'text_replaced' }, { code: 'unrecognised_system_event' }],
  })
})

test('what the projection says of an event is stored with it', async () => {
  const merge = { status: 'refused', reason: 'same_id' } as const
  const warnings = [{ code: 'merge_refused', detail: 'same_id' }]
  const projection: typeof tally = {
    ...tally,
    decide(to, state, events) {
      const decision = tally.decide(to, state, events)
      const outcomes = decision.outcomes.map((outcome) =>
        outcome.kind === 'applied' ? { ...outcome, merge, warnings } : outcome,
      )
      return { ...decision, outcomes }
    },
  }
  await using lanes = runTally(url, { projection })
  await live([event({ event: '$identify', timestamp: '9999-01-01' })])
  await lanes.taken(1)
  const [row] = await pool.query('select merge, warnings, recognised from event where scope_id = $1', [scope.scopeId])
  assert.deepEqual(row, {
    ...{ merge, recognised: true },
    warnings: [{ code: 'timestamp_clamped', detail: '9999-01-01' }, ...warnings],
  })
})

test('a uuid counts once: in one slice, in later slices, from the other stream and in any case', async () => {
  const uuid = randomUUID()
  await live([event({ uuid, value: 1 }), event({ uuid: uuid.toUpperCase(), value: 1 }), event({ value: 10 })])
  await using lanes = runTally(url)
  await lanes.taken(3)
  await live([event({ uuid, value: 1 })])
  await lanes.taken(4)
  await historical([event({ uuid: undefined, idempotency_key: uuid, value: 1 })])
  await lanes.taken(5)
  assert.deepEqual(await tallied(pool, scope), { u1: [2, 11] })
  assert.equal((await effects(pool, scope)).length, 2)
  assert.equal(
    lanes.slices.reduce((sum, { duplicates }) => sum + duplicates, 0),
    3,
  )
  assert.deepEqual(
    lanes.slices.flatMap(({ differing }) => differing),
    [],
  )
})

test('a second body under one uuid changes nothing and is told of', async () => {
  const [uuid, other] = [randomUUID(), randomUUID()]
  const told: object[] = []
  await using lanes = runTally(url, { log: { ...silent, warn: (fields) => told.push(fields) } })
  await live([event({ uuid, value: 1 }), event({ uuid: other, value: 1 }), event({ uuid: other, value: 2 })])
  await lanes.taken(3)
  await live([event({ uuid, value: 5 }), event({ uuid, value: 1 }, receivedAt + 60_000)])
  await lanes.taken(5)
  assert.deepEqual(await tallied(pool, scope), { u1: [2, 2] })
  assert.deepEqual(
    lanes.slices.flatMap(({ differing }) => differing),
    [other, uuid],
  )
  assert.deepEqual(told, [
    { scopeId: scope.scopeId, uuids: [other] },
    { scopeId: scope.scopeId, uuids: [uuid] },
  ])
})

test('equal uuids and ids of two scopes do not meet', async () => {
  const other = await testScope(pool, 'test')
  const same = event({ value: 3 })
  await log.append(origin(), same)
  await log.append({ scopeId: other.scopeId, appId: null }, same)
  await using lanes = runTally(url)
  await lanes.taken(2)
  for (const each of [scope, other]) {
    assert.deepEqual(await tallied(pool, each), { u1: [1, 3] })
    assert.equal((await effects(pool, each)).length, 1)
  }
})

test('events of a deleted customer leave no row and take no position', async () => {
  await live([
    event({ distinct_id: 'gone1' }),
    event({ value: 1 }),
    event({ distinct_id: 'gone2' }),
    event({ value: 2 }),
  ])
  await using lanes = runTally(url)
  await lanes.taken(4)
  assert.deepEqual(
    (await effects(pool, scope)).map(({ pos, value }) => [pos, value]),
    [
      [1n, 1],
      [2n, 2],
    ],
  )
  assert.equal(lanes.slices[0]?.dropped, 2)
})

test('consumers see applied events in order of position, inside the transaction', async () => {
  const seen: LaneEvent[] = []
  const consumer: Consumer = async (tx, to, slice) => {
    const rows = await tx.query('select 1 from event where scope_id = $1', [to.scopeId])
    assert.equal(rows.length, slice.length)
    seen.push(...slice)
  }
  await live([event({ distinct_id: 'gone' }), event({ event: 'a', journeyOrigin: { j: 1 } }), event({ event: 'b' })])
  await using lanes = runTally(url, { consumers: [consumer] })
  await lanes.taken(3)
  assert.deepEqual(
    seen.map(({ pos, name, customerId, originClaim, live: isLive, recognised, trust, appId }) => [
      ...[pos, name, customerId, originClaim],
      ...[isLive, recognised, trust, appId],
    ]),
    [
      [1n, 'a', customerIdOf('u1'), { j: 1 }, true, true, 'device', 'app_1'],
      [2n, 'b', customerIdOf('u1'), null, true, true, 'device', 'app_1'],
    ],
  )
})

test('a consumer that fails takes the whole slice back, and it is tried three times', async () => {
  let failures = 0
  const consumer: Consumer = async () => {
    if (failures++ < 2) throw new Error('not yet')
  }
  const told: string[] = []
  await live([event({ value: 1 })])
  await using lanes = runTally(url, {
    consumers: [consumer],
    log: { ...silent, warn: (_, message) => told.push(message) },
  })
  await lanes.taken(1)
  assert.equal(failures, 3)
  assert.deepEqual(told, ['a slice failed; its event is looked for'])
  assert.deepEqual(await tallied(pool, scope), { u1: [1, 1] })
})

test('a stale slice is decided again on what is there now', async () => {
  let loads = 0
  const projection: typeof tally = {
    ...tally,
    async load(sql, to, events) {
      const state = await tally.load(sql, to, events)
      // Somebody else counts between our read and our write.
      if (loads++ === 0) {
        await pool.query(
          `insert into tally (scope_id, distinct_id, events, total, version) values ($1, 'u1', 0, 100, 1)`,
          [to.scopeId],
        )
      }
      return state
    },
  }
  await live([event({ value: 1 })])
  await using lanes = runTally(url, { projection })
  await lanes.taken(1)
  assert.equal(loads, 2)
  assert.deepEqual(await tallied(pool, scope), { u1: [1, 101] })
})

test('a slice that stays stale is said to be late, and succeeds when it can', async () => {
  let writes = 0
  const told: object[] = []
  const projection: typeof tally = {
    ...tally,
    write: (...args) => (writes++ < 13 ? Promise.reject(new StaleSlice('changed')) : tally.write(...args)),
  }
  await live([event({ value: 1 })])
  await using lanes = runTally(url, { projection, log: { ...silent, warn: (fields) => told.push(fields) } })
  await lanes.taken(1)
  assert.equal(told.length, 3)
  assert.deepEqual(await tallied(pool, scope), { u1: [1, 1] })
})

test('commands take their positions among the events', async () => {
  await using lanes = runTally(url)
  await live([event(), event()])
  await lanes.taken(2)
  const pos = await pool.transaction((tx) => applyCommand(tx, scope, 'customer.edit', { set: { a: '\u2028"' } }))
  assert.equal(pos, 3n)
  await assert.rejects(
    pool.transaction(async (tx) => {
      assert.equal(await applyCommand(tx, scope, 'customer.edit', null), 4n)
      throw new Error('taken back')
    }),
  )
  await live([event()])
  await lanes.taken(3)
  assert.deepEqual(
    (await effects(pool, scope)).map((row) => row.pos),
    [1n, 2n, 4n],
  )
  const commands = await pool.query('select pos, kind, body from command where scope_id = $1', [scope.scopeId])
  assert.deepEqual(commands, [{ pos: 3n, kind: 'customer.edit', body: { set: { a: '\u2028"' } } }])
})

test('a scope gets its lane with its first event or command', async () => {
  await pool.query('delete from lane where id = $1', [scope.scopeId])
  await using lanes = runTally(url)
  await live([event()])
  await lanes.taken(1)
  assert.equal((await effects(pool, scope)).length, 1)
  const other = await testScope(pool)
  await pool.query('delete from lane where id = $1', [other.scopeId])
  assert.equal(await pool.transaction((tx) => applyCommand(tx, other, 'customer.edit', {})), 1n)
})

test('an import waits for live events, but gets one turn in ten', async () => {
  const batch = (n: number, size: number) => Array.from({ length: size }, () => event({ value: n }))
  await historical(batch(0, 2001))
  for (let n = 0; n < 12; n++) await live(batch(n, 2000))
  await using lanes = runTally(url)
  await lanes.taken(12 * 2000 + 2001)
  const order = lanes.slices.map(({ stream }) => (stream === 'live' ? 'l' : 'h')).join('')
  assert.match(order, /^l{9}hl{3}h$/)
  const [count] = await pool.query<{ n: bigint }>(
    'select count(*) as n from event where scope_id = $1 and historical',
    [scope.scopeId],
  )
  assert.equal(count?.n, 2001n)
})

test('a slice is bounded by bytes, and one large event still goes through', async () => {
  const large = () => event({ properties: { a: 'x'.repeat(1_000_000) } })
  await live(Array.from({ length: 40 }, large))
  await using lanes = runTally(url)
  await lanes.taken(40)
  assert.ok(
    lanes.slices.every(({ read }) => read <= 18),
    JSON.stringify(lanes.slices.map(({ read }) => read)),
  )
  assert.ok(lanes.slices.length >= 3)
})
