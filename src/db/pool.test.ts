import assert from 'node:assert/strict'
import test from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'

test('a transaction that throws leaves nothing behind', async () => {
  await using database = await testDatabase()
  await database.pool.query('create table t (n int)')
  const work = database.pool.transaction(async (tx) => {
    await tx.query('insert into t (n) values (1)')
    throw new Error('stop')
  })
  await assert.rejects(work, /stop/)
  assert.deepEqual(await database.pool.query('select n from t'), [])
})
