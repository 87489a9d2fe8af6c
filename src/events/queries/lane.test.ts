import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import fc from '../../../test/harness/random.ts'
import { storeEvents } from '../../../test/harness/stored-events.ts'
import { eventNamesMax, eventPropertiesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { eraseEvents } from '../erase.ts'
import { ensurePartitions } from '../partitions.ts'
import { parseTimestamp } from '../timestamp.ts'
import type { JsonObject, LaneEvent } from '../types.ts'
import { createDiscover } from './discover.ts'
import { createDiscovery } from './discovery.ts'
import { countEvents } from './rollup.ts'

const database = await testDatabase()
const { pool } = database
await ensurePartitions(pool)
after(() => database[Symbol.asyncDispose]())

const at = Date.parse('2026-03-28T12:07:00Z')

function event(name: string, properties: JsonObject = {}, more: Partial<LaneEvent> = {}): LaneEvent {
  const value = typeof properties.value === 'number' ? { value: properties.value } : {}
  return {
    ...{ pos: 1n, uuid: '', name, customerId: '', distinctId: 'u', appId: 'app_1', at, receivedAt: at },
    ...{ trust: 'device', live: true, recognised: true, originClaim: null },
    payload: { event: name, distinct_id: 'u', uuid: '', timestamp: '', properties, trust: 'device', ...value },
    ...more,
  } as LaneEvent
}

const slots = (scope: Scope) =>
  pool.query(
    'select event, app_id, slot, count, valued, value_sum from event_rollup where scope_id = $1 order by slot, event, app_id',
    [scope.scopeId],
  )

test('a slice is counted by name, app and quarter of an hour, on top of what was counted before', async () => {
  const scope = await testScope(pool)
  const slice = [
    event('a', { value: 1 }),
    event('a', { value: 0.5 }),
    event('a', {}, { at: at + 900_000 }),
    event('b', {}, { appId: null }),
  ]
  for (let i = 0; i < 2; i++) await pool.transaction((tx) => countEvents(tx, scope, slice))
  const [slot, next] = [new Date('2026-03-28T12:00:00Z'), new Date('2026-03-28T12:15:00Z')]
  assert.deepEqual(await slots(scope), [
    { event: 'a', app_id: 'app_1', slot, count: 4n, valued: 4n, value_sum: 3 },
    { event: 'b', app_id: '', slot, count: 2n, valued: 0n, value_sum: 0 },
    { event: 'a', app_id: 'app_1', slot: next, count: 2n, valued: 0n, value_sum: 0 },
  ])
})

test('values that no sum can hold do not stop the lane: the slot has no sum any more', async () => {
  const scope = await testScope(pool)
  for (const value of [1e290, 1e290, 1, 1.7e308, -1.7e308]) {
    await pool.transaction((tx) => countEvents(tx, scope, [event('a', { value })]))
  }
  await pool.transaction((tx) =>
    countEvents(tx, scope, [event('b', { value: 1.7e308 }), event('b', { value: 1.7e308 })]),
  )
  assert.deepEqual(
    (await slots(scope)).map((row) => Object.values(row).slice(3)),
    [
      [5n, 5n, null],
      [2n, 2n, null],
    ],
  )
})

test('erased events are taken out of the counts', async () => {
  const scope = await testScope(pool)
  const [ada, bob] = [randomUUID(), randomUUID()]
  const stored = (record: string, position: number, value: number | null) => ({
    ...{ record, position, value, at, event: 'a', appId: position % 2 ? null : 'app_1', properties: {} },
  })
  await storeEvents(pool, scope, [stored(ada, 1, 1), stored(ada, 2, null), stored(bob, 3, 4), stored(bob, 5, 1e300)])
  const whom = { customerIds: [ada], distinctIds: [], mentions: [] }
  assert.equal(await pool.transaction((tx) => eraseEvents(tx, scope, whom)), true)
  assert.deepEqual(
    (await slots(scope)).map((row) => Object.values(row)).map(([, appId, , ...counts]) => [appId, ...counts]),
    [
      ['', 2n, 2n, null],
      ['app_1', 0n, 0n, 0],
    ],
  )
})

test('names and properties are known with their types, whatever keys they have', async () => {
  const scope = await testScope(pool)
  const discovery = createDiscovery()
  const properties = JSON.parse(
    '{"__proto__": 1, "s": "x", "mixed": null, "$set": {"a": 1}, "l": [], "o": {}, "b": true}',
  )
  const slices = [
    [event('paid', properties), event('$app_opened')],
    [event('paid', { mixed: 5, [`k${'x'.repeat(200)}`]: 1 }), event('$purchase_completed')],
    [event('paid', properties)],
  ]
  for (const slice of slices) await pool.transaction((tx) => discovery(tx, scope, slice))
  const { names, properties: of } = createDiscover(pool)
  assert.deepEqual(
    (await names(scope)).data.map(({ event: name, hidden, recognised }) => [name, hidden, recognised]),
    [
      ['$app_opened', false, true],
      ['$purchase_completed', true, true],
      ['paid', false, true],
    ],
  )
  assert.deepEqual(
    (await of(scope, 'paid')).data.map(({ property, types }) => [property, types.join()]),
    [
      ['__proto__', 'number'],
      ['b', 'boolean'],
      ['l', 'array'],
      ['mixed', 'number,null'],
      ['o', 'object'],
      ['s', 'string'],
    ],
  )
})

test('what a rolled-back slice had is noted by the next one', async () => {
  const scope = await testScope(pool)
  const discovery = createDiscovery()
  const slice = [event('paid', { amount: 1 })]
  const failing = pool.transaction(async (tx) => {
    await discovery(tx, scope, slice)
    throw new Error('rolled back')
  })
  await assert.rejects(failing, /rolled back/)
  for (let i = 0; i < 2; i++) await pool.transaction((tx) => discovery(tx, scope, slice))
  const { data } = await createDiscover(pool).properties(scope, 'paid')
  assert.deepEqual(
    data.map(({ property }) => property),
    ['amount'],
  )
})

test('2,000 names and 500 properties of each are kept, and it is said when there were more', async () => {
  const scope = await testScope(pool)
  const discovery = createDiscovery()
  const { names, properties } = createDiscover(pool)
  const take = (slice: LaneEvent[]) => pool.transaction((tx) => discovery(tx, scope, slice))
  const keys = (from: number, to: number) =>
    Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`p${from + i}`, 1]))
  await take(Array.from({ length: eventNamesMax - 1 }, (_, i) => event(`n${i}`)))
  await take([event('wide', keys(0, eventPropertiesMax))])
  const shown = async () => {
    const [all, wide] = [await names(scope), await properties(scope, 'wide')]
    return [all.data.length, all.truncated, wide.data.length, wide.truncated]
  }
  assert.deepEqual(await shown(), [eventNamesMax, false, eventPropertiesMax, false])
  await take([event('one more', keys(0, 5)), event('and more'), event('wide', keys(490, 530))])
  assert.deepEqual(await shown(), [eventNamesMax, true, eventPropertiesMax, true])
})

test('the database reads times as intake does', async () => {
  const two = fc.integer({ min: 0, max: 61 }).map((n) => String(n).padStart(2, '0'))
  const time = fc
    .tuple(
      fc.constantFrom('2026', '2024', '1900', '0000', '0001', '9999', '202'),
      ...[two, two, two, two, two],
      fc.constantFrom('', '.5', ',1239', '.', '.x'),
      fc.constantFrom('', 'Z', 'z', '+02', '-0230', '+02:30', '+2', '+24:00', '-23:59'),
      fc.constantFrom('T', ' ', 't'),
    )
    .chain(([y, m, d, h, min, s, fraction, zone, t]) =>
      fc.constantFrom(
        `${y}-${m}-${d}`,
        `${y}-${m}-${d}${t}${h}:${min}${zone}`,
        `${y}-${m}-${d}${t}${h}:${min}:${s}${fraction}${zone}`,
      ),
    )
  const texts = [
    ...fc.sample(time, 2000),
    '2026-01-01T10',
    '2026-02-29',
    '2024-02-29T23:59:60Z',
    '\n2026-01-01',
    '２０２６-01-01',
    '',
  ]
  const rows = await pool.query<{ at: number | null }>(
    'select event_instant(given) as at from unnest($1::text[]) with ordinality as t (given, n) order by n',
    [texts],
  )
  assert.deepEqual(
    rows.map((row) => row.at),
    texts.map(parseTimestamp),
  )
})
