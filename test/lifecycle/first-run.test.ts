import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Pool } from '../../src/db/pool.ts'
import type { FirstRun } from '../../src/setup.ts'
import { givesWay } from '../harness/gives-way.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, postgresOf, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { pathWithCurl } from './curl.ts'
import { assertPrinted, openTerminal, sectionOf, stepsOf } from './guide.ts'

const run = promisify(execFile)
const token = (prefix: string) => new RegExp(`^${prefix}_[a-z0-9]{20,61}$`)

const dataDir = await temporaryFolder()
const { path, folder } = await pathWithCurl()
after(async () => {
  await removeFolder(dataDir)
  await removeFolder(folder)
})

test('the first run prints how to try it, and the lines work when pasted', async () => {
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  const firstRun = await readFirstRun(dataDir)
  assert.equal((await stat(join(dataDir, 'first-run.json'))).mode & 0o777, 0o600)
  assert.equal((await stat(join(dataDir, 'master.key'))).mode & 0o777, 0o600)
  assert.deepEqual((await readdir(dataDir)).toSorted(), ['first-run.json', 'master.key', 'postgres'])

  const { owner, workspace_id, secret_key, project_id, apps = [], ...addresses } = firstRun
  assert.deepEqual(addresses, { base_url: url, workspace_base_url: `${url}/v1` })
  assert.deepEqual(Object.keys(owner), ['email', 'password'])
  assert.equal(owner.email, 'owner@localhost')
  assert.ok(owner.password.length >= 16)
  assert.match(workspace_id, token('ws'))
  assert.match(secret_key, token('sk'))
  assert.match(project_id ?? '', token('proj'))
  assert.deepEqual(
    apps.map(({ platform }) => platform),
    ['ios', 'android'],
  )
  for (const app of apps) {
    assert.deepEqual(Object.keys(app), ['id', 'platform', 'keys'])
    assert.deepEqual(Object.keys(app.keys), ['test', 'live'])
    assert.match(app.id, token('app'))
    assert.match(app.keys.test, token('pk_test'))
    assert.match(app.keys.live, token('pk_live'))
  }

  for (const shown of [url, owner.email, ...secretsOf(firstRun)]) assert.ok(turnpike.out().includes(shown), shown)
  assert.equal(turnpike.err(), '')

  const [event = '', entitled = '', customer = '', ...more] = linesToPaste(turnpike.out())
  assert.deepEqual(more, [])
  const recorded = await paste(event)
  assert.deepEqual([recorded.status, recorded.accepted, recorded.queued], ['ok', 1, true])
  const access = await paste(entitled)
  assert.deepEqual([access.code, access.allowed, access.balance], ['feature_found', true, 100])
  await until(async () => (await paste(customer)).properties?.plan === 'pro')
})

test('the next start shows no secret again', async () => {
  const written = await readFile(join(dataDir, 'first-run.json'), 'utf8')
  await using turnpike = runTurnpike({ dataDir })
  await turnpike.url
  for (const secret of secretsOf(await readFirstRun(dataDir)))
    assert.ok(!turnpike.out().includes(secret), 'shown again')
  assert.doesNotMatch(turnpike.out(), /Try it|curl/)
  assert.equal(await readFile(join(dataDir, 'first-run.json'), 'utf8'), written)
})

test('both environments have the demo catalogue, and the demo customer may use 100 exports', async () => {
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  const { secret_key, apps = [] } = await readFirstRun(dataDir)
  for (const environment of ['test', 'live']) {
    const list = async (path: string) => {
      const headers = { authorization: `Bearer ${secret_key}`, 'x-service-env': environment }
      return (await call(url, `/v1${path}`, undefined, headers)).body.data as Record<string, unknown>[]
    }
    const features = (await list('/features')).map(({ key, type, status, credit_costs }) => {
      return [key, type, status, credit_costs]
    })
    assert.deepEqual(features.toReversed(), [
      ['pro', 'boolean', 'published', []],
      ['exports', 'metered', 'published', []],
      ['chat', 'metered', 'published', []],
      ['ai_credits', 'creditSystem', 'published', [{ feature: 'chat', cost: 2 }]],
    ])
    const [product, ...others] = await list('/products')
    assert.deepEqual(others, [])
    assert.equal(product?.key, 'pro_monthly')
    const grants = product?.grants as Record<string, unknown>[]
    assert.deepEqual(
      grants.map(({ feature, allowance, interval }) => [feature, allowance, interval]),
      [
        ['pro', null, null],
        ['exports', 100, 'month'],
        ['ai_credits', 200, 'month'],
      ],
    )
    const stores = product?.stores as Record<string, unknown>[]
    assert.deepEqual(
      stores.map(({ store, product_id, base_plan_id }) => [store, product_id, base_plan_id]),
      [
        ['appstore', 'com.example.demo.pro_monthly', undefined],
        ['playstore', 'pro_monthly', 'monthly'],
      ],
    )
    const experiences = (await list('/experiences')).map(({ key, status, publications }) => {
      return [key, status, (publications as { app_id: string; status: string }[]).map((one) => one.status)]
    })
    assert.deepEqual(experiences.toReversed(), [
      ['welcome', 'published', ['live', 'live']],
      ['credits_gift', 'published', ['live', 'live']],
    ])
  }
  for (const { keys } of apps) {
    const ask = async (featureId: string, requiredBalance: number) => {
      const query = { apiKey: keys.test, customerId: 'demo-user', featureId, requiredBalance }
      const { allowed, balance } = (await call(url, '/entitled', query)).body
      return [allowed, balance]
    }
    assert.deepEqual(await ask('exports', 100), [true, 100])
    assert.deepEqual(await ask('exports', 101), [false, 100])
    assert.deepEqual(await ask('pro', 1), [true, null])
    assert.deepEqual(await ask('chat', 100), [true, 100], '200 credits, two for each')
    assert.deepEqual(await ask('ai_credits', 200), [true, 200])
  }
})

test('the tour and the first Experience print what the guide says when their commands are pasted, one after the other', async () => {
  const guide = (page: string) => readFile(new URL(`../../${page}`, import.meta.url), 'utf8')
  const tour = stepsOf(sectionOf(await guide('README.md'), 'Five-minute tour'))
  const experience = stepsOf(await guide('docs/first-experience.md'))
  assert.ok(tour.length > 10 && experience.length > 5, 'there is something to paste')
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  await using pool = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
  const { apps = [] } = await readFirstRun(dataDir)
  const here = join(folder, 'clone')
  await mkdir(here)
  await symlink(dataDir, join(here, 'data'))
  await using terminal = openTerminal({ folder: here, path })
  for (const { commands, prints } of [...tour, ...experience]) {
    let printed = ''
    // Whoever reads takes longer than the service; where even that may not be enough, the guide says to wait.
    for (const part of commands.replaceAll('http://127.0.0.1:4000', url).split(/^sleep 1$/m)) {
      printed += await terminal.paste(part)
      await caughtUp(url, apps[0]?.keys.test ?? '', pool)
    }
    const lines = prints.map((line) => line.replaceAll('127.0.0.1:4000', new URL(url).host))
    assertPrinted(printed, lines)
  }
})

test('what works on questions gives way to everything else', async () => {
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  await using pool = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
  const { secret_key, apps = [] } = await readFirstRun(dataDir)
  const funnel = {
    ...{ type: 'funnel', start: 'any', window: { value: 1, unit: 'day' } },
    time_range: { start: '2026-01-01T00:00:00Z', end: '2026-02-01T00:00:00Z' },
    steps: [{ event: 'a' }, { event: 'b' }],
  }
  const asked = await call(url, '/v1/event_queries', funnel, { authorization: `Bearer ${secret_key}` })
  assert.equal(asked.status, 200)
  await caughtUp(url, apps[0]?.keys.test ?? '', pool)
  const processes = await pool.query<{ id: number; name: string }>(
    `select pid as id, application_name as name from pg_stat_activity where application_name like 'turnpike %'`,
  )
  const asking = processes.filter(({ name }) => name === 'turnpike event queries')
  assert.ok(asking.length > 0 && processes.length > asking.length + 3)
  for (const { id } of asking) await until(async () => givesWay(id))
  for (const { id, name } of processes) assert.equal(givesWay(id), name === 'turnpike event queries', name)
})

/** Lane and journeys have seen what was sent before, and what came of it. */
async function caughtUp(url: string, apiKey: string, pool: Pool): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const uuid = crypto.randomUUID()
    const event = `looked-${uuid}`
    assert.equal((await call(url, '/event', { apiKey, event, uuid, distinct_id: 'reader' })).status, 200)
    await until(async () => (await pool.query('select from event where event = $1', [event])).length > 0)
    await until(async () => (await pool.query('select from journey_inbox limit 1')).length === 0)
  }
}

test('with DEMO=0 there is an owner, a workspace and one secret key, and nothing else', async () => {
  const empty = await temporaryFolder()
  {
    const settings = { DEMO: '0', SETUP_EMAIL: 'me@example.com', SETUP_PASSWORD: 'correct horse' }
    await using turnpike = runTurnpike({ dataDir: empty, settings })
    const url = await turnpike.url
    const { secret_key, workspace_id, ...rest } = await readFirstRun(empty)
    const owner = { email: 'me@example.com', password: 'correct horse' }
    assert.deepEqual(rest, { base_url: url, workspace_base_url: `${url}/v1`, owner })
    assert.match(secret_key, token('sk'))
    assert.match(workspace_id, token('ws'))

    await using pool = new Pool((await postgresOf(empty)).url, { name: 'test', max: 1 })
    const tables = await pool.query<{ name: string }>(
      `select c.relname as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
    )
    const filled: Record<string, bigint> = {}
    for (const { name } of tables) {
      const [row] = await pool.query<{ count: bigint }>(`select count(*) from ${name}`)
      if (row && row.count > 0n) filled[name] = row.count
    }
    const { schema_migration, instance, log_meta, ...made } = filled
    assert.ok(schema_migration && instance && log_meta)
    assert.deepEqual(made, { users: 1n, user_credential: 1n, workspace: 1n, member: 1n, secret_key: 1n })

    const [create = '', list = '', customer = '', ...more] = linesToPaste(turnpike.out())
    assert.deepEqual(more, [])
    const project = await paste(create)
    assert.match(project.id, token('proj'))
    assert.deepEqual(
      (await paste(list)).data.map(({ id }: { id: string }) => id),
      [project.id],
    )
    assert.deepEqual((await paste(customer)).distinct_ids[0].distinct_id, 'user-1')
  }
  await removeFolder(empty)
})

function secretsOf({ owner, secret_key, apps = [] }: FirstRun): string[] {
  return [owner.password, secret_key, ...apps.flatMap(({ keys }) => [keys.test, keys.live])]
}

function linesToPaste(text: string): string[] {
  return text.split('\n').filter((line) => line.startsWith('curl '))
}

/** What a shell gets from the line. */
// biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
async function paste(line: string): Promise<any> {
  const { stdout } = await run('bash', ['-c', line], { env: { PATH: path } })
  return JSON.parse(stdout)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}
