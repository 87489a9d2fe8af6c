import assert from 'node:assert/strict'
import test from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { withDatabase } from '../../test/harness/server.ts'
import { checkServer, objectionTo } from './check-server.ts'
import { Pool } from './pool.ts'

const good = { version: '15.0', version_number: 150_000, fsync: 'on', synchronous_commit: 'on', encoding: 'UTF8' }

test('a PostgreSQL 15 that keeps what it acknowledges is accepted', () => {
  assert.equal(objectionTo(good), undefined)
  assert.equal(objectionTo({ ...good, synchronous_commit: 'remote_apply' }), undefined)
})

test('an older, a forgetful and a differently encoded one are refused, each with its reason', () => {
  assert.match(
    objectionTo({ ...good, version: '14.19', version_number: 140_019 }) ?? '',
    /PostgreSQL 14\.19 is too old/,
  )
  assert.match(objectionTo({ ...good, fsync: 'off' }) ?? '', /^fsync is off/)
  assert.match(objectionTo({ ...good, synchronous_commit: 'off' }) ?? '', /^synchronous_commit is off/)
  assert.match(objectionTo({ ...good, encoding: 'LATIN1' }) ?? '', /encoding of the database is LATIN1/)
})

test('the server is asked, and the session counts', async () => {
  await using database = await testDatabase()
  await checkServer(database.pool)
  await using forgetful = new Pool(database.url, { name: 'test', max: 1, settings: { synchronous_commit: 'off' } })
  await assert.rejects(checkServer(forgetful), {
    name: 'StartError',
    message: /^DATABASE_URL: synchronous_commit is off/,
  })
})

test('the encoding is that of the database connected to', async () => {
  await using database = await testDatabase()
  const name = `${new URL(database.url).pathname.slice(1)}_ascii`
  await database.pool.query(`create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`)
  {
    await using ascii = new Pool(withDatabase(database.url, name), { name: 'test', max: 1 })
    await assert.rejects(checkServer(ascii), { message: /SQL_ASCII/ })
  }
  await database.pool.query(`drop database ${name}`)
})

test('a server that does not answer, or not to us, is told in one line', async () => {
  await using nowhere = new Pool('postgresql://me:secret@localhost:1/x', { name: 'test', max: 1 })
  await assert.rejects(checkServer(nowhere), { name: 'StartError', message: /^DATABASE_URL: .*ECONNREFUSED/ })
  await using database = await testDatabase()
  await using missing = new Pool(withDatabase(database.url, 'missing'), { name: 'test', max: 1 })
  await assert.rejects(checkServer(missing), { name: 'StartError', message: /database "missing" does not exist$/ })
})
