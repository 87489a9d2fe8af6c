import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { writeBackup, writeWholeFile } from '../../src/db/backup/write.ts'
import { knownMigrations, migrate } from '../../src/db/migrate.ts'
import type { Pool, Tx } from '../../src/db/pool.ts'
import { laneLag } from '../../src/events/index.ts'
import { createFirstWorkspace, openInstance, readSealedSecrets } from '../../src/tenancy/index.ts'
import { eventually, openProject } from '../app/project.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { call, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { turnpike } from './command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const masterKey = Buffer.alloc(32, 7).toString('base64')
const settingsOf = ({ url }: { url: string }) => ({ DATABASE_URL: url, MASTER_KEY: masterKey, DATA_DIR: folder })

describe('a backup taken beside the service, and restored', () => {
  test('holds one instant of every table, while events and spends go on', async () => {
    await using service = await startService()
    const project = await openProject(service)
    const app = await project.app()
    await project.feature('exports')
    await project.grant('ada', { feature: 'exports', allowance: 10_000 })
    let isOver = false
    const traffic = (async () => {
      for (let n = 0; !isOver; n++) {
        const customer = { apiKey: app.key, distinct_id: 'ada', event: 'saved', uuid: randomUUID() }
        await call(service.url, '/event', {
          ...customer,
          properties: { note: `tab\t line\n back\\ ${n} ß 🙂`, $increment: { n: 1 } },
        })
        await call(service.url, '/feature/consume', {
          apiKey: app.key,
          customerId: 'ada',
          featureId: 'exports',
          operationId: `op-${n}`,
          quantity: 1,
        })
      }
    })()
    const file = join(folder, 'busy.sql.gz')
    const source = settingsOf({ url: service.databaseUrl })
    await eventually(async () => (await rowsOf(service.pool, 'operation')) > 20, 20_000)
    const said = await turnpike(['backup', file], source)
    isOver = true
    await traffic
    assert.deepEqual([said.code, said.err], [0, ''])
    assert.match(said.out, /backed up \d+ rows .*\nNot in it, and needed to restore:\n {2}MASTER_KEY/)
    assert.equal((await stat(file)).mode & 0o777, 0o600)

    await using target = await testDatabase()
    const settings = settingsOf(target)
    const restored = await turnpike(['restore', file], settings)
    assert.deepEqual([restored.code, restored.err], [0, ''])
    const verified = await turnpike(['ledger', 'verify'], settings)
    assert.match(verified.out, /^ledger: OK/, 'spends and their entries are of one instant')
    const spent = await rowsOf(target.pool, 'operation')
    assert.ok(spent >= 20 && spent <= (await rowsOf(service.pool, 'operation')))
  })

  test('is the same in every table, and goes on counting where it was', async () => {
    await using service = await startService({ DEMO: '1' })
    const project = await openProject(service)
    const app = await project.app()
    await project.feature('exports')
    await project.grant('ada', { feature: 'exports', allowance: 5 })
    await sendEvents(service.url, app.key, 30)
    await eventually(async () => (await savedIn(service.pool)) === 30, 20_000)
    await eventually(async () => (await laneLag(service.pool)).rows === 0, 20_000)
    // The demo's Segments are computed after the start.
    await eventually(async () => (await unsettled(service.pool)) === 0, 20_000)
    const file = join(folder, 'quiet.sql.gz')
    assert.equal((await turnpike(['backup', file], settingsOf({ url: service.databaseUrl }))).code, 0)
    await using target = await testDatabase()
    assert.equal((await turnpike(['restore', file], settingsOf(target))).code, 0)
    const [before, now] = [await contentOf(service.pool), await contentOf(target.pool)]
    // The service goes on with its own: leases, marks and figures of use move by themselves.
    for (const name of ['lane', 'log_meta', 'app_connection', 'secret_key', 'publishable_key', 'usage_stat']) {
      before.delete(name)
      now.delete(name)
    }
    assert.ok(before.size > 20)
    for (const [table, rows] of before) assert.deepEqual(now.get(table), rows, table)

    const [gen] = await target.pool.query<{ gen: number }>('select gen from log_meta')
    assert.equal(gen?.gen, 2, 'what is logged from now on comes after everything restored')
    await using again = await startOver(target)
    await sendEvents(await again.url, app.key, 5)
    await eventually(async () => (await savedIn(target.pool)) === 35, 20_000)
    const consumed = await call(await again.url, '/feature/consume', {
      apiKey: app.key,
      customerId: 'ada',
      featureId: 'exports',
      operationId: 'after',
      quantity: 5,
    })
    assert.equal(consumed.body.accepted, true)
  })

  test('works for the embedded database while it runs, into a new DATA_DIR', async () => {
    const [from, to] = [join(folder, 'from'), join(folder, 'to')]
    const file = join(folder, 'embedded.sql.gz')
    {
      await using running = runTurnpike({ dataDir: from })
      await running.url
      const said = await turnpike(['backup', file], { DATA_DIR: from })
      assert.deepEqual([said.code, said.err], [0, ''])
      assert.ok(said.out.includes(`${from}/master.key`), 'says what is not in it')
    }
    const refused = await turnpike(['restore', file], { DATA_DIR: to })
    assert.equal(refused.code, 1)
    assert.match(refused.err, /sealed with a master key: put it to .*master\.key/)
    assert.deepEqual(await readdir(to).catch(() => []), [])

    await mkdir(to)
    await cp(join(from, 'master.key'), join(to, 'master.key'))
    const restored = await turnpike(['restore', file], { DATA_DIR: to })
    assert.equal(restored.code, 0, restored.err)
    await using again = runTurnpike({ dataDir: to })
    const { secret_key, apps = [] } = await readFirstRun(from)
    const headers = { authorization: `Bearer ${secret_key}` }
    assert.equal((await call(await again.url, '/v1/features', undefined, headers)).status, 200)
    const query = { apiKey: apps[0]?.keys.test, customerId: 'demo-user', featureId: 'exports' }
    assert.equal((await call(await again.url, '/entitled', query)).body.balance, 100)
    assert.ok(!(await readdir(to)).includes('first-run.json'), 'a restored database is set up already')
  })
})

describe('a restore is refused, and nothing has changed', () => {
  test('a database that holds anything', async () => {
    const { file, database } = await setUp('full')
    await using _ = database
    const said = await turnpike(['restore', file], settingsOf(database))
    assert.deepEqual([said.code, said.out], [1, ''])
    assert.match(said.err, /not empty/)
  })

  test('another master key', async () => {
    const { file, database } = await setUp('key')
    await using _ = database
    await using target = await testDatabase()
    const said = await turnpike(['restore', file], {
      ...settingsOf(target),
      MASTER_KEY: randomBytes(32).toString('base64'),
    })
    assert.deepEqual([said.code, said.out], [1, ''])
    assert.match(said.err, /not the master key of the backup/)
    assert.equal(await rowsOf(target.pool, 'workspace'), 0)
  })

  test('a file that was changed, cut off, or is none', async () => {
    const { file, database } = await setUp('harmed')
    await using _ = database
    await using target = await testDatabase()
    const text = gunzipSync(await readFile(file)).toString()
    const other = text.replace('My workspace', 'My workspacf')
    assert.notEqual(other, text)
    const harmed: [string, Buffer, RegExp][] = [
      ['changed', gzipSync(other), /damaged: table workspace/],
      ['cut', gzipSync(text.slice(0, -200)), /ends too early|damaged/],
      ['cut-raw', (await readFile(file)).subarray(0, -500), /ends too early/],
      ['none', gzipSync('hello\n'), /no backup of Turnpike/],
      ['not-gzip', Buffer.from('hello\n'), /no backup of Turnpike/],
      ['future', gzipSync(text.replace('"turnpike_backup":1', '"turnpike_backup":2')), /only a newer Turnpike reads/],
    ]
    for (const [name, bytes, words] of harmed) {
      const path = join(folder, name)
      await writeFile(path, bytes)
      for (const command of [['backup', 'check'], ['restore']]) {
        const said = await turnpike([...command, path], settingsOf(target))
        assert.equal(said.code, 1, `${name} ${command.join(' ')}`)
        assert.match(said.err, words, `${name} ${command.join(' ')}`)
      }
      assert.equal(await rowsOf(target.pool, 'workspace'), 0, name)
    }
    assert.equal(
      (await turnpike(['restore', file], settingsOf(target))).code,
      0,
      'and the database still takes a whole one',
    )
  })

  test('a newer schema', async () => {
    const { file, database } = await setUp('newer')
    await using _ = database
    await using target = await testDatabase()
    const text = gunzipSync(await readFile(file)).toString()
    const newer = text.replace('"migrations":[', '"migrations":[{"number":9999,"name":"9999-moon.sql","sha256":"0"},')
    await writeFile(join(folder, 'moon'), gzipSync(newer))
    const said = await turnpike(['restore', join(folder, 'moon')], settingsOf(target))
    assert.equal(said.code, 1)
    assert.match(said.err, /9999-moon\.sql, newer than this version knows/)
  })
})

test('a backup of an older schema is brought up to date', async () => {
  const [older, newest] = [(await knownMigrations()).at(-2), (await knownMigrations()).at(-1)]
  const { file, database } = await setUp('old', older?.number)
  await using _ = database
  await using target = await bareDatabase()
  const said = await turnpike(['restore', file], settingsOf(target))
  assert.deepEqual([said.code, said.err], [0, ''])
  assert.match(said.out, new RegExp(`then applied ${newest?.name}`))
})

test('check reads a whole file without any database', async () => {
  const { file, database } = await setUp('check')
  await using _ = database
  const said = await turnpike(['backup', 'check', file])
  assert.deepEqual([said.code, said.err], [0, ''])
  assert.match(
    said.out,
    /^whole: [1-9]\d* rows of \d+ tables, as they were at \d{4}-.*\ntaken by Turnpike .* at migration \d{4}-/,
  )
})

/** A backup of a database after its first run, at an older schema if asked for. */
async function setUp(name: string, through?: number): Promise<{ file: string; database: TestDatabase }> {
  const database = await (through === undefined ? testDatabase() : bareDatabase())
  if (through !== undefined) await migrate(database.pool, { through })
  await database.pool.transaction(async (tx) => {
    await openInstance(tx, Buffer.from(masterKey, 'base64'))
    if (through === undefined) await createFirstWorkspace(tx, { email: 'owner@localhost', password: 'correct horse' })
  })
  const file = join(folder, `${name}.sql.gz`)
  // Not by the command, which wants its own schema: this is what the version of then would have written.
  const noteOf = async (tx: Tx) => ({ sealed_secrets: (await readSealedSecrets(tx)) ?? '' })
  await writeWholeFile(file, (to) => writeBackup(database.url, to, { version: '0.0.1', noteOf }))
  return { file, database }
}

async function bareDatabase(): Promise<TestDatabase> {
  const database = await testDatabase()
  await database.pool.query('drop schema public cascade')
  await database.pool.query('create schema public')
  return database
}

/** Another process over the database. */
async function startOver({ url }: { url: string }): Promise<AsyncDisposable & { url: Promise<string> }> {
  return runTurnpike({ dataDir: await temporaryFolder(), settings: { DATABASE_URL: url, MASTER_KEY: masterKey } })
}

async function sendEvents(url: string, apiKey: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const answer = await call(url, '/event', {
      apiKey,
      event: 'saved',
      distinct_id: `who-${n % 3}`,
      uuid: randomUUID(),
    })
    assert.equal(answer.status, 200)
  }
}

async function rowsOf(pool: Pool, table: string): Promise<number> {
  return Number((await pool.query<{ n: bigint }>(`select count(*) as n from ${table}`))[0]?.n)
}

async function unsettled(pool: Pool): Promise<number> {
  const [row] = await pool.query<{ count: number }>(
    `select (select count(*) from segment_version where state = 'pending')::int
       + (select count(*) from segment_set where settling)::int as count`,
  )
  return row?.count ?? 0
}

/** Events of the callers: the ledger tells of its own. */
async function savedIn(pool: Pool): Promise<number> {
  return rowsOf(pool, `event where event = 'saved'`)
}

/** Every row of every table, as text. */
async function contentOf(pool: Pool): Promise<Map<string, string[]>> {
  const tables = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  )
  const content = new Map<string, string[]>()
  for (const { name } of tables) {
    const rows = await pool.query<{ row: string }>(`select t::text as row from ${name} t order by 1`)
    content.set(
      name,
      rows.map(({ row }) => row),
    )
  }
  return content
}
