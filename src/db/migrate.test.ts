import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import test from 'node:test'
import { type TestDatabase, testDatabase } from '../../test/harness/database.ts'
import { migrate, pendingMigrations } from './migrate.ts'
import { Pool } from './pool.ts'

const all = readdirSync(new URL('./migrations/', import.meta.url))
  .filter((name) => name.endsWith('.sql'))
  .toSorted((a, b) => (a < b ? -1 : 1))

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await testDatabase()
  await database.pool.query('drop schema public cascade')
  await database.pool.query('create schema public')
  return database
}

async function tables({ pool }: TestDatabase): Promise<string[]> {
  const rows = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1`,
  )
  return rows.map(({ name }) => name)
}

test('an empty database gets every migration in order, and a second run applies nothing', async () => {
  await using database = await emptyDatabase()
  assert.deepEqual(await migrate(database.pool), all)
  assert.deepEqual(await pendingMigrations(database.pool), [])
  assert.deepEqual(await migrate(database.pool), [])
})

test('of migrators that start at the same moment one does the work, and all find it done', async () => {
  await using database = await emptyDatabase()
  const migrators = Array.from({ length: 6 }, async () => {
    await using pool = new Pool(database.url, { name: 'migrator', max: 1 })
    return await migrate(pool)
  })
  const applied = await Promise.all(migrators)
  assert.deepEqual(
    applied.toSorted((a, b) => b.length - a.length),
    [all, [], [], [], [], []],
  )
})

test('a migrator waits for another one as long as it takes', async () => {
  await using database = await emptyDatabase()
  await using impatient = new Pool(database.url, { name: 'migrator', max: 1, settings: { statement_timeout: '50ms' } })
  await database.pool.connected(async (other) => {
    await other.query('select pg_advisory_lock(7210001)')
    const waiting = migrate(impatient)
    await other.query('select pg_sleep(0.2)')
    await other.query('select pg_advisory_unlock(7210001)')
    assert.deepEqual(await waiting, all)
  })
})

test('a migration that fails leaves nothing behind, and goes through once its obstacle is gone', async () => {
  await using database = await emptyDatabase()
  await database.pool.query('create table ledger_grant (n int)')
  await assert.rejects(migrate(database.pool), /relation "ledger_grant" already exists/)
  assert.deepEqual(await tables(database), ['ledger_grant'])
  await database.pool.query('drop table ledger_grant')
  assert.deepEqual(await migrate(database.pool), all)
})

test('a migration that was changed after it ran is refused by its name, and nothing is applied', async () => {
  await using database = await testDatabase()
  await database.pool.query(`update schema_migration set sha256 = 'of another text' where number = 2`)
  await database.pool.query('delete from schema_migration where number = (select max(number) from schema_migration)')
  await assert.rejects(migrate(database.pool), {
    name: 'StartError',
    message: `migration ${all[1]} was changed after it ran`,
  })
  assert.deepEqual(await pendingMigrations(database.pool), [all.at(-1)])
})

test('a database that a newer version has migrated is refused', async () => {
  await using database = await testDatabase()
  await database.pool.query(`insert into schema_migration (number, name, sha256) values (9999, '9999-later.sql', '')`)
  await assert.rejects(migrate(database.pool), {
    name: 'StartError',
    message: `the database is at migration 9999, newer than this version knows (${parseInt(all.at(-1) ?? '', 10)})`,
  })
})
