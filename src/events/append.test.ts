import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { testDatabase } from '../../test/harness/database.ts'
import fc from '../../test/harness/random.ts'
import type { Pool } from '../db/pool.ts'
import { systemClock } from '../kernel/clock.ts'
import { Refusal } from '../kernel/errors.ts'
import { createLog, type EventLog } from './append.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import { takeBatch } from './take-batch.ts'
import type { NewEvent } from './types.ts'

const database = await testDatabase()
const { pool } = database
await ensurePartitions(pool)
const tombstoneKey = Buffer.from('a key that nobody knows')
const log = createLog({ url: database.url, tombstoneKey, clock: systemClock })
after(async () => {
  await log[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(() => pool.query('truncate event_log, customer_tombstone'))

const origin = { scopeId: 1, appId: 'app_1' }
const receipt = { receivedAt: Date.parse('2026-11-20T12:00:00.123Z'), trust: 'device' } as const

function event(fields: Record<string, unknown> = {}): NewEvent {
  const judged = normalise({ event: 'e', distinct_id: 'u1', uuid: randomUUID(), ...fields }, receipt)
  assert.equal(judged.kind, 'event')
  return judged.event
}

interface Row {
  lane: number
  stream: number
  uuid: string
  distinct_id: string
  app_id: string | null
  received_at: Date
  payload: string
}
const stored = () =>
  pool.query<Row>(
    'select lane, stream, uuid, distinct_id, app_id, received_at, payload from event_log order by xid, seq',
  )

async function bury(scopeId: number, distinctId: string): Promise<void> {
  const idHash = createHash('sha256').update(tombstoneKey).update(distinctId).digest()
  await pool.query('insert into customer_tombstone (scope_id, id_hash) values ($1, $2)', [scopeId, idHash])
}

test('an accepted event is stored as it was normalised', async () => {
  const sent = event({ distinct_id: 'ü😀"\\{}', properties: { a: 'x"\\\n' } })
  assert.equal(await log.append(origin, sent), 'accepted')
  assert.deepEqual(await stored(), [
    {
      ...{ lane: 1, stream: 0, uuid: sent.uuid, distinct_id: 'ü😀"\\{}', app_id: 'app_1' },
      ...{ received_at: new Date(receipt.receivedAt), payload: sent.text },
    },
  ])
})

test('events that wait together keep the order in which they were given', async () => {
  const events = Array.from({ length: 700 }, (_, n) => event({ value: n }))
  await Promise.all(events.map((each) => log.append(origin, each)))
  const perTransaction = await pool.query<{ values: number[] }>(
    `select array_agg((payload::json ->> 'value')::int order by seq) as values from event_log group by xid`,
  )
  assert.equal(
    perTransaction.reduce((sum, { values }) => sum + values.length, 0),
    700,
  )
  for (const { values } of perTransaction)
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
    )
})

test('an event sent after the answer of another has the later position', async () => {
  const clients = Array.from({ length: 20 }, async (_, client) => {
    for (let n = 0; n < 10; n++) await log.append(origin, event({ distinct_id: `c${client}`, value: n }))
  })
  await Promise.all(clients)
  const rows = await stored()
  for (let client = 0; client < 20; client++) {
    const values = rows.filter((row) => row.distinct_id === `c${client}`).map((row) => JSON.parse(row.payload).value)
    assert.deepEqual(values, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  }
})

test('events of a deleted customer are left out alone, in their own scope alone', async () => {
  await bury(1, 'gone')
  const other = { scopeId: 2, appId: null }
  const results = await Promise.all([
    log.append(origin, event({ distinct_id: 'gone' })),
    log.append(origin, event({ distinct_id: 'stays' })),
    log.append(other, event({ distinct_id: 'gone' })),
  ])
  assert.deepEqual(results, ['deleted', 'accepted', 'accepted'])
  assert.deepEqual(
    (await stored()).map((row) => [row.lane, row.distinct_id]),
    [
      [1, 'stays'],
      [2, 'gone'],
    ],
  )
})

test('a batch is one transaction in the order given', async () => {
  const events = Array.from({ length: 1000 }, (_, n) => event({ value: n }))
  assert.deepEqual(await log.appendBatch(origin, events, { stream: 'live' }), Array(1000).fill('accepted'))
  const rows = await stored()
  assert.deepEqual(
    rows.map((row) => JSON.parse(row.payload).value),
    Array.from({ length: 1000 }, (_, n) => n),
  )
  const [count] = await pool.query<{ n: bigint }>('select count(distinct xid) as n from event_log')
  assert.equal(count?.n, 1n)
})

test('historical events are stored by timestamp, those of equal time as given; results stay in the order given', async () => {
  await bury(1, 'gone')
  const day = (n: number) => `2026-01-0${n}T00:00:00Z`
  const events = [
    event({ timestamp: day(3), value: 0 }),
    event({ timestamp: day(1), value: 1 }),
    event({ timestamp: day(2), value: 2, distinct_id: 'gone' }),
    event({ timestamp: day(1), value: 3 }),
    event({ value: 4 }),
  ]
  const results = await log.appendBatch(origin, events, { stream: 'historical' })
  assert.deepEqual(results, ['accepted', 'accepted', 'deleted', 'accepted', 'accepted'])
  const rows = await stored()
  assert.deepEqual(
    rows.map((row) => [row.stream, JSON.parse(row.payload).value]),
    [
      [1, 1],
      [1, 3],
      [1, 0],
      [1, 4],
    ],
  )
})

test('a batch answers for every item in submitted order', async () => {
  await bury(1, 'gone')
  const good = event()
  const items = [
    { event: 'a', distinct_id: 'gone', uuid: randomUUID() },
    { event: 'b', distinct_id: 'u', uuid: good.uuid },
    { event: 7, distinct_id: 'u', uuid: randomUUID() },
    { event: '$create_alias', distinct_id: 'u', uuid: randomUUID() },
    { event: 'b', distinct_id: 'u', uuid: good.uuid.toUpperCase() },
  ]
  const reply = await takeBatch(log.appendBatch, origin, items, { ...receipt, stream: 'live' })
  assert.deepEqual(reply, {
    ...{ status: 'partial', accepted: 2, processed: 2, failed: 3, total: 5, queued: true },
    ...{ validationFailed: 1, rejectedFailed: 2, eventIds: [good.uuid, good.uuid] },
    errors: [
      { index: 0, event: 'a', error: 'customer_deleted: the customer of this distinct_id was deleted' },
      {
        index: 2,
        event: 'unknown',
        error: 'event_invalid: event must be a text without NUL and without lone surrogates',
      },
      {
        ...{
          index: 3,
          event: '$create_alias',
          error: 'endpoint_required: this event is taken by another endpoint only',
        },
        ...{ lane: 'identity', endpoint: 'POST /v1/customers/{id}/merge' },
      },
    ],
  })
  assert.equal((await stored()).length, 2)
})

test('a batch without one good item stores nothing and asks no database', async () => {
  const reply = await takeBatch(log.appendBatch, origin, [null, 1], { ...receipt, stream: 'historical' })
  assert.equal(reply.status, 'error')
  assert.equal((await stored()).length, 0)
})

test('any mix of items, live or historical: what the answer accepts is what is stored', async () => {
  await bury(1, 'gone')
  const distinctId = fc.constantFrom('u1', 'u2', 'gone', 'guest', '', 5)
  const timestamp = fc.constantFrom(undefined, '2026-01-01', '2025-05-05T05:05:05Z', 'soon')
  const item = fc.oneof(
    fc.record({
      event: fc.constantFrom('e', '$create_alias', '', 9),
      distinct_id: distinctId,
      uuid: fc.uuid(),
      timestamp,
    }),
    fc.constantFrom(null, 'x', 3, []),
  )
  const stream = fc.constantFrom('live', 'historical')
  await fc.assert(
    fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 30 }), stream, async (items, to) => {
      await pool.query('truncate event_log')
      const reply = await takeBatch(log.appendBatch, origin, items, { ...receipt, stream: to })
      assert.equal(reply.total, items.length)
      assert.equal(reply.accepted, reply.eventIds?.length ?? 0)
      assert.equal(reply.failed, reply.errors?.length ?? 0)
      assert.equal(reply.total, reply.accepted + reply.failed)
      const uuids = (await stored()).map((row) => row.uuid)
      assert.deepEqual(uuids.toSorted(), (reply.eventIds ?? []).toSorted())
    }),
    { numRuns: 60 },
  )
})

test('while the database is away callers get 503, and afterwards all is well', async () => {
  await using other = await testDatabase()
  await using orphan = createLog({ url: other.url, tombstoneKey, clock: systemClock })
  await ensurePartitions(other.pool)
  assert.equal(await orphan.append(origin, event()), 'accepted')
  const lost = await other.pool.transaction(async (tx) => {
    await tx.query('lock table event_log in access exclusive mode')
    const single = orphan.append(origin, event())
    const results = Promise.allSettled([single, orphan.appendBatch(origin, [event()], { stream: 'live' })])
    while ((await terminateWaiting(other.pool)) < 2) await setImmediate()
    return results
  })
  for (const result of lost) {
    assert.ok(result.status === 'rejected' && result.reason instanceof Refusal, JSON.stringify(result))
    assert.equal(result.reason.code, 'service_unavailable')
    const { retryAfterS } = result.reason.detail
    assert.ok(retryAfterS !== undefined && retryAfterS >= 1 && retryAfterS <= 8)
  }
  assert.equal(await orphan.append(origin, event()), 'accepted')
})

/** Ends the connections that wait for a lock, once there are two of them. */
async function terminateWaiting(other: Pool): Promise<number> {
  const ended = await other.query(
    `with waiting as (
      select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    )
    select pg_terminate_backend(pid) from waiting where (select count(*) from waiting) = 2`,
  )
  return ended.length
}

test('events that PostgreSQL refuses for a reason of their own do not fail their neighbours', async () => {
  const bad: NewEvent = { ...event(), distinctId: 'a\0b' }
  const good = event()
  const [first, second] = await Promise.allSettled([log.append(origin, bad), log.append(origin, good)])
  assert.equal(first.status, 'rejected')
  assert.deepEqual(second, { status: 'fulfilled', value: 'accepted' })
})

test('more waits than the queue holds is refused at once', async () => {
  const events = Array.from({ length: 10_300 }, () => event())
  const results = await Promise.allSettled(events.map((each) => log.append(origin, each)))
  const refused = results.filter((result) => result.status === 'rejected')
  assert.ok(refused.length >= 300)
  assert.equal((await stored()).length, events.length - refused.length)
})

/** A log whose writers all wait for the table while `work` runs. */
async function heldUp<T>(
  limits: { waitingEventsMax: number; waitingBytesMax: number; waitMsMax: number },
  work: (log: EventLog) => Promise<T>,
): Promise<T> {
  await using held = createLog({ url: database.url, tombstoneKey, clock: systemClock, limits })
  const busy = await pool.transaction(async (tx) => {
    await tx.query('lock table event_log in access exclusive mode')
    const writers: Promise<unknown>[] = []
    for (let n = 1; n <= 3; n++) {
      writers.push(n === 1 ? held.append(origin, event()) : held.appendBatch(origin, [event()], { stream: 'live' }))
      // One by one, so that each takes a writer of its own.
      while ((await waitingForLock()) < n) await setImmediate()
    }
    const settled = Promise.allSettled(writers)
    const result = await work(held)
    return { result, settled }
  })
  await busy.settled
  return busy.result
}

async function waitingForLock(): Promise<number> {
  const rows = await pool.query(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}

const isBusy = (error: unknown) => {
  assert.ok(error instanceof Refusal, String(error))
  assert.equal(error.code, 'service_unavailable')
  const { retryAfterS } = error.detail
  assert.ok(retryAfterS !== undefined && retryAfterS >= 1 && retryAfterS <= 8)
  return true
}

const roomy = { waitingEventsMax: 40, waitingBytesMax: 40 * 2 ** 20, waitMsMax: 60_000 }

test('a quarter of the queue is for single events, the rest for batches: what is beyond is refused at once', async () => {
  await heldUp(roomy, async (held) => {
    const ignored = (appending: Promise<unknown>) => void appending.catch(() => {})
    for (let n = 0; n < 10; n++) ignored(held.append(origin, event()))
    await assert.rejects(held.append(origin, event()), isBusy)
    ignored(
      held.appendBatch(
        origin,
        Array.from({ length: 29 }, () => event()),
        { stream: 'live' },
      ),
    )
    ignored(held.appendBatch(origin, [event()], { stream: 'live' }))
    await assert.rejects(held.appendBatch(origin, [event()], { stream: 'live' }), isBusy)
    assert.equal(held.stats().waitingEvents, 3 + 10 + 30)
    assert.equal(held.stats().refused, 2)
  })
})

test('the queue is bounded by bytes too', async () => {
  const text = event().text.length
  await heldUp({ ...roomy, waitingBytesMax: 4 * 3 * text }, async (held) => {
    for (let n = 0; n < 3; n++) void held.append(origin, event()).catch(() => {})
    await assert.rejects(held.append(origin, event()), isBusy)
  })
})

test('an event that no writer takes in time is refused', async () => {
  await heldUp({ ...roomy, waitMsMax: 30 }, async (held) => {
    await assert.rejects(held.append(origin, event()), isBusy)
    await assert.rejects(held.appendBatch(origin, [event()], { stream: 'live' }), isBusy)
  })
})

test('workers are told of the lanes that have something to do', async () => {
  const heard = Promise.withResolvers<string>()
  await pool.connected(async (client) => {
    client.on('notification', ({ payload }) => heard.resolve(payload ?? ''))
    await client.query('listen turnpike_lane')
    await log.append({ scopeId: 77, appId: null }, event())
    assert.equal(await heard.promise, '77')
    await client.query('unlisten turnpike_lane')
  })
})
