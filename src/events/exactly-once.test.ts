import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cutProxy } from '../../test/harness/cut-proxy.ts'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { createTally, effects, hear, runTally, tallied, tally } from '../../test/harness/tally.ts'
import { Pool, type Sql } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import type { Scope } from '../tenancy/index.ts'
import { acquireLane, laneSettings } from './lane-store.ts'
import { checkLogMeta } from './log-meta.ts'
import { ensurePartitions } from './partitions.ts'
import { applySlice } from './slice.ts'
import type { EventPayload } from './types.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
await checkLogMeta(pool)
await createTally(pool)
after(() => database[Symbol.asyncDispose]())

let scope: Scope
beforeEach(async () => {
  scope = await testScope(pool)
})

/** Straight into the log, as any writer's transaction does. */
async function log(sql: Sql, distinctId: string, value: number, uuid: string = randomUUID()): Promise<void> {
  const payload: EventPayload = {
    ...{ event: 'e', distinct_id: distinctId, uuid, timestamp: '2026-11-20T12:00:00.000Z' },
    ...{ properties: {}, value, trust: 'device' },
  }
  await sql.query(
    `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload) values ($1, 0, $2, $3, now(), $4)`,
    [scope.scopeId, uuid, distinctId, JSON.stringify(payload)],
  )
}

const inSlices = async (counts: number[]) => {
  let n = 0
  for (const count of counts)
    await pool.transaction(async (tx) => {
      for (let i = 0; i < count; i++) await log(tx, `u${n % 3}`, ++n)
    })
}

test('a connection lost before or after any statement of the lane loses nothing and doubles nothing', async () => {
  await using counting = await cutProxy(url)
  await inSlices([5])
  {
    await using lanes = runTally(counting.url)
    await lanes.taken(5)
  }
  const statements = counting.statements
  assert.ok(statements > 10, String(statements))

  for (const when of ['before', 'after'] as const) {
    for (let n = 1; n <= statements; n++) {
      scope = await testScope(pool)
      await inSlices([4])
      await using proxy = await cutProxy(url)
      proxy.cut(n, when)
      {
        await using lanes = runTally(proxy.url)
        await Promise.race([proxy.done, lanes.taken(4)])
      }
      // Whatever happened, another worker finishes it.
      await inSlices([2])
      await using lanes = runTally(url)
      await lanes.until(() => true)
      await untilDone()
      const applied = await effects(pool, scope)
      assert.equal(applied.length, 6, `${when} statement ${n}`)
      assert.deepEqual(await tallied(pool, scope), { u0: [3, 1 + 4 + 1], u1: [2, 2 + 2], u2: [1, 3] })
    }
  }
})

/** Until no row waits in the scope. */
async function untilDone(): Promise<void> {
  for (;;) {
    const [row] = await pool.query<{ waiting: boolean }>(
      `select exists (
        select true from event_log e join lane l on l.id = e.lane
        where l.id = $1 and (e.gen, e.xid, e.seq) > (l.live_gen, l.live_xid, l.live_seq)) as waiting`,
      [scope.scopeId],
    )
    if (row?.waiting === false) return
    await sleep(5)
  }
}

test('a worker that lost its lane writes nothing, whenever it wakes up', async () => {
  await inSlices([3])
  await using lanePool = new Pool(url, { name: 'zombie', max: 2, pipeline: true, settings: laneSettings })
  const work = { pool: lanePool, reading: lanePool, projection: tally, consumers: [hear], months: new Set<number>() }
  const zombie = must(
    await lanePool.connected((client) => acquireLane(client, scope.scopeId, 'zombie')),
    'the lane is free',
  )
  await pool.query(`update lane set lease_until = now() - interval '1 second' where id = $1`, [scope.scopeId])

  // Before the other has done anything, and with the cursor still where the zombie read it.
  const other = must(
    await lanePool.connected((client) => acquireLane(client, scope.scopeId, 'other')),
    'the lane is free again',
  )
  assert.deepEqual(await sliceOf(work, zombie), { kind: 'lost' })
  assert.equal((await effects(pool, scope)).length, 0)

  // While the other is at work: the zombie read before, and writes after it.
  const projection: typeof tally = {
    ...tally,
    async load(sql, to, events) {
      const state = await tally.load(sql, to, events)
      assert.equal((await sliceOf(work, other)).kind, 'applied')
      return state
    },
  }
  assert.deepEqual(await sliceOf({ ...work, projection }, zombie), { kind: 'lost' })
  assert.deepEqual(
    (await effects(pool, scope)).map(({ value }) => value),
    [1, 2, 3],
  )

  // The same worker, with the right fence but a cursor of the past.
  assert.deepEqual(await sliceOf(work, other), { kind: 'lost' })
  assert.equal((await effects(pool, scope)).length, 3)
})

/** Transactions of other tests on the server may hold the rows back for a moment. */
async function sliceOf(work: Parameters<typeof applySlice>[0], lane: Parameters<typeof applySlice>[1]) {
  for (;;) {
    const result = await applySlice(work, lane, 'live')
    if (result.kind !== 'unsafe') return result
    await sleep(2)
  }
}

test('nobody takes a lane whose lease runs', async () => {
  await pool.connected(async (client) => {
    const first = must(await acquireLane(client, scope.scopeId, 'a'), 'the lane is free')
    assert.equal(await acquireLane(client, scope.scopeId, 'b'), null)
    const again = must(await acquireLane(client, scope.scopeId, 'a'), 'its own lane')
    assert.equal(Number(again.fence), Number(first.fence) + 1)
    assert.equal(await acquireLane(client, 2 ** 30, 'a'), null)
  })
})

test('the cursor loses and repeats nothing under writers that commit late, out of order, or not at all', async () => {
  const writers = 12
  const transactions = 25
  await using writing = new Pool(url, { name: 'writers', max: writers })
  await using lanes = runTally(url)
  const committed: string[] = []
  const work = Array.from({ length: writers }, async (_, writer) => {
    let n = 0
    for (let i = 0; i < transactions; i++) {
      const uuids = Array.from({ length: Math.ceil(Math.random() * 4) }, () => randomUUID())
      const outcome = await writing
        .transaction(async (tx) => {
          // Some take their transaction id long before their rows, some wait between rows: commits overlap in every way.
          if (Math.random() < 0.3) await tx.query('select pg_current_xact_id()')
          for (const uuid of uuids) {
            if (Math.random() < 0.4) await tx.query('select pg_sleep($1)', [Math.random() * 0.01])
            await log(tx, `w${writer}`, n++, uuid)
          }
          if (Math.random() < 0.2) throw new Error('taken back')
        })
        .then(
          () => 'committed',
          () => 'taken back',
        )
      if (outcome === 'committed') committed.push(...uuids)
    }
  })
  await Promise.all(work)
  await lanes.taken(committed.length)
  const applied = await effects(pool, scope)
  assert.deepEqual(applied.map(({ uuid }) => uuid).toSorted(), committed.toSorted())
  assert.equal(
    lanes.slices.reduce((sum, { duplicates }) => sum + duplicates, 0),
    0,
  )
  const inLogOrder = await pool.query<{ uuid: string }>(
    'select uuid from event_log where lane = $1 order by gen, xid, seq',
    [scope.scopeId],
  )
  assert.deepEqual(
    applied.map(({ uuid }) => uuid),
    inLogOrder.map(({ uuid }) => uuid),
  )
})

test('while connections are killed at random every committed event is applied once', async () => {
  await using _ = runTally(url)
  const committed: string[] = []
  const killing = (async () => {
    for (let n = 0; n < 25; n++) {
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name in ('turnpike lane', 'turnpike lane watch')`,
      )
      await sleep(Math.random() * 40)
    }
  })()
  for (let n = 0; n < 150; n++) {
    const uuid = randomUUID()
    // Every third one is sent twice.
    for (let i = 0; i <= Number(n % 3 === 0); i++) await log(pool, `u${n % 5}`, n, uuid)
    committed.push(uuid)
  }
  await killing
  await untilDone()
  const applied = await effects(pool, scope)
  assert.deepEqual(
    applied.map(({ uuid }) => uuid),
    committed,
  )
})
