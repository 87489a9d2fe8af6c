import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { capacity } from '../../src/events/queries/capacity.ts'
import { queriesPerMinuteMax, queryMsMax } from '../../src/kernel/limits.ts'
import fc from '../harness/random.ts'
import type { Row } from '../harness/reference-queries.ts'
import { storeCustomers, storeEvents } from '../harness/stored-events.ts'
import { type Answer, type Api, assertRefused, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const [ada, bob, old] = [randomUUID(), randomUUID(), randomUUID()]
const noon = Date.parse('2026-03-28T12:00:00Z')
const hourMs = 3_600_000

type Stored = Partial<Omit<Row, 'customer'>> & { record?: string }

/** Positions count on from `from`. */
async function store(ws: Workspace, events: Stored[], from = 1): Promise<void> {
  await storeEvents(
    api.pool,
    ws.scopes.test,
    events.map((event, i) => ({
      ...{ position: from + i, at: noon + i * hourMs, event: 'opened', appId: 'app_1', value: null, properties: {} },
      ...{ record: ada },
      ...event,
    })),
  )
}

async function world(events: Stored[]): Promise<Workspace> {
  const ws = await api.workspace()
  await api.pool.query('insert into lane (id) values ($1)', [ws.scopes.test.scopeId])
  await storeCustomers(api.pool, ws.scopes.test, [
    { id: ada, properties: { country: 'NO' }, mergedInto: null },
    { id: bob, properties: {}, mergedInto: null },
    { id: old, properties: {}, mergedInto: ada },
  ])
  await store(ws, events)
  return ws
}

const positions = ({ body }: { body: Body }) => body.data.map(({ position }: Body) => position)

async function walk(ws: Workspace, query: string, between: () => Promise<void> = async () => {}): Promise<Body[]> {
  const seen: Body[] = []
  let cursor = ''
  for (;;) {
    const { status, body } = await ws.get(`/events?${query}${cursor}`)
    assert.equal(status, 200, JSON.stringify(body))
    seen.push(...body.data)
    if (!body.has_more) return seen
    cursor = `&cursor=${body.next_cursor}`
    await between()
  }
}

describe('POST /events', () => {
  const event = () => ({ event: 'invoice_paid', distinct_id: 'ada', uuid: randomUUID(), properties: { amount: 5 } })

  test('answers like /batch: each event for itself, with the sums', async () => {
    const ws = await api.workspace()
    const good = event()
    const { status, body } = await ws.post('/events', { events: [good, { event: 'no id' }, 5] })
    assert.equal(status, 200)
    assert.deepEqual([body.status, body.accepted, body.failed, body.eventIds], ['partial', 1, 2, [good.uuid]])
    assert.deepEqual(
      body.errors.map(({ index }: Body) => index),
      [1, 2],
    )
    const [row] = await api.pool.query<{ payload: string; app_id: string | null }>(
      'select payload, app_id from event_log where lane = $1',
      [ws.scopes.test.scopeId],
    )
    assert.deepEqual([JSON.parse(row?.payload ?? '{}').trust, row?.app_id], ['server', null])
  })

  test('takes gzip, 1 to 1,000 events, and apps of the project only', async () => {
    const ws = await api.workspace()
    const send = (body: Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
      fetch(`${api.url}/v1/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ws.key}`, 'content-type': 'application/json', ...headers },
        body,
      })
    const packed = gzipSync(JSON.stringify({ events: Array.from({ length: 1000 }, event) }))
    const answer = await send(packed, { 'content-encoding': 'gzip' })
    assert.deepEqual([answer.status, ((await answer.json()) as Body).accepted], [200, 1000])
    assert.equal((await send(Buffer.concat([packed, packed]), { 'content-encoding': 'gzip' })).status, 400)
    assertRefused(await ws.post('/events', { events: [] }), 400, 'invalid_request', 'events')
    assertRefused(
      await ws.post('/events', { events: Array.from({ length: 1001 }, event) }),
      400,
      'invalid_request',
      'events',
    )
    assertRefused(await ws.post('/events', { events: [event()], app_id: 'app_none' }), 404, 'not_found')
    const app = (await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })).body.id
    assert.equal((await ws.post('/events', { events: [event()], app_id: app })).body.accepted, 1)
  })

  test('repeats its answer for an Idempotency-Key', async () => {
    const ws = await api.workspace()
    const body = { events: [event()] }
    const first = await ws.post('/events', body, { idempotencyKey: 'k' })
    const again = await ws.post('/events', body, { idempotencyKey: 'k' })
    assert.deepEqual([again.status, again.body, again.headers.get('idempotent-replayed')], [200, first.body, 'true'])
    assertRefused(await ws.post('/events', { events: [event()] }, { idempotencyKey: 'k' }), 409, 'idempotency_conflict')
  })
})

describe('GET /events', () => {
  test('shows events with the customer they belong to now, newest first', async () => {
    const ws = await world([
      { properties: { a: [1] }, value: 2 },
      { record: old, appId: null, event: '$app_opened' },
    ])
    const { body } = await ws.get('/events')
    assert.deepEqual(positions({ body }), [2, 1])
    assert.deepEqual([body.has_more, body.next_cursor, body.processing_lag_ms], [false, null, 0])
    assert.ok(Date.parse(body.as_of) > noon)
    const [newer, older] = body.data
    assert.deepEqual([newer.customer_id, newer.distinct_id, newer.app_id], [`cus_${ada}`, old, null])
    assert.deepEqual(
      [older.event, older.timestamp, older.properties, older.value, older.trust, older.recognised, older.warnings],
      ['opened', new Date(noon).toISOString(), { a: [1] }, 2, 'device', true, []],
    )
  })

  test('can be filtered by customer, name, app and time', async () => {
    const ws = await world([{}, { record: old }, { record: bob, event: 'bought' }, { appId: null, event: 'bought' }])
    const of = async (query: string) => positions(await ws.get(`/events?order=asc&${query}`))
    assert.deepEqual(await of(`customer_id=cus_${ada}`), [1, 2, 4])
    assert.deepEqual(await of(`customer_id=cus_${old}`), [1, 2, 4])
    assert.deepEqual(await of('event=bought'), [3, 4])
    assert.deepEqual(await of('app_id=app_1'), [1, 2, 3])
    assert.deepEqual(await of('start=2026-03-28T13:00:00Z&end=2026-03-28T15:00:00Z'), [2, 3])
    assert.deepEqual(await of('distinct_id=nobody'), [])
    assertRefused(await ws.get(`/events?customer_id=cus_${randomUUID()}`), 404, 'not_found')
    assert.deepEqual(positions(await ws.get(`/customers/cus_${old}/events?order=asc`)), [1, 2, 4])
    assert.equal((await ws.get('/events?limit=1000')).status, 200)
    assertRefused(await ws.get('/events?limit=1001'), 400, 'invalid_request', 'limit')
  })

  test('the pages of a walk are what was there at the first one, once, while others write and merge', async () => {
    const many = Array.from(
      { length: 23 },
      (_, i): Stored => ({ at: noon + (i % 5) * hourMs, record: i % 2 ? ada : bob }),
    )
    for (const order of ['asc', 'desc']) {
      const ws = await world(many)
      let next = many.length + 1
      const seen = await walk(ws, `order=${order}&limit=4`, async () => {
        await store(ws, [{ at: noon + 2 * hourMs }, { at: noon - hourMs }], next)
        next += 2
        await api.pool.query('update event set customer_id = $2 where scope_id = $1 and pos = $3', [
          ...[ws.scopes.test.scopeId, bob, next % many.length],
        ])
      })
      assert.deepEqual(
        seen.map(({ position }) => position).toSorted((a, b) => a - b),
        many.map((_, i) => i + 1),
      )
      const keys = seen.map(({ timestamp, position }) => `${timestamp} ${String(position).padStart(3, '0')}`)
      assert.deepEqual(keys, order === 'asc' ? keys.toSorted() : keys.toSorted().toReversed())
    }
  })

  test('by position nothing is missed or repeated, however much is written between the pages', async () => {
    const ws = await world([{}, {}, {}])
    let next = 4
    let cursor = ''
    const seen: number[] = []
    for (let page = 0; page < 12; page++) {
      const { body } = await ws.get(`/events?sort=position&limit=2${cursor}`)
      seen.push(...positions({ body }))
      assert.notEqual(body.next_cursor, null)
      cursor = `&cursor=${body.next_cursor}`
      if (page % 3 === 0) await store(ws, [{ at: noon - 1000 }, {}, {}], next)
      if (page % 3 === 0) next += 3
    }
    assert.deepEqual(
      seen,
      Array.from({ length: seen.length }, (_, i) => i + 1),
    )
    assert.equal(seen.length, next - 1)
    const { body } = await ws.get(`/events?sort=position&limit=2${cursor}`)
    assert.deepEqual([body.data, body.has_more], [[], false])
    assertRefused(await ws.get('/events?sort=position&order=desc'), 400, 'invalid_request', 'order')
  })

  test('a cursor belongs to its list', async () => {
    const ws = await world([{}, {}, {}])
    const cursor = (await ws.get('/events?limit=1')).body.next_cursor
    assert.equal((await ws.get(`/events?limit=2&cursor=${cursor}`)).status, 200)
    const others = ['event=x&', 'order=asc&', 'sort=position&', 'app_id=app_1&', 'start=2026-01-01T00:00:00Z&']
    for (const other of others) {
      assertRefused(await ws.get(`/events?${other}limit=1&cursor=${cursor}`), 400, 'invalid_request', 'cursor')
    }
    const foreign = await world([{}, {}])
    assertRefused(await foreign.get(`/events?limit=1&cursor=${cursor}`), 400, 'invalid_request', 'cursor')
    for (const forged of ['x', 'cCAw.AAAA', `${cursor}x`, `${cursor.split('.')[0]}.`]) {
      assertRefused(await ws.get(`/events?cursor=${forged}`), 400, 'invalid_request', 'cursor')
    }
  })

  test('an event is found by its uuid once it is applied', async () => {
    const ws = await world([{}])
    const [row] = await api.pool.query<{ uuid: string }>('select uuid from event where scope_id = $1', [
      ws.scopes.test.scopeId,
    ])
    assertRefused(await ws.get(`/events/${row?.uuid}`), 404, 'not_found')
    await api.pool.query(
      `insert into event_seen (scope_id, uuid, pos, received_day, body_hash)
       select scope_id, uuid, pos, (received_at at time zone 'UTC')::date, 0
       from event
       where scope_id = $1`,
      [ws.scopes.test.scopeId],
    )
    const { status, body } = await ws.get(`/events/${row?.uuid.toUpperCase()}`)
    assert.deepEqual([status, body.id, body.position], [200, row?.uuid, 1])
    assert.equal(body.processing_lag_ms, 0)
    assertRefused(await ws.get(`/events/${row?.uuid}`, { environment: 'live' }), 404, 'not_found')
    assertRefused(await ws.get('/events/none'), 404, 'not_found')
  })
})

const range = { start: '2026-03-28T00:00:00Z', end: '2026-03-31T00:00:00Z', timezone: 'Europe/Oslo' }
const trend = { type: 'trend', time_range: range, interval: 'day', series: [{ event: 'opened' }] }
const funnel = {
  ...{ type: 'funnel', time_range: range, window: { value: 1, unit: 'day' }, start: 'first' },
  steps: [{ event: 'opened' }, { event: 'bought' }],
}
const retention = {
  ...{ type: 'retention', time_range: range, period: 'day', periods: 2 },
  ...{ start_event: { event: 'opened' }, return_event: { event: 'opened' } },
}

describe('POST /event_queries', () => {
  test('answers a trend with empty buckets, over the night when clocks change', async () => {
    const ws = await world([{}, { at: noon + 24 * hourMs, value: 3 }, { at: noon + 35 * hourMs, record: bob }])
    const { status, body } = await ws.post('/event_queries', {
      ...trend,
      series: [{ event: 'opened' }, { event: 'none' }],
    })
    assert.equal(status, 200)
    const [opened, none] = body.series
    assert.deepEqual(opened.groups, [
      {
        key: {},
        total: 3,
        data: [
          { time: '2026-03-27T23:00:00.000Z', value: 1 },
          { time: '2026-03-28T23:00:00.000Z', value: 1 },
          { time: '2026-03-29T22:00:00.000Z', value: 1 },
          { time: '2026-03-30T22:00:00.000Z', value: 0 },
        ],
      },
    ])
    assert.deepEqual([none.groups[0].total, none.groups[0].data.length, none.measure], [0, 4, 'count'])
    assert.deepEqual([body.meta.engine, body.meta.exact, body.meta.truncated], ['rollup', true, false])
    assert.ok(Date.parse(body.meta.as_of) > noon)
  })

  test('groups, and answers what has no place together', async () => {
    const ws = await world(['a', 'a', 'b', 'c'].map((plan) => ({ properties: { plan } })))
    const group_by = [{ scope: 'event', property: 'plan', limit: 1 }]
    const { body } = await ws.post('/event_queries', { ...trend, type: 'count', interval: undefined, group_by })
    const [{ groups, other }] = body.series
    assert.deepEqual([groups[0].key, groups[0].total, other.total, body.meta.truncated], [{ plan: 'a' }, 2, 2, true])
    const customers = await ws.post('/event_queries', {
      ...trend,
      group_by: [{ scope: 'customer', property: 'country' }],
    })
    assert.deepEqual(customers.body.series[0].groups[0].key, { country: 'NO' })
  })

  test('answers funnels and retention', async () => {
    const ws = await world([
      {},
      { event: 'bought', record: old },
      { record: bob, at: noon },
      { record: bob, at: noon + 24 * hourMs },
    ])
    const { body } = await ws.post('/event_queries', funnel)
    assert.deepEqual(body.steps, [
      { event: 'opened', count: 2, conversion_from_previous: null, conversion_from_start: 1, median_time_s: null },
      { event: 'bought', count: 1, conversion_from_previous: 0.5, conversion_from_start: 0.5, median_time_s: 3600 },
    ])
    const kept = await ws.post('/event_queries', retention)
    assert.deepEqual(kept.body.cohorts[0], {
      time: '2026-03-27T23:00:00.000Z',
      size: 2,
      returning: [
        { period: 1, customers: 1, rate: 0.5 },
        { period: 2, customers: 0, rate: 0 },
      ],
    })
  })

  test('asks for members of a segment, or for the others', async () => {
    const ws = await world([{ record: old }, {}, { record: bob }])
    const { scopeId } = ws.scopes.test
    const segment = `seg_${randomUUID()}`
    await api.pool.query(
      `with made as (
         insert into segment (scope_id, public_id, name, version, definition, status)
         values ($1, $2, 's', 1, '{}', 'ready')
         returning id
       ), version as (
         insert into segment_version (scope_id, segment_id, state, definition)
         select $1, id, 'serving', '{}'
         from made
         returning id
       )
       insert into membership (scope_id, version_id, customer_id, since, told)
       select $1, id, $3, now(), true
       from version`,
      [scopeId, segment, ada],
    )
    const count = async (is: boolean) => {
      const filters = [{ scope: 'membership', segment, is }]
      const { body } = await ws.post('/event_queries', { ...trend, type: 'count', interval: undefined, filters })
      return body.series[0].groups[0].total
    }
    assert.deepEqual([await count(true), await count(false)], [2, 1])
  })

  test('every limit holds, and one beyond says what is wrong', async () => {
    const ws = await world([])
    const ok = async (query: object) => {
      const { status, body } = await ws.post('/event_queries', query)
      assert.equal(status, 200, JSON.stringify(body))
    }
    const wrong = async (query: object, param: string) =>
      assertRefused(await ws.post('/event_queries', query), 400, 'invalid_request', param)
    const repeat = <T>(length: number, value: T): T[] => Array.from({ length }, () => value)
    const days = (n: number) => ({
      start: '2025-01-01T00:00:00Z',
      end: new Date(Date.parse('2025-01-01T00:00:00Z') + n * 24 * hourMs).toISOString(),
    })
    const [opened] = trend.series
    await ok({ ...trend, time_range: days(400) })
    await wrong({ ...trend, time_range: { ...days(400), start: '2024-12-31T23:59:59.999Z' } }, 'time_range')
    await ok({ ...trend, time_range: days(400), interval: 'hour' })
    await ok({ ...trend, series: repeat(10, opened) })
    await wrong({ ...trend, series: repeat(11, opened) }, 'series')
    await wrong({ ...trend, series: [] }, 'series')
    const groups = (limit: number) => [{ scope: 'event', property: 'p', limit }]
    await ok({ ...trend, group_by: groups(1000) })
    await wrong({ ...trend, group_by: groups(1001) }, 'group_by[0].limit')
    await wrong({ ...trend, time_range: days(400), group_by: groups(1000) }, 'group_by')
    await ok({ ...funnel, steps: repeat(20, opened) })
    await ok({ ...funnel, steps: repeat(20, opened), start: 'any', order: 'strict' })
    await wrong({ ...funnel, steps: repeat(21, opened) }, 'steps')
    await wrong({ ...funnel, steps: repeat(1, opened) }, 'steps')
    await wrong({ ...funnel, start: undefined }, 'start')
    await wrong({ ...funnel, window: { value: 401, unit: 'day' } }, 'window.value')
    await ok({ ...retention, periods: 24 })
    await wrong({ ...retention, periods: 25 }, 'periods')
    await wrong({ ...trend, time_range: { ...range, timezone: 'Mars/Olympus' } }, 'time_range.timezone')
    await wrong({ ...trend, time_range: { ...range, timezone: '+02:00' } }, 'time_range.timezone')
    await wrong({ ...trend, time_range: { ...range, end: range.start } }, 'time_range.end')
    await wrong({ ...trend, interval: 'minute' }, 'interval')
    await wrong({ ...trend, steps: [] }, 'steps')
    await wrong({ ...trend, filters: [{ scope: 'event', property: 'a', op: 'like', value: 'x' }] }, 'filters[0].op')
    await wrong({ ...trend, filters: [{ scope: 'membership', segment: 'seg_none', is: true }] }, 'filters')
    await wrong(
      { ...trend, series: [{ event: 'e', measure: { type: 'count', property: 'x' } }] },
      'series[0].measure.property',
    )
    assertRefused(await ws.post('/event_queries', { ...trend, no: 1 }), 400, 'unknown_field', 'no')
  })

  test('sums that no number can hold are refused, and do not stop anything', async () => {
    const ws = await world([{ value: 1.7e308 }, { value: 1.7e308 }, { value: 1 }])
    const sum = (type: string) => ({ ...trend, series: [{ event: 'opened', measure: { type } }] })
    assertRefused(
      await ws.post('/event_queries', { ...sum('sum'), type: 'count', interval: undefined }),
      400,
      'invalid_request',
    )
    const { body } = await ws.post('/event_queries', sum('max'))
    assert.equal(body.series[0].groups[0].total, 1.7e308)
  })

  test('only 240 a minute are answered, and every answer says how many are left', async () => {
    const ws = await world([])
    const first = await ws.post('/event_queries', trend)
    assert.equal(first.headers.get('ratelimit-limit'), String(queriesPerMinuteMax))
    const left = Number(first.headers.get('ratelimit-remaining'))
    assert.ok(left === queriesPerMinuteMax - 1)
    let answer = first
    // A new minute may begin on the way.
    for (let i = 0; i < 2 * queriesPerMinuteMax && answer.status !== 429; i++)
      answer = await ws.post('/event_queries', { type: 'none', time_range: null })
    assertRefused(answer, 429, 'rate_limited')
    assert.equal(answer.headers.get('ratelimit-remaining'), '0')
    assert.ok(Number(answer.headers.get('retry-after')) <= 60)
  })

  test('an answer may be fetched later', async () => {
    const ws = await world([{}])
    const asked = await ws.post('/event_queries', trend, { headers: { prefer: 'respond-async' } })
    assert.deepEqual(
      [asked.status, asked.body.status, asked.headers.get('preference-applied')],
      [202, 'running', 'respond-async'],
    )
    let answer = asked
    while (answer.body.status === 'running') answer = await ws.get(`/event_queries/${asked.body.id}`)
    assert.deepEqual([answer.status, answer.body.status, answer.body.id], [200, 'completed', asked.body.id])
    assert.equal(answer.body.series[0].groups[0].total, 1)
    assertRefused(await (await world([])).get(`/event_queries/${asked.body.id}`), 404, 'not_found')
    const lost = await ws.post('/event_queries', trend, { headers: { prefer: 'respond-async' } })
    // Answered first: what runs for an hour is not answered any more.
    while ((await ws.get(`/event_queries/${lost.body.id}`)).body.status === 'running') await nextTurn()
    await api.pool.query(
      `update event_query set status = 'running', result = null, created_at = now() - interval '1 hour' where id = $1`,
      [lost.body.id],
    )
    assert.equal((await ws.get(`/event_queries/${lost.body.id}`)).body.status, 'failed')
  })

  test('a query ends when nobody waits for its answer any more', async () => {
    const ws = await world([{}])
    const asking = `select 1 from pg_stat_activity
      where datname = current_database() and application_name = 'turnpike event queries' and wait_event_type = 'Lock'`
    const waits = async () => (await api.pool.query(asking)).length > 0
    await api.pool.transaction(async (tx) => {
      await tx.query('set local idle_in_transaction_session_timeout = 0')
      await tx.query('lock table event in access exclusive mode')
      const gone = new AbortController()
      const asked = fetch(`${api.url}/v1/event_queries`, {
        ...{ method: 'POST', signal: gone.signal, body: JSON.stringify(funnel) },
        headers: { authorization: `Bearer ${ws.key}`, 'x-service-env': 'test', 'content-type': 'application/json' },
      })
      while (!(await waits())) await nextTurn()
      const since = performance.now()
      gone.abort()
      await assert.rejects(asked)
      while (await waits()) await nextTurn()
      assert.ok(performance.now() - since < queryMsMax / 2, 'not by its limit of time')
    })
    assert.equal((await ws.post('/event_queries', funnel)).status, 200)
  })

  test('while as many run as may, others and results of experiments wait, those for later have a place of their own, and slots answer', async () => {
    const { questionsAtOnce } = capacity
    const asking = `select 1 from pg_stat_activity
      where datname = current_database() and application_name = 'turnpike event queries' and wait_event_type = 'Lock'`
    const untilAsking = async (count: number) => {
      while ((await api.pool.query(asking)).length !== count) await nextTurn()
    }
    const ws = await world([{}])
    const other = await world([{}])
    const asked: Promise<Answer>[] = []
    const variants = ['a', 'b'].map((id) => ({ id, weight: 0.5, is_holdout: false }))
    assert.equal((await other.post('/experiments', { key: 'price', variants })).status, 201)
    let later: Answer | undefined
    let results: Answer | undefined
    await api.pool.transaction(async (tx) => {
      await tx.query('set local idle_in_transaction_session_timeout = 0')
      await tx.query('lock table event in access exclusive mode')
      for (let i = 0; i <= questionsAtOnce; i++) asked.push(ws.post('/event_queries', funnel))
      await untilAsking(questionsAtOnce)
      asked.push(other.post('/event_queries', funnel))
      // They read nothing that is locked: only their turn is waited for.
      asked.push(other.get('/experiments/price/results').then((answer) => (results = answer)))
      later = await other.post('/event_queries', funnel, { headers: { prefer: 'respond-async' } })
      assert.equal(later.status, 202)
      await untilAsking(questionsAtOnce + 1)
      const { body } = await other.post('/event_queries', { ...trend, type: 'count', interval: undefined })
      assert.deepEqual([body.meta.engine, body.series[0].groups[0].total], ['rollup', 1])
      assert.equal(results, undefined)
    })
    assert.deepEqual(
      (await Promise.all(asked)).map(({ status }) => status),
      asked.map(() => 200),
    )
    const answer = () => other.get(`/event_queries/${later?.body.id}`)
    while ((await answer()).body.status === 'running') await nextTurn()
    assert.equal((await answer()).body.status, 'completed')
  })

  test('nothing that is sent makes it fail', async () => {
    const ws = await world([{ properties: { a: 'x' } }, { event: 'bought' }])
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: 'binary' }), fc.double())
    const mutated = fc
      .tuple(
        fc.constantFrom<Record<string, unknown>>(trend, funnel, retention),
        fc.dictionary(
          fc.constantFrom(
            'type',
            'time_range',
            'interval',
            'series',
            'filters',
            'group_by',
            'steps',
            'window',
            'order',
            'app_id',
          ),
          fc.oneof(value, fc.array(value, { maxLength: 2 })),
          { maxKeys: 2 },
        ),
        fc.record({
          scope: fc.constantFrom('event', 'customer'),
          property: fc.string({ unit: 'binary' }),
          op: fc.constantFrom('eq', 'in', 'gt', 'contains', 'ends_with'),
          value,
        }),
      )
      .map(([query, changes, filter]) => ({ filters: [filter], ...query, ...changes }))
    await fc.assert(
      fc.asyncProperty(mutated, async (query) => {
        const workspace = { ...ws }
        const { status, body } = await workspace.post('/event_queries', query)
        assert.ok(status === 200 || status === 400 || status === 429, `${status} ${JSON.stringify(body)}`)
      }),
      { numRuns: 60 },
    )
  })
})

describe('POST /event_exports', () => {
  test('asks for either a time range or a position, and a format that is there', async () => {
    const ws = await world([{}])
    const asked = await ws.post('/event_exports', { format: 'jsonl.gz', from_position: 0 })
    assert.deepEqual(
      [asked.status, asked.body.status, asked.body.to_position, asked.body.files],
      [202, 'pending', 1, []],
    )
    assert.deepEqual((await ws.get(`/event_exports/${asked.body.id}`)).body, asked.body)
    assertRefused(
      await ws.post('/event_exports', { format: 'parquet', from_position: 0 }),
      400,
      'invalid_request',
      'format',
    )
    const { start, end } = range
    const beyond = { start, end: '9999-12-31T23:59:59-15:00' } // in UTC a day of the year 10000
    const late = await ws.post('/event_exports', { format: 'jsonl.gz', time_range: beyond })
    assertRefused(late, 400, 'invalid_request', 'time_range.end')
    const both = { format: 'jsonl.gz', from_position: 0, time_range: { start, end } }
    assertRefused(await ws.post('/event_exports', both), 400, 'invalid_request', 'time_range')
    assertRefused(await ws.post('/event_exports', { format: 'jsonl.gz' }), 400, 'invalid_request', 'time_range')
    assertRefused(await ws.get(`/event_exports/${asked.body.id}/files/1`), 404, 'not_found')
    for (let i = 1; i < 10; i++)
      assert.equal((await ws.post('/event_exports', { format: 'jsonl.gz', from_position: 0 })).status, 202)
    assertRefused(await ws.post('/event_exports', { format: 'jsonl.gz', from_position: 0 }), 429, 'rate_limited')
  })
})
