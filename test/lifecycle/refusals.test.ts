import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { testDatabase } from '../harness/database.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, postgresOf, type RunOptions, readFirstRun, runTurnpike } from '../harness/turnpike.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))

/** Starts what must not start, and gives the one line it says. */
async function refusal(options: RunOptions): Promise<string> {
  await using turnpike = runTurnpike(options)
  const { code } = await turnpike.ended
  const [line, ...more] = turnpike.err().split('\n')
  assert.deepEqual([code, more], [1, ['']], turnpike.err())
  return line ?? ''
}

test('a DATA_DIR in use is refused in one line, whatever the port, and goes on undisturbed', async () => {
  const dataDir = join(folder, 'in use')
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  const says = `turnpike: DATA_DIR ${dataDir} is in use by another Turnpike (process ${turnpike.processId})`
  const samePort = { PORT: new URL(url).port }
  assert.deepEqual(await Promise.all([refusal({ dataDir }), refusal({ dataDir, settings: samePort })]), [says, says])
  assert.equal((await call(url, '/ready')).status, 200)
})

test('a PORT in use is refused in one line before anything is set up, so that the keys are shown by the start that works', async () => {
  const dataDir = join(folder, 'port')
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo // a TCP address after listen
  const says = await refusal({ dataDir, settings: { PORT: String(port) } })
  assert.equal(says, `turnpike: PORT ${port} on 127.0.0.1 is in use by another program`)
  assert.equal((await postgresOf(dataDir)).processId, 0)
  assert.ok(!(await readdir(dataDir)).includes('first-run.json'))
  taken.close()
  await using turnpike = runTurnpike({ dataDir })
  await turnpike.url
  assert.ok(turnpike.out().includes((await readFirstRun(dataDir)).secret_key))
})

test('a used database is not opened with another MASTER_KEY: one line, and the right one goes on', async () => {
  const dataDir = join(folder, 'master key')
  const settings = { MASTER_KEY: randomBytes(32).toString('base64') }
  {
    await using turnpike = runTurnpike({ dataDir, settings })
    await turnpike.url
  }
  const wrong = { MASTER_KEY: randomBytes(32).toString('base64') }
  assert.equal(
    await refusal({ dataDir, settings: wrong }),
    'turnpike: MASTER_KEY is not the key this database was set up with',
  )
  assert.equal((await postgresOf(dataDir)).processId, 0)
  await using turnpike = runTurnpike({ dataDir, settings })
  await turnpike.url
  assert.ok(!(await readdir(dataDir)).includes('master.key'), 'a given key is not written down')
})

test('an unknown, malformed or missing setting is one line that names it', async () => {
  const dataDir = join(folder, 'never made')
  const file = join(folder, 'a file')
  await writeFile(file, '')
  const url = 'postgresql://nobody@127.0.0.1:1/none'
  const key = randomBytes(32).toString('base64')
  const lines: [settings: Record<string, string>, says: RegExp][] = [
    [{ PORT: '70000' }, /^turnpike: PORT is not valid: it accepts a whole number from 0 to 65535$/],
    [{ HOST: '192.0.2.1' }, /^turnpike: HOST 192\.0\.2\.1 is no address of this machine$/],
    [{ DATADIR: '/x' }, /^turnpike: DATADIR is not a setting: did you mean DATA_DIR\?$/],
    [{ DATABASE_URL: url }, /^turnpike: MASTER_KEY is required with DATABASE_URL/],
    [{ DATABASE_URL: url, MASTER_KEY: key }, /^turnpike: DATABASE_URL: the database does not answer: .*ECONNREFUSED/],
    [{ DATA_DIR: file }, /^turnpike: DATA_DIR .*a file cannot be used: /],
    [{ DATA_DIR: join(file, 'below') }, /^turnpike: DATA_DIR .*below cannot be used: /],
  ]
  const said = await Promise.all(lines.map(([settings]) => refusal({ dataDir, settings })))
  for (const [i, line] of said.entries()) assert.match(line, lines[i]?.[1] ?? /never/)
})

test('a database that a newer version has migrated is left alone: one line', async () => {
  await using database = await testDatabase()
  await database.pool.query(`insert into schema_migration (number, name, sha256) values (9999, 'later', '')`)
  const settings = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') }
  const says = await refusal({ dataDir: join(folder, 'newer'), settings })
  assert.match(says, /^turnpike: the database is at migration 9999, newer than this version knows/)
})
