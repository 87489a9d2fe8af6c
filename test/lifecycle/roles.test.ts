import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { laneLag } from '../../src/events/index.ts'
import { capacity } from '../../src/events/queries/capacity.ts'
import { must } from '../../src/kernel/assert.ts'
import { connectionsOfProcessMax, questionsAtOnceMax } from '../../src/kernel/limits.ts'
import { testDatabase } from '../harness/database.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, type RunningTurnpike, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { load } from './load.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const folder = await temporaryFolder()
after(() => removeFolder(folder))
const common = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64'), DEMO: '1' }

function run(name: string, ROLE: string): RunningTurnpike {
  return runTurnpike({ dataDir: join(folder, name), settings: { ...common, ROLE } })
}

test('processes of one role each share one database: what one takes another applies, and what one revokes all refuse', async (t) => {
  await using one = run('one', 'api')
  const url = await one.url
  const { secret_key, apps } = await readFirstRun(join(folder, 'one'))
  const app = must(apps?.[0], 'the demo has apps')
  const secret = { authorization: `Bearer ${secret_key}`, 'x-service-env': 'test' }
  const propertiesOf = async (at: string, distinctId: string) =>
    (await call(at, `/v1/customers/by_distinct_id/${encodeURIComponent(distinctId)}`, undefined, secret)).body
      .properties
  const applied = async () => (await laneLag(database.pool)).rows === 0

  await using two = run('two', 'api')
  const otherUrl = await two.url

  await t.test('only the first one sets up, and none brings a database along', async () => {
    assert.deepEqual(await readdir(join(folder, 'one')), ['first-run.json'])
    assert.ok(!existsSync(join(folder, 'two')))
    assert.doesNotMatch(two.out(), /sk_/)
  })

  await t.test('events that an API process acknowledged wait for a worker', async () => {
    const event = { event: 'e', distinct_id: 'early', properties: { $increment: { n: 1 } } }
    // What the ledger tells of the demo's grants waits too.
    const before = (await laneLag(database.pool)).rows
    for (const uuid of [crypto.randomUUID(), crypto.randomUUID()]) {
      for (const at of [url, otherUrl]) {
        assert.equal((await call(at, '/event', { apiKey: app.keys.test, ...event, uuid })).status, 200)
      }
    }
    assert.equal((await laneLag(database.pool)).rows, before + 4)
    await using worker = run('worker', 'worker')
    const workerUrl = await worker.url
    await until(applied)
    assert.deepEqual(await propertiesOf(otherUrl, 'early'), { n: 2 })
    assert.equal((await call(workerUrl, '/ready')).status, 200)
    assert.equal((await call(workerUrl, '/event', { apiKey: app.keys.test, ...event })).status, 404)
  })

  await t.test('a worker killed at work is replaced by another, and every event is applied once', async () => {
    const killed = run('worker', 'worker')
    await killed.url
    let replaced: Promise<RunningTurnpike> | undefined
    const replace = async () => {
      killed.process.kill('SIGKILL')
      await killed.ended
      return run('worker', 'worker')
    }
    const done = await load({
      target: { url, key: app.keys.test },
      customers: ['demo-user'],
      clients: 8,
      requestsPerClient: 20,
      onProgress: (acknowledged) => {
        if (acknowledged === 60) replaced = replace()
      },
    })
    await using worker = await must(replaced, 'the load is larger than that')
    await worker.url
    await until(applied)
    const ids = [...done.events.values(), ...done.once.sent.values()]
    for (const distinctId of new Set(ids)) {
      const n = ids.filter((id) => id === distinctId).length
      assert.deepEqual(await propertiesOf(url, distinctId), { n }, distinctId)
    }
  })

  await t.test('a publishable key revoked at one is refused by the other within a second', async () => {
    const path = `/v1/apps/${app.id}/publishable_keys`
    const listed = (await call(url, path, undefined, secret)).body.data as { id: string; key: string }[]
    const { id } = must(
      listed.find(({ key }) => key === app.keys.test),
      'the key is listed',
    )
    const ask = async () => (await call(otherUrl, '/entitled', query)).status
    const query = { apiKey: app.keys.test, customerId: 'demo-user', featureId: 'exports' }
    assert.equal(await ask(), 200)
    const revoked = await fetch(`${url}${path}/${id}`, { method: 'DELETE', headers: secret })
    assert.equal(revoked.status, 200)
    const began = performance.now()
    await until(async () => (await ask()) === 401)
    assert.ok(performance.now() - began < 1000)
  })
})

test('no process opens more connections than the guide says', async () => {
  const guide = await readFile(new URL('../../docs/run-in-production.md', import.meta.url), 'utf8')
  const { all, api, worker } = connectionsOfProcessMax
  const [, ...said] = must(
    /both roles uses up to (\d+) .*?`ROLE=api` it is (\d+), with `ROLE=worker` (\d+)/s.exec(guide),
    'the guide tells',
  )
  assert.deepEqual(said.map(Number), [all, api, worker])
  // More questions at once than on this machine; what journeys open when one first asks for Features.
  const more = { api: 2 * (questionsAtOnceMax - capacity.questionsAtOnce), worker: 5 }
  for (const role of ['api', 'worker'] as const) {
    const opened = join(folder, `connections of ${role}`)
    const command = [process.execPath, '--import', countingDriver(opened), 'src/main.ts', 'start']
    await using counted = runTurnpike({ dataDir: join(folder, role), settings: { ...common, ROLE: role }, command })
    await counted.url
    const sum = async () => {
      const counts = (await readFile(opened, 'utf8')).trim().split('\n').map(Number)
      return counts.reduce((a, b) => a + b)
    }
    await until(async () => (await sum()) >= connectionsOfProcessMax[role] - more[role])
    assert.equal(await sum(), connectionsOfProcessMax[role] - more[role], role)
  }
})

/** A module that has the driver write down how many connections each pool and client of the process may open. */
function countingDriver(opened: string): string {
  const module = `
    import { appendFileSync } from 'node:fs'
    import { createRequire } from 'node:module'
    const pg = createRequire(${JSON.stringify(import.meta.url)})('pg')
    const { Pool, Client } = pg
    const write = (count) => appendFileSync(${JSON.stringify(opened)}, count + '\\n')
    pg.Pool = class extends Pool { constructor(options) { super(options); write(options.max) } }
    pg.Client = class extends Client { constructor(options) { super(options); write(1) } }`
  return `data:text/javascript,${encodeURIComponent(module)}`
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}
