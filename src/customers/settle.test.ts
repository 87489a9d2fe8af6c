import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import type { Scope } from '../tenancy/index.ts'
import { deleteCustomer } from './delete.ts'
import { resolveOrCreate } from './resolve.ts'
import { settleChanges } from './settle.ts'
import { selectBacklog } from './settle-store.ts'
import type { Eraser } from './types.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const tombstoneKey = Buffer.alloc(32, 3)

async function deleted(scope: Scope, distinctId: string): Promise<void> {
  await pool.transaction(async (tx) => {
    const { customer } = await resolveOrCreate(tx, scope, distinctId, { tombstoneKey, now: 1 })
    await deleteCustomer(tx, scope, customer.id, { tombstoneKey, participants: [] })
  })
}

test('erasers run at once, and once more after the log when nobody from before the deletion can be at work', async () => {
  const scope = await testScope(pool)
  const calls: string[] = []
  const eraser = (name: string, slices: number): Eraser => ({
    name,
    async erase(_tx, _scope, { distinctIds }) {
      assert.deepEqual(distinctIds, ['gone'])
      calls.push(name)
      return calls.filter((each) => each === name).length >= slices
    },
  })
  const options = { erasers: [eraser('one', 2), eraser('two', 1)], now: () => Date.now(), appendsEndMs: 60_000 }
  await deleted(scope, 'gone')
  const behind = scope.scopeId - 1
  while ((await settleChanges(pool, options, behind))?.isMore);
  assert.deepEqual(calls, ['one', 'one', 'two'])
  const waiting = await selectBacklog(pool)
  assert.deepEqual([waiting.changes, waiting.deletions, waiting.oldestDeletionSeconds > 0], [1, 1, true])

  const later = { ...options, now: () => Date.now() + 61_000 }
  while ((await settleChanges(pool, later, behind))?.isMore);
  assert.deepEqual(calls, ['one', 'one', 'two', 'one', 'two'])
  assert.deepEqual(await selectBacklog(pool), { changes: 0, deletions: 0, oldestDeletionSeconds: 0 })
  const [row] = await pool.query('select work from customer_change where scope_id = $1', [scope.scopeId])
  assert.deepEqual(row, { work: null })
})

test('a deletion that waits holds up no other scope, and nobody works at one twice', async () => {
  const [first, second] = [await testScope(pool), await testScope(pool)]
  await deleted(first, 'gone')
  await deleted(second, 'gone')
  const options = { erasers: [], now: () => Date.now(), appendsEndMs: 60_000 }
  const seen = new Set<number>()
  for (let after = 0; ; ) {
    const slice = await settleChanges(pool, options, after)
    if (slice === null) break
    seen.add(slice.scopeId)
    after = slice.isMore ? slice.scopeId - 1 : slice.scopeId
  }
  assert.ok(seen.has(first.scopeId) && seen.has(second.scopeId))
  await pool.transaction(async (tx) => {
    await tx.query('select from customer_change where scope_id = $1 for update', [first.scopeId])
    assert.equal(await settleChanges(pool, options, first.scopeId - 1), null)
  })
})
