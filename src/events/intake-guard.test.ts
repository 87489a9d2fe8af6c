import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { after, beforeEach, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { silent } from '../../test/harness/server.ts'
import { createTally, runTally } from '../../test/harness/tally.ts'
import { systemClock } from '../kernel/clock.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
import { freshness } from './freshness.ts'
import { createIntakeGuard } from './intake-guard.ts'
import { checkLogMeta } from './log-meta.ts'
import { logBytes, selectUnprocessedBytes } from './log-size-store.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import type { NewEvent, Stream } from './types.ts'

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

function event(): NewEvent {
  const judged = normalise(
    { event: 'e', distinct_id: 'u1', uuid: randomUUID() },
    { receivedAt: Date.now(), trust: 'device' },
  )
  assert.equal(judged.kind, 'event')
  return judged.event
}

const append = (n: number, stream: Stream = 'live') =>
  log.appendBatch({ scopeId: scope.scopeId, appId: null }, Array.from({ length: n }, event), { stream })

const isBusy = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Refusal)
  assert.equal(error.code, 'service_unavailable')
  const { retryAfterS = 0 } = error.detail
  assert.ok(retryAfterS >= 1 && retryAfterS <= 8)
  return words.test(error.message)
}

test('events are refused while more of the log waits than may, and taken again when it was applied', async () => {
  await append(200)
  await append(100, 'historical')
  const waiting = await selectUnprocessedBytes(pool)
  // Payload and what a row takes beside it, for 300 rows.
  assert.ok(waiting > 300 * 250 && waiting < 300 * 600, String(waiting))
  assert.ok((await logBytes(pool)) > 0)
  const told: object[] = []
  const logger = { ...silent, error: (fields: object) => told.push(fields) }
  const guardOf = (unprocessedBytesMax: number) =>
    createIntakeGuard({ pool, log: logger, dataDir: null, limits: { unprocessedBytesMax, freeDiskShareMin: 0 } })
  using roomy = guardOf(waiting)
  await roomy.look()
  roomy.check()
  using guard = guardOf(waiting - 1)
  await guard.look()
  await guard.look()
  assert.throws(() => guard.check(), isBusy(/Too many events wait/))
  assert.deepEqual(told, [{ why: 'Too many events wait to be processed.' }])

  await using refusing = createLog({ url, tombstoneKey: Buffer.from('key'), clock: systemClock, guard: guard.check })
  const origin = { scopeId: scope.scopeId, appId: null }
  await assert.rejects(refusing.append(origin, event()), isBusy(/Retry/))
  await assert.rejects(refusing.appendBatch(origin, [event()], { stream: 'live' }), isBusy(/Retry/))
  await using lanes = runTally(url)
  await lanes.taken(300)
  assert.equal(await selectUnprocessedBytes(pool), 0)
  await guard.look()
  guard.check()
  assert.equal(await refusing.append(origin, event()), 'accepted')
})

test('events are refused while the disk of the embedded database is almost full', async () => {
  const guardOf = (freeDiskShareMin: number, dataDir: string | null) =>
    createIntakeGuard({
      pool,
      log: silent,
      dataDir,
      limits: { unprocessedBytesMax: Number.MAX_VALUE, freeDiskShareMin },
    })
  using full = guardOf(1.01, tmpdir())
  await full.look()
  assert.throws(() => full.check(), isBusy(/disk is almost full/))
  using roomy = guardOf(0, tmpdir())
  await roomy.look()
  roomy.check()
  using elsewhere = guardOf(1.01, null)
  await elsewhere.look()
  elsewhere.check()
})

test('an answer about a lane is as of now when nothing waits, else as of the oldest live event that does', async () => {
  const [clock] = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  const before = Number(clock?.now)
  const idle = await freshness(pool, scope)
  assert.ok(idle.asOf >= before)
  assert.deepEqual([idle.processingLagMs, idle.historicalPending], [0, 0])

  await append(3, 'historical')
  assert.equal((await freshness(pool, scope)).historicalPending, 3)
  assert.equal((await freshness(pool, scope)).processingLagMs, 0)

  await append(2)
  await pool.query(`update event_log set logged_at = logged_at - interval '5 seconds' where lane = $1 and stream = 0`, [
    scope.scopeId,
  ])
  const behind = await freshness(pool, scope)
  assert.ok(behind.processingLagMs >= 5000 && behind.processingLagMs < 60_000, String(behind.processingLagMs))
  assert.ok(behind.asOf < before)
  const [oldest] = await pool.query<{ at: Date }>(
    'select min(logged_at) as at from event_log where lane = $1 and stream = 0',
    [scope.scopeId],
  )
  assert.equal(behind.asOf, Number(oldest?.at))
  assert.equal((await freshness(pool, await testScope(pool))).processingLagMs, 0)

  await using lanes = runTally(url)
  await lanes.until((slices) => slices.reduce((sum, { read }) => sum + read, 0) >= 5)
  assert.equal((await freshness(pool, scope)).processingLagMs, 0)
})
