import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { createTally, runTally } from '../../test/harness/tally.ts'
import { systemClock } from '../kernel/clock.ts'
import { sliceEventsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
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

function event(): NewEvent {
  const judged = normalise(
    { event: 'e', distinct_id: 'u1', uuid: randomUUID() },
    { receivedAt: systemClock.now(), trust: 'device' },
  )
  assert.equal(judged.kind, 'event')
  return judged.event
}

const append = (scope: Scope, count: number) =>
  log.appendBatch({ scopeId: scope.scopeId, appId: null }, Array.from({ length: count }, event), { stream: 'live' })

/** One while it is woken, one while transactions begun before it end, one in the queue, and one for the turns under way. */
const roundsMax = 4

test('an event waits for a few turns of each project that floods the worker, and no turn takes more than 2,000', async () => {
  const flooding = [await testScope(pool), await testScope(pool), await testScope(pool)]
  const quiet = await testScope(pool)
  for (const scope of flooding) for (let n = 0; n < 14; n++) await append(scope, 1000)
  await using lanes = runTally(url)
  for (let n = 1; n <= 4; n++) {
    await lanes.until((slices) => slices.length >= 3 * n)
    await append(quiet, 1)
    const before = lanes.slices.length
    const ofQuiet = () => lanes.slices.filter(({ scopeId }) => scopeId === quiet.scopeId).length
    await lanes.until(() => ofQuiet() >= n)
    const between = lanes.slices.length - before - 1
    assert.ok(between <= roundsMax * flooding.length, `${between} turns of others`)
  }
  assert.ok(lanes.slices.every(({ read }) => read <= sliceEventsMax))
  await lanes.until((slices) => slices.reduce((sum, { read }) => sum + read, 0) >= 3 * 14_000 + 4)
})
