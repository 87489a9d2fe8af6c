import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import fc from '../../../test/harness/random.ts'
import { answerBy, type Row, type World } from '../../../test/harness/reference-queries.ts'
import { storeCustomers, storeEvents } from '../../../test/harness/stored-events.ts'
import { Pool } from '../../db/pool.ts'
import { systemClock } from '../../kernel/clock.ts'
import { uuidV5 } from '../../kernel/ids.ts'
import { ensurePartitions } from '../partitions.ts'
import type { Json, JsonObject } from '../types.ts'
import { createAnalytics, querySettings } from './query.ts'
import type { EventQuery, GroupBy, QueryFilter, TimeRange } from './types.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
const queryPool = new Pool(url, { name: 'test queries', max: 2, pipeline: true, settings: querySettings })
after(async () => {
  await queryPool[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const namespace = '6f1d3a52-7c0e-5b84-9a41-2f6c8d0b3e97'
const ids = Array.from({ length: 8 }, (_, n) => uuidV5(namespace, `customer ${n}`))
const analytics = createAnalytics({
  pool: queryPool,
  lookupPool: queryPool,
  atOnce: 2,
  clock: systemClock,
  segments: {
    isMember: ({ scopeId, customer, segment }) =>
      `(${scopeId} > 0 and ${segment} = 'even' and right(${customer}::text, 1) in ('0', '2', '4', '6', '8', 'a', 'c', 'e'))`,
    unknown: async () => [],
  },
})
const isEven = (id: string) => parseInt(id.slice(-1), 16) % 2 === 0

const hourMs = 3_600_000
/** Clocks change within each of these ranges. */
const ranges: [zone: string, around: string][] = [
  ['Europe/Oslo', '2026-03-29T01:00:00Z'],
  ['Europe/Oslo', '2026-10-25T01:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['Asia/Kathmandu', '2026-06-01T00:00:00Z'],
  ['Africa/Casablanca', '2026-02-15T02:00:00Z'],
  ['UTC', '2026-01-01T00:00:00Z'],
]
const range = fc
  .record({
    of: fc.constantFrom(...ranges),
    before: fc.integer({ min: 0, max: 400 }),
    length: fc.integer({ min: 1, max: 800 }),
    exact: fc.boolean(),
  })
  .map(({ of: [zone, around], before, length, exact }): TimeRange => {
    const start = Date.parse(around) - before * hourMs + (exact ? 0 : 1_234_567)
    return { start, end: start + length * hourMs, zone }
  })

const value = fc.constantFrom<Json>(
  'a',
  'b',
  'ab',
  '5',
  5,
  6.5,
  -1,
  true,
  null,
  ['a', 5],
  { a: 1 },
  '2026-03-29',
  '2026-03-29T00:00:00+01:00',
)
const properties = fc.dictionary(fc.constantFrom('k', 'n', '__proto__'), value, {
  maxKeys: 2,
  noNullPrototype: true,
}) as fc.Arbitrary<JsonObject>
const names = fc.constantFrom('x', 'y', 'z', "it's")
const filter: fc.Arbitrary<QueryFilter> = fc.oneof(
  { arbitrary: propertyFilter(), weight: 4 },
  { arbitrary: fc.boolean().map((is): QueryFilter => ({ scope: 'membership', segment: 'even', is })), weight: 1 },
)
const filters = fc.array(filter, { maxLength: 1 })

function propertyFilter(): fc.Arbitrary<QueryFilter> {
  const of = {
    scope: fc.constantFrom('event' as const, 'customer' as const),
    property: fc.constantFrom('k', 'n', "'; drop table event; --"),
  }
  const scalar = fc.constantFrom<Json>('a', '5', 5, 6.5, true, null, '')
  const bound = fc.constantFrom<Json>('a', 5, '2026-03-28T23:00:00Z', '')
  return fc.oneof(
    fc.record({
      ...of,
      op: fc.constantFrom('eq' as const, 'neq' as const, 'contains' as const, 'not_contains' as const),
      value: scalar,
    }),
    fc.record({
      ...of,
      op: fc.constantFrom('in' as const, 'not_in' as const),
      value: fc.array(scalar, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      ...of,
      op: fc.constantFrom('starts_with' as const, 'ends_with' as const),
      value: fc.constantFrom('a', 'b', ''),
    }),
    fc.record({
      ...of,
      op: fc.constantFrom('gt' as const, 'gte' as const, 'lt' as const, 'lte' as const),
      value: bound,
    }),
    fc.record({
      ...of,
      op: fc.constant('between' as const),
      value: fc.constantFrom<Json>([4, 6], ['a', 'b'], ['2026-03-28', '2026-03-30']),
    }),
    fc.record({ ...of, op: fc.constantFrom('exists' as const, 'not_exists' as const) }),
  )
}

const shared = { appId: fc.option(fc.constant('app_1'), { freq: 4 }), range, filters }
const step = fc.record({ event: names, filters })
const measure = fc.oneof(
  fc.constantFrom({ type: 'count' as const }, { type: 'unique_customers' as const }),
  fc.record({
    type: fc.constantFrom(
      'sum' as const,
      'avg' as const,
      'min' as const,
      'max' as const,
      'p50' as const,
      'p90' as const,
      'p95' as const,
    ),
    property: fc.constantFrom('n', 'k', null),
  }),
)
const trends: fc.Arbitrary<EventQuery> = fc.record({
  ...shared,
  type: fc.constant('trend' as const),
  interval: fc.constantFrom('hour' as const, 'day' as const, 'week' as const, 'month' as const, null),
  series: fc.array(fc.record({ event: names, measure, filters }), { minLength: 1, maxLength: 2 }),
  groupBy: fc.oneof(
    fc.constant<GroupBy[]>([]),
    fc.array(
      fc.record({
        scope: fc.constantFrom('event' as const, 'customer' as const),
        property: fc.constantFrom('k', 'n'),
        limit: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 1 },
    ),
  ),
})
const funnels: fc.Arbitrary<EventQuery> = fc.record({
  ...shared,
  type: fc.constant('funnel' as const),
  steps: fc.array(step, { minLength: 2, maxLength: 4 }),
  windowMs: fc.constantFrom(1000, 40 * hourMs, 400 * 24 * hourMs),
  order: fc.constantFrom('ordered' as const, 'strict' as const),
  start: fc.constantFrom('first' as const, 'any' as const),
})
const retentions: fc.Arbitrary<EventQuery> = fc.record({
  ...shared,
  type: fc.constant('retention' as const),
  startEvent: step,
  returnEvent: step,
  period: fc.constantFrom('day' as const, 'week' as const, 'month' as const),
  periods: fc.integer({ min: 1, max: 4 }),
  mode: fc.constantFrom('first' as const, 'every' as const),
})

/** Few customers, names and times, so that everything meets everything; some customers became others, over one or two hops. */
const world = (over: TimeRange) =>
  fc
    .record({
      events: fc.array(
        fc.record({
          record: fc.nat({ max: ids.length - 1 }),
          event: names,
          at: fc.oneof(
            fc.integer({ min: -2, max: 60 }).map((n) => over.start + Math.floor(((over.end - over.start) * n) / 55)),
            fc.constantFrom(over.start, over.end, over.end - 1, over.start - 1),
          ),
          appId: fc.constantFrom('app_1', 'app_2', null),
          value: fc.constantFrom(null, 1, 2.5, -3),
          properties,
        }),
        { maxLength: 40 },
      ),
      // As in a scope where so much happened that positions and times do not fit one int8.
      far: fc.boolean(),
      customers: fc.array(properties, { minLength: ids.length, maxLength: ids.length }),
      mergedInto: fc.array(fc.option(fc.nat({ max: ids.length - 1 }), { freq: 1 }), {
        minLength: ids.length,
        maxLength: ids.length,
      }),
    })
    .map(({ events, far, customers, mergedInto }) => ({
      events: events.map((event, i) => ({ ...event, position: i + 1 + (far ? 2 ** 50 : 0) })),
      customers,
      // Towards higher numbers only: nobody becomes himself.
      mergedInto: mergedInto.map((into, i) => (into !== null && into > i ? into : null)),
    }))

type Stored = ReturnType<typeof world> extends fc.Arbitrary<infer T> ? T : never

async function check(query: EventQuery, { events, customers, mergedInto }: Stored) {
  const scope = await testScope(pool)
  const id = (n: number) => ids[n] ?? ''
  const survivor = (n: number): number => (mergedInto[n] == null ? n : survivor(mergedInto[n]))
  await storeCustomers(
    pool,
    scope,
    customers.map((each, n) => ({
      id: id(n),
      properties: each,
      mergedInto: mergedInto[n] == null ? null : id(mergedInto[n]),
    })),
  )
  await storeEvents(
    pool,
    scope,
    events.map((event) => ({ ...event, record: id(event.record) })),
  )
  const reference: World = {
    rows: events.map(({ record, ...event }): Row => ({ ...event, customer: id(survivor(record)) })),
    customers: new Map(customers.map((each, n) => [id(n), each])),
    segments: new Map([['even', new Set(ids.filter(isEven))]]),
  }
  const answer = await analytics.query(scope, query)
  compare(answer, answerBy(reference, query))
}

test('a group without numbers adds up to 0, and stands before those whose sum is negative', async () => {
  const at = Date.UTC(2026, 0, 1)
  const row = { event: 'z', at, appId: 'app_1', properties: {} } as const
  await check(
    {
      ...{ type: 'trend', appId: null, range: { start: at, end: at + 3_600_000, zone: 'UTC' }, interval: null },
      filters: [],
      series: [{ event: 'z', measure: { type: 'sum', property: null }, filters: [] }],
      groupBy: [{ scope: 'customer', property: 'n', limit: 3 }],
    },
    {
      events: [
        { ...row, record: 1, value: -3, position: 1 },
        { ...row, record: 0, value: null, position: 2 },
      ],
      customers: ids.map((_, n) => (n === 1 ? { n: 'a' } : {})),
      mergedInto: ids.map(() => null),
    },
  )
})

/** Equal in everything that the reference says; sums in another order may differ in their last digits. */
function compare(actual: unknown, expected: unknown, path = 'answer'): void {
  if (typeof expected === 'number' && typeof actual === 'number') {
    assert.ok(
      Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)),
      `${path}: ${actual}, not ${expected}`,
    )
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), path)
    assert.equal(actual.length, expected.length, path)
    for (const [i, each] of expected.entries()) compare(actual[i], each, `${path}[${i}]`)
  } else if (typeof expected === 'object' && expected !== null) {
    assert.ok(typeof actual === 'object' && actual !== null, path)
    for (const [key, each] of Object.entries(expected)) compare((actual as JsonObject)[key], each, `${path}.${key}`)
  } else {
    assert.equal(actual, expected, path)
  }
}

test('a query that takes too long is ended, and the refusal names exports', async () => {
  const scope = await testScope(pool)
  await storeEvents(pool, scope, [
    { ...{ position: 1, at: 5, event: 'x', appId: null, value: null }, properties: {}, record: ids[0] ?? '' },
  ])
  const slow = createAnalytics({
    pool: queryPool,
    lookupPool: queryPool,
    atOnce: 2,
    clock: systemClock,
    segments: {
      isMember: ({ scopeId, segment }) => `pg_sleep(${scopeId} + 60) is not null and ${segment} is not null`,
      unknown: async () => [],
    },
  })
  const asked = slow.query(
    scope,
    {
      ...{ type: 'count', appId: null, range: { start: 0, end: 10, zone: 'UTC' }, interval: null, groupBy: [] },
      filters: [{ scope: 'membership', segment: 'seg', is: true }],
      series: [{ event: 'x', measure: { type: 'count' }, filters: [] }],
    },
    { msMax: 50 },
  )
  await assert.rejects(asked, { code: 'query_timeout', status: 503, message: /event_exports/ })
})

for (const [name, queries, numRuns] of [
  ['trends', trends, 100],
  ['funnels', funnels, 80],
  ['retention', retentions, 40],
] as const) {
  test(`${name} are what the rows say, one by one, for merged customers, all filters and over changes of clocks`, async () => {
    await fc.assert(
      fc.asyncProperty(
        queries.chain((query) => world(query.range).map((of) => ({ query, of }))),
        ({ query, of }) => check(query, of),
      ),
      { numRuns },
    )
  })
}
