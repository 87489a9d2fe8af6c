import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { dayMs, historyEveryMs, historyRetryMs } from '../../src/kernel/limits.ts'
import { ask, type Stage, setStage } from '../../store-sim/scenarios/stage.ts'
import { eventually as within } from '../app/project.ts'
import { startService, type TestService } from '../harness/service.ts'
import { type Body, openSim, type Simulator } from './sim.ts'

/** Takes what is sent, and does nothing about it: workers come and go. */
let service: TestService
let sim: Simulator
let stage: Stage
const historyPath = '*notifications/history*'

before(async () => {
  service = await startService({ ROLE: 'api' })
  sim = await openSim({ clock: 'real' })
  const connection = { workspaceBaseUrl: `${service.url}/v1`, secretKey: service.secretKey, namespace: 'service' }
  stage = await setStage(sim.url, connection, 'appstore')
})
after(async () => {
  await sim[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

/** Much else may run beside it. */
const eventually = <T>(ask: () => Promise<T | undefined | null | false>) => within(ask, 30_000)

const startWorker = () => service.another({ ROLE: 'worker' })
const faults = (...list: object[]) => ask(sim.url, 'PUT', '/sim/faults', { faults: list })
const log = async (): Promise<Body[]> => (await ask(sim.url, 'GET', '/sim/log')).log
const calls = async () =>
  (await log()).filter(({ kind, what }) => kind === 'call' && what.includes('/notifications/history'))

interface History {
  read_until_ms: bigint
  span: { nextPage: string | null; whole: boolean } | null
  wait: number
}

async function history(): Promise<History | undefined> {
  const [row] = await service.pool.query<History>(
    `select read_until_ms, span, (due_at_ms - extract(epoch from clock_timestamp()) * 1000)::float8 as wait
     from appstore_history`,
  )
  return row
}
const dueNow = () => service.pool.query('update appstore_history set due_at_ms = 0')
/** As if nobody had read it for so long. */
const wasAway = (ms: number) =>
  service.pool.query('update appstore_history set due_at_ms = 0, read_until_ms = read_until_ms - $1::bigint', [ms])
/** Read to its end, and not due for a while. */
const isRead = async () => {
  const row = await history()
  return row !== undefined && row.span === null && row.wait > historyRetryMs
}

async function ask200(path: string, body: object): Promise<Body> {
  const response = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey: stage.keys.test, ...body }),
  })
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer
}

/** Something that is bought once: nothing but a notification tells that it was refunded. */
async function buy(who: string): Promise<Body> {
  const bought = { app: stage.name, account: who, customer: who, productId: 'com.example.demo.lifetime' }
  const held = await sim.buyApple(bought)
  await ask200('/purchase', { distinct_id: who, ...held.purchase })
  return { ...held, who }
}
const isAllowed = async (who: string) => (await ask200('/entitled', { customerId: who, featureId: 'pro' })).allowed

/** All that was to be sent was tried. */
async function delivered(): Promise<void> {
  await eventually(async () => {
    const { apps } = await ask(sim.url, 'GET', '/sim/state')
    const deliveries = apps.flatMap((app: Body) => (app.id === stage.name ? app.deliveries : []))
    return deliveries.every(({ nextAt }: Body) => nextAt === null)
  })
}

async function processed(): Promise<void> {
  await eventually(async () => {
    const rows = await service.pool.query(`select id from store_inbox where status = 'waiting'`)
    return rows.length === 0
  })
}

test('what was missed is read page by page; another process goes on where one stopped, and no page is read twice', async () => {
  const owners = Array.from({ length: 41 }, (_, n) => `missed-${n}`)
  const held = await Promise.all(owners.map(buy))
  await delivered()
  await faults({ kind: 'drop', path: '/notify/*' })
  for (const one of held) await sim.verb(one, 'refund')
  await delivered()
  await faults({ kind: 'hang', path: historyPath, seconds: 1 })

  const first = await startWorker()
  await eventually(history)
  await wasAway(60_000)
  await eventually(async () => (await history())?.span?.nextPage != null)
  await first[Symbol.asyncDispose]()
  const middle = await history()
  assert.ok(middle?.span?.nextPage != null, 'it stopped in the middle')
  assert.ok((await calls()).length < 3, 'before it had read all')

  await using second = await startWorker()
  await using third = await startWorker()
  assert.notEqual(second.url, third.url)
  await eventually(isRead)
  assert.equal((await calls()).length, 3, 'three pages of twenty, each read once')
  await processed()
  for (const who of owners) assert.equal(await isAllowed(who), false, who)
  const rows = await service.pool.query<{ status: string; payload: object; count: number }>(
    `select status, payload - 'sha256' as payload, count(*)::int as count
     from store_inbox
     where kind = 'REFUND'
     group by 1, 2`,
  )
  assert.deepEqual(rows, [{ status: 'done', payload: {}, count: owners.length }])
  await faults()
})

describe('with a worker', () => {
  let worker: TestService
  before(async () => {
    worker = await startWorker()
  })
  after(() => worker[Symbol.asyncDispose]())

  test('what arrived is known by its id when the history tells of it too', async () => {
    const held = await Promise.all(['both-1', 'both-2', 'both-3'].map(buy))
    await faults({ kind: 'duplicate', path: '/notify/*' })
    const asked = (await calls()).length
    for (const one of held) {
      await wasAway(dayMs)
      await sim.verb(one, 'refund')
    }
    await delivered()
    await wasAway(dayMs)
    await eventually(async () => (await calls()).length > asked && (await isRead()))
    await processed()
    const inbox = () =>
      service.pool.query<{ notification_id: string; attempts: number }>(
        'select notification_id, attempts from store_inbox order by notification_id',
      )
    const before = await inbox()
    assert.deepEqual(
      before.filter(({ attempts }) => attempts !== 1),
      [],
    )
    await wasAway(dayMs)
    await eventually(isRead)
    assert.deepEqual(await inbox(), before)
    for (const { who } of held) assert.equal(await isAllowed(who), false)
    await faults()
  })

  test('a store that fails, refuses, limits or cuts its answer short loses nothing: it is asked again later', async () => {
    const held = await buy('later')
    await faults({ kind: 'drop', path: '/notify/*' })
    await sim.verb(held, 'refund')
    await delivered()
    await eventually(isRead)
    const before = (await history())?.read_until_ms
    for (const kind of ['server_error', 'unauthorized', 'rate_limited', 'truncated_json']) {
      await faults({ kind, path: historyPath, ...(kind === 'rate_limited' ? { seconds: 1800 } : {}) })
      const asked = (await calls()).length
      await dueNow()
      await eventually(async () => (await calls()).length > asked && ((await history())?.wait ?? 0) > 100_000)
      const { read_until_ms, wait } = (await history()) ?? {}
      assert.equal(read_until_ms, before, kind)
      const atLeastMs = kind === 'rate_limited' ? 1800_000 : historyRetryMs
      assert.ok((wait ?? 0) > atLeastMs - 30_000 && (wait ?? 0) <= atLeastMs + 1000, `${kind}: ${wait}`)
    }
    await faults()
    await dueNow()
    await eventually(async () => (await history())?.read_until_ms !== before)
    await processed()
    assert.equal(await isAllowed('later'), false)
  })

  test('a page that Apple has forgotten begins the span anew', async () => {
    await eventually(isRead)
    const until = Date.now()
    const span = { from: until - dayMs, until, whole: true, nextPage: 'sim-forgotten' }
    await service.pool.query('update appstore_history set span = $1::jsonb, due_at_ms = 0', [JSON.stringify(span)])
    await eventually(async () => (await history())?.span === null)
    await dueNow()
    await eventually(async () => Number((await history())?.read_until_ms) >= until)
  })

  test('what nobody we trust has signed is left out, and holds up nothing', async () => {
    const [foreign, genuine] = [await buy('foreign'), await buy('genuine')]
    await delivered()
    const asked = (await calls()).length
    await faults({ kind: 'foreign_root', path: '/notify/*' })
    await sim.verb(foreign, 'refund')
    await delivered()
    await faults({ kind: 'drop', path: '/notify/*' })
    await sim.verb(genuine, 'refund')
    await delivered()
    await dueNow()
    await eventually(async () => (await calls()).length > asked && (await isRead()))
    await processed()
    assert.deepEqual([await isAllowed('foreign'), await isAllowed('genuine')], [true, false])
    await faults()
  })

  test('a history follows its credential: it is forgotten with it, and begun anew', async () => {
    const before = await eventually(history)
    const [{ app_id: appId } = { app_id: '' }] = await service.pool.query<{ app_id: string }>(
      'select app_id from appstore_history',
    )
    const removed = await service.workspace('DELETE', `/apps/${appId}/store_credentials?kind=appstore`)
    assert.equal(removed.status, 200)
    await dueNow()
    await eventually(async () => (await history()) === undefined)
    const { appstore } = sim.config
    const { issuer_id, key_id, private_key } = appstore
    const put = { kind: 'appstore', app_apple_id: null, issuer_id, key_id, private_key }
    assert.equal((await service.workspace('PUT', `/apps/${appId}/store_credentials`, { body: put })).status, 200)
    const begun = await eventually(history)
    assert.ok(begun.read_until_ms > before.read_until_ms)
    assert.ok(begun.wait > historyEveryMs - 30_000)
  })

  test('under a live key both environments are read, each by itself, and nothing without a key', async () => {
    const { id: project_id } = await stage.call('POST', '/projects', { name: 'Live' })
    const app = await stage.call('POST', '/apps', {
      project_id,
      platform: 'ios',
      name: 'Live',
      bundle_id: 'com.example.live',
    })
    const bare = await stage.call('POST', '/apps', {
      project_id,
      platform: 'ios',
      name: 'Bare',
      bundle_id: 'com.example.bare',
    })
    const { issuer_id, key_id, private_key } = sim.config.appstore
    const put = (id: string, key: object) =>
      service.workspace('PUT', `/apps/${id}/store_credentials`, {
        body: { kind: 'appstore', app_apple_id: 1234, ...key },
        environment: 'live',
      })
    assert.equal((await put(bare.id, {})).status, 200)
    assert.equal((await put(app.id, { issuer_id, key_id, private_key })).status, 200)
    const rows = await eventually(async () => {
      const found = await service.pool.query<{ app_id: string; store_environment: string }>(
        `select app_id, store_environment
         from appstore_history
         where app_id = any($1)
         order by store_environment`,
        [[app.id, bare.id]],
      )
      return found.length > 0 && found
    })
    assert.deepEqual(rows, [
      { app_id: app.id, store_environment: 'production' },
      { app_id: app.id, store_environment: 'sandbox' },
    ])
  })
})
