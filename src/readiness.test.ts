import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../test/harness/database.ts'
import { testScope } from '../test/harness/lane.ts'
import { ensurePartitions } from './events/index.ts'
import { lagMsMax, readinessOf } from './readiness.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

test('with events that wait for more than ten minutes a worker is not ready; whoever only acknowledges is', async () => {
  await ensurePartitions(pool)
  const scope = await testScope(pool)
  const failing = async (role: { api: boolean; worker: boolean }) =>
    (await readinessOf(pool, role)()).filter(({ ok }) => !ok).map(({ name }) => name)
  const [api, worker, both] = [
    { api: true, worker: false },
    { api: false, worker: true },
    { api: true, worker: true },
  ]
  // A minute less, since the look takes its time.
  await log(scope.scopeId, lagMsMax - 60_000)
  for (const role of [api, worker, both]) assert.deepEqual(await failing(role), [])
  await pool.query('delete from event_log')
  await log(scope.scopeId, lagMsMax + 1)
  assert.deepEqual(await failing(api), [])
  for (const role of [worker, both]) assert.deepEqual(await failing(role), ['processing_lag'])
})

/** A live event that was logged this long ago, and that no lane has taken. */
async function log(scopeId: number, ageMs: number): Promise<void> {
  await pool.query(
    `insert into event_log (lane, stream, gen, logged_at, uuid, distinct_id, received_at, payload)
     values ($1, 0, 1, clock_timestamp() - $2 * interval '1 millisecond', gen_random_uuid(), 'ada', clock_timestamp(), '{}')`,
    [scopeId, ageMs],
  )
}
