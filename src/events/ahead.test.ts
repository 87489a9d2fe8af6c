import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { createTally, effects, hear, runTally, tally } from '../../test/harness/tally.ts'
import { Pool } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { sliceEventsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { type Ahead, takeAhead } from './ahead.ts'
import { acquireLane, type HeldLane, laneSettings } from './lane-store.ts'
import { checkLogMeta } from './log-meta.ts'
import { ensurePartitions } from './partitions.ts'
import { applySlice, type SliceOptions } from './slice.ts'
import type { EventPayload } from './types.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
await checkLogMeta(pool)
await createTally(pool)
const lanePool = new Pool(url, { name: 'ahead', max: 2, pipeline: true, settings: laneSettings })
after(async () => {
  await lanePool[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

let scope: Scope
beforeEach(async () => {
  scope = await testScope(pool)
})

/** One transaction's rows of the log, in this order. */
async function log(events: { uuid: string; value: number }[]): Promise<void> {
  const payloads = events.map(({ uuid, value }): EventPayload => {
    const said = { event: 'e', distinct_id: 'u', uuid, timestamp: '2026-11-20T12:00:00.000Z' }
    return { ...said, properties: {}, value, trust: 'device' }
  })
  await pool.query(
    `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload)
     select $1, 0, uuid, 'u', now(), payload
     from unnest($2::uuid[], $3::text[]) with ordinality as i(uuid, payload, n)
     order by n`,
    [scope.scopeId, events.map(({ uuid }) => uuid), payloads.map((payload) => JSON.stringify(payload))],
  )
}

const newEvents = (count: number) => Array.from({ length: count }, (_, value) => ({ uuid: randomUUID(), value }))

async function held(): Promise<HeldLane> {
  const lane = await lanePool.connected((client) => acquireLane(client, scope.scopeId, 'me'))
  return must(lane, 'the lane is free')
}

/** Transactions of other tests on the server may hold the rows back for a moment. */
async function slice(lane: HeldLane, options: SliceOptions) {
  const work = { pool: lanePool, reading: lanePool, projection: tally, consumers: [hear], months: new Set<number>() }
  for (;;) {
    const result = await applySlice(work, lane, 'live', options)
    if (result.kind === 'applied') {
      lane.cursors.live = result.cursor
      return result
    }
    assert.equal(result.kind, 'unsafe')
    await sleep(2)
  }
}

test('what is read while a slice is written knows what that slice applies', async () => {
  const first = newEvents(sliceEventsMax)
  const [same, other] = [must(first[0], 'the first'), must(first[1], 'the second')]
  const again = [same, { ...other, value: -1 }, ...newEvents(1)]
  await log([...first, ...again])
  const lane = await held()
  const { ahead, applied } = await slice(lane, { readAhead: true })
  assert.equal(applied, sliceEventsMax)
  assert.equal((await must(ahead, 'it was full').found)?.rows.length, again.length)
  // Gone from the log, so that only what was read already can be applied.
  await pool.query('delete from event_log where lane = $1', [scope.scopeId])
  const { read, applied: more, duplicates, differing, ahead: none } = await slice(lane, { ahead, readAhead: true })
  assert.deepEqual([read, more, duplicates, differing], [3, 1, 2, [other.uuid]])
  assert.equal(none, null, 'nothing is read ahead of a slice that was all there was')
  assert.equal((await effects(pool, scope)).length, sliceEventsMax + 1)
})

test('what was read from another place is of no use', async () => {
  await log(newEvents(3))
  const lane = await held()
  const { live, historical } = lane.cursors
  const found = Promise.resolve({ rows: [], unsafe: false })
  const ahead: Ahead = { stream: 'live', from: live, found, seen: new Map() }
  assert.equal(await takeAhead(ahead, lane, 'live'), null, 'no rows')
  assert.equal(await takeAhead({ ...ahead, found: Promise.resolve(null) }, lane, 'live'), null, 'not read')
  assert.equal(await takeAhead({ ...ahead, from: historical }, lane, 'live'), null)
  // Even where the numbers are the same: since then somebody else may have had the lane.
  assert.equal(await takeAhead({ ...ahead, from: { ...live } }, lane, 'live'), null)
  assert.equal((await slice(lane, { ahead: { ...ahead, stream: 'historical' } })).applied, 3)
})

test('a long log with every event twice is applied once, whatever was read ahead', async () => {
  const events = newEvents(sliceEventsMax + sliceEventsMax / 4)
  await log([...events, ...events])
  await using lanes = runTally(url)
  await lanes.taken(2 * events.length)
  const applied = await effects(pool, scope)
  assert.deepEqual(
    applied.map(({ uuid }) => uuid),
    events.map(({ uuid }) => uuid),
  )
  const duplicates = lanes.slices.reduce((sum, one) => sum + one.duplicates, 0)
  assert.equal(duplicates, events.length)
})
