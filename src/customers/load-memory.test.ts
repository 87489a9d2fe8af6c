import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope } from '../../test/harness/lane.ts'
import { loggedEvent } from '../../test/harness/logged-event.ts'
import { SliceTooLarge } from '../events/index.ts'
import { slicePropertiesBytesMax } from '../kernel/limits.ts'
import { loadSlice } from './load.ts'
import { createProjection } from './projection.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database
const tombstoneKey = Buffer.from('key')
const projection = createProjection({ tombstoneKey, participants: [] })

test('no more properties are loaded than a slice may hold, however well they compress: the events before them fit', async () => {
  const scope = await testScope(pool)
  const large = 500 * 1024
  const count = Math.ceil(slicePropertiesBytesMax / large) + 5
  const ids = Array.from({ length: count }, (_, n) => `u${n}`)
  for (const id of ids) {
    await runSlice(pool, scope, projection, [loggedEvent(id, { $set: { large: 'x'.repeat(large) } })])
  }
  const load = (events: ReturnType<typeof loggedEvent>[]) =>
    pool.connected((client) => loadSlice(client, scope, events, { tombstoneKey }))
  const touching = ids.map((id) => loggedEvent(id, { $increment: { n: 1 } }))
  const fits = await load(touching).then(
    () => assert.fail('all were loaded'),
    (error: unknown) => {
      assert.ok(error instanceof SliceTooLarge)
      return error.fits
    },
  )
  // The one that crosses the bound is still loaded.
  assert.equal(fits, Math.floor(slicePropertiesBytesMax / large) + 1)
  const state = await load(touching.slice(0, fits))
  assert.ok([...state.customers.values()].every(({ properties }) => properties !== null))
  // Who is only named costs nothing.
  const unread = await load(ids.map((id) => loggedEvent(id)))
  assert.deepEqual([unread.aliases.size, unread.customers.size], [count, 0])
  const [last] = touching.slice(-1)
  assert.ok(last)
  const named = [...ids.map((id) => loggedEvent(id)), last]
  assert.equal((await load(named)).customers.size, 1)
})
