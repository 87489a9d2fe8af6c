import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { createTally, effects, runTally, tallied, tally } from '../../test/harness/tally.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
import { laneLag } from './lag.ts'
import { selectLogMark } from './lag-store.ts'
import { checkLogMeta } from './log-meta.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import type { NewEvent } from './types.ts'

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

function event(fields: Record<string, unknown> = {}, at = receivedAt): NewEvent {
  const judged = normalise(
    { event: 'e', distinct_id: 'u1', uuid: randomUUID(), ...fields },
    { receivedAt: at, trust: 'device' },
  )
  assert.equal(judged.kind, 'event')
  return judged.event
}

const origin = () => ({ scopeId: scope.scopeId, appId: 'app_1' })
const live = (events: NewEvent[]) => log.appendBatch(origin(), events, { stream: 'live' })

test('the first event that a database ever logs is seen by looking, also when nobody calls', async () => {
  await using fresh = await testDatabase()
  await ensurePartitions(fresh.pool)
  const before = await selectLogMark(fresh.pool)
  assert.equal((await selectLogMark(fresh.pool)).seq, before.seq)
  const to = await testScope(fresh.pool)
  const first = createLog({ url: fresh.url, tombstoneKey: Buffer.from('key'), clock: systemClock })
  await first.append({ scopeId: to.scopeId, appId: null }, event())
  await first[Symbol.asyncDispose]()
  assert.notEqual((await selectLogMark(fresh.pool)).seq, before.seq)
})

test('a lane that fails does not hold up the others', async () => {
  const other = await testScope(pool)
  let away = true
  const projection: typeof tally = {
    ...tally,
    load: (sql, to, events) =>
      away && to.scopeId === scope.scopeId
        ? Promise.reject(new Error('Connection terminated unexpectedly'))
        : tally.load(sql, to, events),
  }
  await live([event()])
  for (let n = 0; n < 5; n++) await log.append({ scopeId: other.scopeId, appId: null }, event({ value: n }))
  await using lanes = runTally(url, { projection })
  await lanes.taken(5)
  assert.deepEqual(await tallied(pool, other), { u1: [5, 10] })
  assert.deepEqual(await tallied(pool, scope), {})
  away = false
  await lanes.taken(6)
  assert.deepEqual(await tallied(pool, scope), { u1: [1, 0] })
})

test('an event received by a host whose clock is years off does not stop the lane', async () => {
  await live([event({}, Date.parse('2031-05-05T00:00:00Z')), event({}, Date.parse('1999-01-01T00:00:00Z')), event()])
  await using lanes = runTally(url)
  await lanes.taken(3)
  assert.equal((await effects(pool, scope)).length, 3)
})

test('rows behind a transaction that is still open wait for it, and are then taken in their order', async () => {
  await using lanes = runTally(url)
  await live([event({ value: 0 })])
  await lanes.taken(1)
  const early = event({ value: 1 })
  await pool.transaction(async (tx) => {
    await insertRow(tx, early)
    await live([event({ value: 2 })])
    await assert.rejects(effectsOf(2, 150), /not yet/)
  })
  await lanes.taken(3)
  assert.deepEqual(
    (await effects(pool, scope)).map(({ value }) => value),
    [0, 1, 2],
  )
})

const insertRow = (sql: { query: typeof pool.query }, { uuid, distinctId, text }: NewEvent) =>
  sql.query(
    `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload) values ($1, 0, $2, $3, $4, $5)`,
    [scope.scopeId, uuid, distinctId, new Date(receivedAt), text],
  )

/** Fails unless so many events are applied within the time: what must not happen has had its chance. */
async function effectsOf(count: number, ms: number): Promise<void> {
  const until = systemClock.now() + ms
  while (systemClock.now() < until) {
    if ((await effects(pool, scope)).length >= count) return
  }
  throw new Error('not yet')
}

test('events whose wake-up was lost are found by looking', async () => {
  await using lanes = runTally(url)
  await live([event()])
  await lanes.taken(1)
  await insertRow(pool, event())
  await lanes.taken(2)
  await insertRow(pool, event())
  await lanes.taken(3)
})

test('a worker that stops leaves its lanes to others at once; one that dies, after its lease', async () => {
  await live([event()])
  {
    await using first = runTally(url)
    await first.taken(1)
  }
  const [released] = await pool.query<{ free: boolean }>('select lease_until < now() as free from lane where id = $1', [
    scope.scopeId,
  ])
  assert.equal(released?.free, true)

  await pool.query(
    `update lane set owner = 'dead', fence = fence + 1, lease_until = now() + interval '700 ms' where id = $1`,
    [scope.scopeId],
  )
  await live([event()])
  await using second = runTally(url)
  await second.taken(1)
  const [lane] = await pool.query<{ owner: string; fence: bigint }>('select owner, fence from lane where id = $1', [
    scope.scopeId,
  ])
  assert.notEqual(lane?.owner, 'dead')
  assert.equal((await effects(pool, scope)).length, 2)
})

test('several workers share the lanes without doing anything twice', async () => {
  const scopes = [scope, await testScope(pool), await testScope(pool)]
  await using first = runTally(url)
  await using second = runTally(url)
  for (let n = 0; n < 60; n++) {
    await Promise.all(scopes.map(({ scopeId }) => log.append({ scopeId, appId: null }, event({ value: n }))))
  }
  const all = () => [...first.slices, ...second.slices].reduce((sum, { read }) => sum + read, 0)
  await Promise.race([first.until(() => all() >= 180), second.until(() => all() >= 180)])
  for (const each of scopes)
    assert.deepEqual(
      (await effects(pool, each)).map(({ value }) => value),
      Array.from({ length: 60 }, (_, n) => n),
    )
})

test('a lease from a clock that was set back does not lock the lane', async () => {
  await pool.query(`update lane set owner = 'other', lease_until = now() + interval '1 year' where id = $1`, [
    scope.scopeId,
  ])
  await live([event()])
  await using lanes = runTally(url)
  await lanes.taken(1)
})

test('rows logged by a clock that was set back by days are found', async () => {
  await live([event()])
  {
    await using lanes = runTally(url)
    await lanes.taken(1)
  }
  // As if all so far had been logged in the future: what comes now lies days before it.
  await pool.query(`update lane set live_logged_at = now() + interval '5 days' where id = $1`, [scope.scopeId])
  await live([event(), event()])
  await using lanes = runTally(url)
  await lanes.taken(2)
  await live([event()])
  await lanes.taken(3)
  assert.equal((await effects(pool, scope)).length, 4)
})

test('after a restore into another cluster the order goes on, and nothing waiting is lost', async () => {
  await using other = await testDatabase()
  await ensurePartitions(other.pool)
  await createTally(other.pool)
  assert.equal(await checkLogMeta(other.pool), 1)
  const restored = await testScope(other.pool)
  await using target = createLog({ url: other.url, tombstoneKey: Buffer.from('key'), clock: systemClock })
  const to = { scopeId: restored.scopeId, appId: null }
  await target.append(to, event({ value: 1 }))
  {
    await using lanes = runTally(other.url)
    await lanes.taken(1)
  }
  await target.append(to, event({ value: 2 }))
  // As after a restore: rows and cursor carry transaction ids that this cluster will reach in years.
  await other.pool.query(`update event_log set xid = (xid::text::bigint + 1000000000000)::text::xid8`)
  await other.pool.query(`update lane set live_xid = (live_xid::text::bigint + 1000000000000)::text::xid8`)
  await other.pool.query(`update log_meta set system_identifier = 'another'`)
  assert.equal(await checkLogMeta(other.pool), 2)
  assert.equal(await checkLogMeta(other.pool), 2)
  await target.append(to, event({ value: 3 }))
  await using lanes = runTally(other.url)
  await lanes.taken(2)
  assert.deepEqual(
    (await effects(other.pool, restored)).map(({ value }) => value),
    [1, 2, 3],
  )

  await other.pool.query(`update log_meta set last_xid = '999999999999'`)
  assert.equal(await checkLogMeta(other.pool), 3)
})

test('lag is the age of the oldest row and the number of those that wait, imports apart', async () => {
  await using other = await testDatabase()
  await ensurePartitions(other.pool)
  await checkLogMeta(other.pool)
  await createTally(other.pool)
  const none = { lagMs: 0, rows: 0 }
  assert.deepEqual(await laneLag(other.pool), { ...none, historical: none })
  const behind = await testScope(other.pool)
  await using target = createLog({ url: other.url, tombstoneKey: Buffer.from('key'), clock: systemClock })
  const to = { scopeId: behind.scopeId, appId: null }
  await target.appendBatch(to, [event(), event(), event()], { stream: 'live' })
  await other.pool.query(`update event_log set logged_at = logged_at - interval '1 second'`)
  await target.appendBatch(to, [event()], { stream: 'historical' })
  const lag = await laneLag(other.pool)
  assert.equal(lag.rows, 3)
  assert.ok(lag.lagMs >= 1000 && lag.lagMs < 60_000, String(lag.lagMs))
  assert.equal(lag.historical.rows, 1)
  await using lanes = runTally(other.url)
  await lanes.taken(4)
  assert.deepEqual(await laneLag(other.pool), { ...none, historical: none })
})
