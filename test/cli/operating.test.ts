import assert from 'node:assert/strict'
import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { testDatabase } from '../harness/database.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { turnpike } from './command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')
const masterKey = Buffer.alloc(32, 7).toString('base64')

describe('doctor', () => {
  test('finds nothing wrong with a service that runs, and with none that ever ran', async () => {
    const none = await turnpike(['doctor'], { DATA_DIR: join(folder, 'none') })
    assert.deepEqual([none.code, none.err], [0, ''])
    await using running = runTurnpike({ dataDir })
    await running.url
    const said = await turnpike(['doctor'], { DATA_DIR: dataDir })
    assert.deepEqual([said.code, said.err], [0, ''], said.out)
    for (const name of [
      'settings',
      'data folder',
      'master key',
      'disk',
      'database',
      'clock',
      'migrations',
      'secrets',
      'events',
      'keys',
      'stores',
      'store calls',
      'mail',
    ]) {
      assert.match(said.out, new RegExp(`^(ok|warning) +${name} `, 'm'), name)
    }
    const json = await turnpike(['doctor', '--json'], { DATA_DIR: dataDir })
    const findings = json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.ok(findings.length >= 11 && findings.every(({ name, state, says }) => name && state && says))
  })

  test('says what is wrong and how to mend it, and ends with 1', async () => {
    await using database = await testDatabase()
    const good = { DATABASE_URL: database.url, MASTER_KEY: masterKey, DATA_DIR: folder }
    const deaf = createServer((socket) => socket.end('554 go away\r\n')).listen(0, '127.0.0.1')
    after(() => deaf.close())
    await new Promise((resolve) => deaf.once('listening', resolve))
    const { port } = deaf.address() as { port: number } // a TCP address after listen
    await using bare = await testDatabase()
    await bare.pool.query('delete from schema_migration where number > 3')
    await using stopped = await testDatabase()
    for (const row of [
      `workspace (id, name, slug) values ('ws', 'A', 'a')`,
      `project (id, workspace_id, name) values ('p', 'ws', 'A')`,
      `scope (project_id, environment) values ('p', 'live')`,
      `lane (id, stopped_until, stopped_why) select id, 'infinity', 'of a bad deploy' from scope`,
      `store_credential (scope_id, app_id, kind, sealed, wrapped_key, public_fields, last_error, last_error_at)
       select id, 'app_1', 'appstore', '', '', '{}', 'The App Store does not answer. Calls rest.', now() from scope`,
    ]) {
      await stopped.pool.query(`insert into ${row}`)
    }
    const cases: [Record<string, string>, RegExp][] = [
      [{ ...good, PORT: 'x' }, /^problem +settings +PORT is not valid.*\n +→ correct the environment variable/m],
      [{ ...good, DATABASE_URL: 'postgresql://x@127.0.0.1:1/x' }, /^problem +database .*does not answer.*\n +→ /m],
      [
        { ...good, DATABASE_URL: bare.url },
        /^problem +migrations +\d+ of \d+ are not applied yet\n +→ start the service, or run: turnpike migrate/m,
      ],
      [
        { ...good, DATABASE_URL: stopped.url },
        /^problem +events +lanes stopped: 1, the first because of a bad deploy/m,
      ],
      [
        { ...good, DATABASE_URL: stopped.url },
        /^warning +store calls +appstore of app_1 in live, last at .*: The App Store does not answer\. Calls rest\.\n +→ POST /m,
      ],
      [{ ...good, SMTP_URL: `smtp://127.0.0.1:${port}` }, /^problem +mail +.* says "554 go away"/m],
      [{ ...good, SMTP_URL: 'smtp://127.0.0.1:1' }, /^problem +mail +127\.0\.0\.1:1 does not answer/m],
    ]
    for (const [settings, words] of cases) {
      const said = await turnpike(['doctor'], settings)
      assert.equal(said.code, 1, said.out)
      assert.match(said.out, words)
    }
  })

  test('tells of another master key, of one that is gone, and of secrets that others may read', async () => {
    const key = join(dataDir, 'master.key')
    await chmod(key, 0o644)
    assert.match(
      (await turnpike(['doctor'], { DATA_DIR: dataDir })).out,
      /^problem +master key +others may read .*\n +→ chmod 600 /m,
    )
    await chmod(key, 0o600)
    const other = await turnpike(['doctor'], { DATA_DIR: dataDir, MASTER_KEY: masterKey })
    assert.match(other.out, /^problem +secrets +they were sealed under another master key/m)
    await rename(key, `${key}.away`)
    const gone = await turnpike(['doctor'], { DATA_DIR: dataDir })
    assert.equal(gone.code, 1)
    assert.match(gone.out, /^problem +master key +.* is gone/m)
    await rename(`${key}.away`, key)
  })
})

describe('master-key rotate', () => {
  test('gives a running embedded service a new key, with which it starts again', async () => {
    const before = await readFile(join(dataDir, 'master.key'), 'utf8')
    {
      await using running = runTurnpike({ dataDir })
      await running.url
      const said = await turnpike(['master-key', 'rotate'], { DATA_DIR: dataDir })
      assert.deepEqual([said.code, said.err], [0, ''])
    }
    assert.notEqual(await readFile(join(dataDir, 'master.key'), 'utf8'), before)
    await using again = runTurnpike({ dataDir })
    await again.url
  })

  test('that was killed before or after its commit is settled by the next start', async () => {
    const [key, next] = [join(dataDir, 'master.key'), join(dataDir, 'master.key.next')]
    const current = await readFile(key, 'utf8')
    // Before: the new key opens nothing. After: the old one does not.
    await writeFile(next, `${masterKey}\n`)
    {
      await using running = runTurnpike({ dataDir })
      await running.url
    }
    assert.equal(await readFile(key, 'utf8'), current)
    await writeFile(next, current)
    await writeFile(key, `${masterKey}\n`)
    await using running = runTurnpike({ dataDir })
    const headers = { authorization: `Bearer ${(await readFirstRun(dataDir)).secret_key}` }
    assert.equal((await call(await running.url, '/v1/features', undefined, headers)).status, 200)
    assert.equal(await readFile(key, 'utf8'), current)
  })

  test('with MASTER_KEY writes the new key to a file of its own', async () => {
    await using database = await testDatabase()
    const settings = { DATABASE_URL: database.url, MASTER_KEY: masterKey, DATA_DIR: folder }
    {
      await using running = runTurnpike({ dataDir: folder, settings })
      await running.url
    }
    const to = join(folder, 'next.key')
    assert.match((await turnpike(['master-key', 'rotate'], settings)).err, /--to FILE is needed/)
    assert.equal((await turnpike(['master-key', 'rotate', '--to', to], settings)).code, 0)
    assert.match((await turnpike(['master-key', 'rotate', '--to', to], settings)).err, /is there already/)
    const refused = runTurnpike({ dataDir: folder, settings })
    assert.equal((await refused.ended).code, 1)
    await using running = runTurnpike({
      dataDir: folder,
      settings: { ...settings, MASTER_KEY: (await readFile(to, 'utf8')).trim() },
    })
    await running.url
  })
})

test('help names every command, a group and one alone; what is none is one line and 1', async () => {
  const all = await turnpike(['help'])
  for (const name of ['start', 'doctor', 'backup', 'restore', 'users create', 'keys revoke', 'master-key rotate']) {
    assert.match(all.out, new RegExp(`^  ${name} `, 'm'))
  }
  assert.match((await turnpike(['help', 'users'])).out, /users create[\s\S]*users set-password/)
  assert.match(
    (await turnpike(['restore', '--help'])).out,
    /^turnpike restore <file> \[--tombstones FILE\]\n\n {2}load a backup/,
  )
  assert.equal((await turnpike([])).out, all.out)
  assert.match((await turnpike(['--version'])).out, /^\d+\.\d+\.\d+\n$/)
  for (const args of [['nothing'], ['users'], ['help', 'nothing'], ['doctor', '--loud']]) {
    const said = await turnpike(args)
    assert.deepEqual([said.code, said.out, said.err.trim().split('\n').length], [1, '', 1], args.join(' '))
  }
})
