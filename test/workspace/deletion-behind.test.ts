import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deleteCustomer, type Eraser, resolveOrCreate, settleChanges } from '../../src/customers/index.ts'
import { bury } from '../../src/events/bury.ts'
import { ensurePartitions, eraseEvents } from '../../src/events/index.ts'
import { acquireLane, readSlice } from '../../src/events/lane-store.ts'
import { must } from '../../src/kernel/assert.ts'
import { testDatabase } from '../harness/database.ts'
import { testScope } from '../harness/lane.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const tombstoneKey = Buffer.alloc(32, 3)

test('an event that a lane sets aside while the deletion of its customer is settled is erased too', async () => {
  await ensurePartitions(pool)
  const scope = await testScope(pool)
  await pool.transaction(async (tx) => {
    const { customer } = await resolveOrCreate(tx, scope, 'gone', { tombstoneKey, now: 1 })
    await deleteCustomer(tx, scope, customer.id, { tombstoneKey, participants: [] })
  })
  await pool.query(
    `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload)
     values ($1, 0, gen_random_uuid(), 'gone', now(), '{"event": "e"}')`,
    [scope.scopeId],
  )
  /** Is behind, takes the row at last, and cannot apply it. */
  const lane: Eraser = {
    name: 'lane',
    async erase() {
      if (++turns < 2) return true
      const held = must(await pool.connected((client) => acquireLane(client, scope.scopeId, 'me')), 'it is free')
      const { rows } = await pool.connected((client) => readSlice(client, held, 'live'))
      for (const row of rows) await bury(pool, held, { stream: 'live', row, error: new Error('no'), stop: null })
      return true
    },
  }
  let turns = 0
  const erasers = [{ name: 'events', erase: eraseEvents }, lane]
  const options = { erasers, now: () => Date.now(), appendsEndMs: -1000 }
  while ((await settleChanges(pool, options, scope.scopeId - 1))?.isMore);
  assert.equal(turns, 2)
  const left = await pool.query(
    `select 'dead' from dead_event where scope_id = $1
     union all select 'sample' from event_warning_sample where scope_id = $1
     union all select 'log' from event_log where lane = $1`,
    [scope.scopeId],
  )
  assert.deepEqual(left, [])
})
