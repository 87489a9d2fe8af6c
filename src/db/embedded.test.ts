import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runOwner } from '../../test/harness/owner.ts'
import { removeFolder, silent, temporaryFolder } from '../../test/harness/server.ts'
import { isAlive } from './embedded/process.ts'
import { type EmbeddedPostgres, startEmbedded } from './embedded.ts'
import { Pool } from './pool.ts'

test('a first start makes a durable database, a stop ends it, a second start finds what was written', async () => {
  await using folder = await testFolder('with a space, "quotes" and ünïcode')
  let processId: number
  {
    await using database = await start(folder.path)
    processId = database.processId
    await using pool = new Pool(database.url, { name: 'test', max: 1 })
    const [settings] = await pool.query(
      `select current_setting('fsync') || current_setting('synchronous_commit') || current_setting('full_page_writes') as on,
              current_setting('listen_addresses') as addresses,
              current_setting('server_encoding') as encoding,
              current_setting('data_checksums') as checksums,
              current_setting('server_version_num')::int / 10000 as major`,
    )
    assert.deepEqual({ ...settings }, { on: 'ononon', addresses: '', encoding: 'UTF8', checksums: 'on', major: 18 })
    await pool.query(`create table kept as select 'ÄÖ'::text as word`)
  }
  assert.ok(!isAlive(processId))
  await using database = await start(folder.path)
  assert.deepEqual(await rows(database, 'select lower(word) as word from kept'), [{ word: 'äö' }])
})

test('a database in use is refused in one line that names the process, and goes on undisturbed', async () => {
  await using folder = await testFolder()
  await using database = await start(folder.path)
  const refusal = `DATA_DIR ${folder.path} is in use by another Turnpike (process ${process.pid})`
  await assert.rejects(start(folder.path), { name: 'StartError', message: refusal })
  await using owner = runOwner(folder.path)
  assert.deepEqual(await owner.said, { refusal })
  assert.deepEqual(await rows(database, 'select 1 as one'), [{ one: 1 }])
})

test('of two first starts at the same moment one wins and the other is refused', async () => {
  await using folder = await testFolder()
  await using a = runOwner(folder.path)
  await using b = runOwner(folder.path)
  const said = await Promise.all([a.said, b.said])
  const [winner, loser] = said[0].url ? [a, said[1]] : [b, said[0]]
  assert.equal(loser.refusal, `DATA_DIR ${folder.path} is in use by another Turnpike (process ${winner.process.pid})`)
  assert.deepEqual(
    (await readdir(folder.path)).filter((name) => name.includes('.new')),
    [],
  )
})

test('the database of a killed process is taken over as it runs', async () => {
  await using folder = await testFolder()
  await using owner = runOwner(folder.path)
  const { processId, url } = await owner.said
  await run(url, 'create table kept as select 1 as n')
  await owner.kill()
  await using database = await start(folder.path)
  assert.equal(database.processId, processId)
  assert.deepEqual(await rows(database, 'select n from kept'), [{ n: 1 }])
})

test('after process and database were killed together the next start recovers what was acknowledged', async () => {
  await using folder = await testFolder()
  await using owner = runOwner(folder.path)
  const { processId, url } = await owner.said
  await run(url, 'create table kept as select 1 as n')
  process.kill(processId, 'SIGKILL')
  await owner.kill()
  await using database = await start(folder.path)
  assert.notEqual(database.processId, processId)
  assert.deepEqual(await rows(database, 'select n from kept'), [{ n: 1 }])
})

test('a database killed under load comes back by itself, with every acknowledged row once', async () => {
  await using folder = await testFolder()
  await using database = await start(folder.path)
  await using pool = new Pool(database.url, { name: 'test', max: 4 })
  await pool.query('create table kept (n int primary key)')
  const acknowledged: number[] = []
  const untilWritten = async (n: number) => {
    // A commit that was not acknowledged may have happened: then the retry finds its row.
    while (!(await pool.query('insert into kept (n) values ($1) on conflict do nothing', [n]).then(yes, no)))
      await sleep(20)
    acknowledged.push(n)
  }
  for (let round = 0; round < 3; round++) {
    const before = database.processId
    const writes = Array.from({ length: 100 }, (_, i) => untilWritten(round * 100 + i))
    await Promise.race(writes)
    process.kill(before, 'SIGKILL')
    await Promise.all(writes)
    await until(async () => database.processId !== before)
  }
  const kept = await pool.query<{ n: number }>('select n from kept order by n')
  assert.deepEqual(
    kept.map(({ n }) => n),
    acknowledged.toSorted((a, b) => a - b),
  )
})

test('a database whose one process crashed stays ours', async () => {
  await using folder = await testFolder()
  await using database = await start(folder.path)
  const before = database.processId
  const [victim] = await rows<{ pid: number }>(
    database,
    `select pid from pg_stat_activity where application_name ~ 'owner'`,
  )
  process.kill(victim?.pid ?? 0, 'SIGKILL')
  // Connected is not yet owner: the lock comes after.
  const owners = `
    select 1 as one
    from pg_locks lock
    join pg_stat_activity activity on activity.pid = lock.pid
    where lock.locktype = 'advisory'
      and lock.granted
      and activity.application_name ~ 'owner'
      and activity.pid <> ${victim?.pid}`
  await until(async () => (await rows(database, owners).catch(() => [])).length === 1)
  assert.equal(database.processId, before)
  await assert.rejects(start(folder.path), /in use by another Turnpike/)
})

test('a process id left behind that belongs to another program by now stands in nobody’s way', async () => {
  await using folder = await testFolder()
  {
    await using database = await start(folder.path)
    assert.ok(database.processId > 0)
  }
  const left = [process.pid, join(folder.path, 'postgres/data'), '1', '5432', '/nowhere', '', '1 1', 'ready']
  await writeFile(join(folder.path, 'postgres/data/postmaster.pid'), `${left.join('\n')}\n`)
  await using database = await start(folder.path)
  assert.deepEqual(await rows(database, 'select 1 as one'), [{ one: 1 }])
})

test('a server that answers is left alone, even when its process cannot be seen from here', async () => {
  await using folder = await testFolder()
  await using database = await start(folder.path)
  const path = join(folder.path, 'postgres/data/postmaster.pid')
  const written = await readFile(path, 'utf8')
  const unseen = written.replace(/^\d+/, String(await endedProcess()))
  await writeFile(path, unseen)
  await assert.rejects(start(folder.path), /is in use by another Turnpike \(of another container\)$/)
  assert.equal(await readFile(path, 'utf8'), unseen)
  await writeFile(path, written)
  assert.deepEqual(await rows(database, 'select 1 as one'), [{ one: 1 }])
})

test('what a start killed while making the database left behind is removed', async () => {
  await using folder = await testFolder()
  await mkdir(join(folder.path, `postgres.new-${await endedProcess()}-abc/data/base`), { recursive: true })
  await using database = await start(folder.path)
  assert.equal(database.directory, join(folder.path, 'postgres'))
  assert.deepEqual(await readdir(folder.path), ['postgres'])
})

test('a path too long for a socket gets one elsewhere, which goes with the database', async () => {
  await using folder = await testFolder('x'.repeat(100))
  const database = await start(folder.path)
  const socket = new URL(database.url).searchParams.get('host') ?? ''
  assert.ok(socket.length < 60 && (await readdir(socket)).length > 0)
  assert.deepEqual(await rows(database, 'select 1 as one'), [{ one: 1 }])
  await database[Symbol.asyncDispose]()
  await assert.rejects(readdir(socket), { code: 'ENOENT' })
})

test('the database of another PostgreSQL major is refused in one line', async () => {
  await using folder = await testFolder()
  const version = join(folder.path, 'postgres/data/PG_VERSION')
  await start(folder.path).then((database) => database[Symbol.asyncDispose]())
  assert.equal(await readFile(version, 'utf8'), '18\n')
  await writeFile(version, '17\n')
  await assert.rejects(start(folder.path), {
    name: 'StartError',
    message: /holds a PostgreSQL 17 database and .* brings PostgreSQL 18/,
  })
})

test('a database that cannot start says why', async () => {
  await using folder = await testFolder()
  await start(folder.path).then((database) => database[Symbol.asyncDispose]())
  await rm(join(folder.path, 'postgres/data/global/pg_control'))
  await assert.rejects(start(folder.path), {
    name: 'StartError',
    message: /^PostgreSQL did not start: .*pg_control.*server\.log/s,
  })
})

const yes = () => true
const no = () => false

function start(dataDir: string): Promise<EmbeddedPostgres> {
  return startEmbedded({ dataDir, log: silent })
}

/** The id of a process that is no more. */
async function endedProcess(): Promise<number> {
  const ended = spawn('true')
  await once(ended, 'exit')
  return ended.pid ?? 0
}

async function rows<Row extends object>(database: EmbeddedPostgres, text: string): Promise<Row[]> {
  return run(database.url, text)
}

async function run<Row extends object>(url: string, text: string): Promise<Row[]> {
  await using pool = new Pool(url, { name: 'test', max: 1 })
  return (await pool.query<Row>(text)).map((row) => ({ ...row }))
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}

async function testFolder(name = 'data'): Promise<{ path: string } & AsyncDisposable> {
  const parent = await temporaryFolder()
  return { path: join(parent, name), [Symbol.asyncDispose]: () => removeFolder(parent) }
}
