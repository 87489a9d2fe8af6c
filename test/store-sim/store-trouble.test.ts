import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { circuitFailuresMax, circuitRestMs } from '../../src/kernel/limits.ts'
import { ask, type Stage, setStage } from '../../store-sim/scenarios/stage.ts'
import { eventually as within } from '../app/project.ts'
import { startService, type TestService } from '../harness/service.ts'
import { type Body, openSim, playAssertion, postAssertion, type Simulator } from './sim.ts'

/** Without a worker nobody but the callers of a test asks the stores. */
let service: TestService
let sim: Simulator
const stages = {} as Record<'appstore' | 'playstore', Stage>
const products = { appstore: 'com.example.demo.pro_monthly', playstore: 'pro_monthly' } as const
const unavailable = {
  appstore: 'app_store_purchase_unavailable',
  playstore: 'android_store_purchase_unavailable',
} as const
const reads = { appstore: '*/inApps/*', playstore: '*/purchases/*' } as const
const stores = ['appstore', 'playstore'] as const

before(async () => {
  service = await startService({ ROLE: 'api' })
  sim = await openSim({ clock: 'real' })
})
after(async () => {
  await sim[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
/** Circuits are of a credential: no test feels what another one opened. */
beforeEach(async () => {
  await faults()
  const connection = { workspaceBaseUrl: `${service.url}/v1`, secretKey: service.secretKey, namespace: 'service' }
  for (const store of stores) stages[store] = await setStage(sim.url, connection, store)
})

const faults = (...list: object[]) => ask(sim.url, 'PUT', '/sim/faults', { faults: list })

async function call(path: string, body: object): Promise<{ status: number; body: Body; waitS: number }> {
  const response = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json(), waitS: Number(response.headers.get('retry-after')) }
}

/** Much else may run beside it. */
const eventually = <T>(ask: () => Promise<T | undefined | null | false>) => within(ask, 30_000)

let people = 0
const someone = () => `trouble-${++people}`

async function buy(store: (typeof stores)[number], who = someone()): Promise<Body> {
  const bought = { app: stages[store].name, account: who, customer: who, productId: products[store] }
  const held = await ask(sim.url, 'POST', `/sim/${store}/purchases`, bought)
  return { ...held, who, store }
}
const bring = ({ store, who, purchase }: Body) =>
  call('/purchase', { apiKey: stages[store as 'appstore'].keys.test, distinct_id: who, ...purchase })

/** Calls of the store's API about purchases, so far. */
async function asked(store: (typeof stores)[number]): Promise<number> {
  const { log } = await ask(sim.url, 'GET', '/sim/log')
  const about = { appstore: '/inApps/', playstore: '/purchases/' }[store]
  return log.filter(({ kind, what }: Body) => kind === 'call' && what.includes(about)).length
}

async function circuitsOpen(store: string): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('turnpike_store_circuits_open{'))
  return lines
    .filter((line) => line.includes(`store="${store}"`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

async function credential(store: 'appstore' | 'playstore'): Promise<Body> {
  const project = await stages[store].call('GET', '/apps?limit=100')
  const [app] = project.data.filter(({ name }: Body) => name === stages[store].name)
  const { data } = await stages[store].call('GET', `/apps/${app.id}/store_credentials`)
  return data.find(({ kind }: Body) => kind === store)
}

describe('a store that is down', () => {
  for (const store of stores) {
    test(`${store}: its calls rest after failures in a row, one tries, and no purchase is refused for it`, async () => {
      const held = await buy(store)
      const later = await buy(store)
      assert.equal((await bring(held)).status, 200)
      await faults({ kind: 'server_error', path: reads[store] })
      const open = await circuitsOpen(store)
      for (let n = 0; n < circuitFailuresMax; n++) {
        const { status, body, waitS } = await bring(later)
        assert.deepEqual([status, body.code], [503, unavailable[store]])
        assert.ok(waitS >= 1)
      }
      assert.equal(await circuitsOpen(store), open + 1)
      const before = await asked(store)
      const rested = await bring(later)
      assert.deepEqual([rested.status, rested.body.code], [503, unavailable[store]])
      assert.ok(rested.waitS >= 1 && rested.waitS <= circuitRestMs / 1000, `${rested.waitS}`)
      assert.equal(await asked(store), before, 'nobody was asked')

      // What is held needs no store.
      const { who } = held
      const entitled = { apiKey: stages[store].keys.test, customerId: who, featureId: 'pro' }
      assert.equal((await call('/entitled', entitled)).body.allowed, true)
      const shown = await eventually(async () => {
        const found = await credential(store)
        return /Calls rest/.test(found.last_error ?? '') && found
      })
      assert.ok(shown.last_error_at > shown.last_success_at)

      // The rest is over for whoever comes first: that one asks twice, as always, and the others wait for what it hears.
      await sleep(rested.waitS * 1000)
      const crowd = await Promise.all(Array.from({ length: 5 }, () => bring(later)))
      assert.deepEqual([...new Set(crowd.map(({ status }) => status))], [503])
      assert.equal(await asked(store), before + 2)

      await faults()
      let answer = await bring(later)
      for (let n = 0; answer.status === 503 && n < 3; n++) {
        await sleep(answer.waitS * 1000)
        answer = await bring(later)
      }
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      assert.equal(await circuitsOpen(store), open)
      await eventually(async () => {
        const { last_success_at, last_error_at } = await credential(store)
        return last_success_at > last_error_at
      })
    })
  }

  test('what one credential meets is nothing to another one, nor is an answer that it does not like', async () => {
    const first = await buy('appstore')
    const { keys, name } = stages.appstore
    await faults({ kind: 'server_error', path: reads.appstore })
    for (let n = 0; n < circuitFailuresMax; n++) await bring(first)
    await faults()
    const connection = { workspaceBaseUrl: `${service.url}/v1`, secretKey: service.secretKey, namespace: 'service' }
    stages.appstore = await setStage(sim.url, connection, 'appstore')
    assert.notEqual(stages.appstore.name, name)
    assert.equal((await bring(await buy('appstore'))).status, 200)
    const other = await call('/purchase', { apiKey: keys.test, distinct_id: first.who, ...first.purchase })
    assert.equal(other.status, 503)

    for (const kind of ['unauthorized', 'rate_limited'] as const) {
      await faults({ kind, path: reads.appstore })
      const held = await buy('appstore')
      const before = await asked('appstore')
      for (let n = 0; n <= circuitFailuresMax; n++) assert.equal((await bring(held)).status, 503)
      assert.ok((await asked('appstore')) > before + circuitFailuresMax, `${kind}: it is asked each time`)
    }
  })
})

test('how the use of a credential went is seen without trying it', async () => {
  for (const store of stores) {
    const { last_success_at, last_error_at } = await credential(store)
    assert.deepEqual([last_success_at, last_error_at], [null, null])
    assert.equal((await bring(await buy(store))).status, 200)
    await eventually(async () => (await credential(store)).last_success_at !== null)
    assert.equal((await credential(store)).last_error, null)
    await faults({ kind: store === 'appstore' ? 'unauthorized' : 'forbidden', path: reads[store] })
    assert.equal((await bring(await buy(store))).status, 503)
    const shown = await eventually(async () => {
      const found = await credential(store)
      return found.last_error !== null && found
    })
    assert.match(shown.last_error, /does not take the key/)
    await faults()
  }
})

describe('answers that are none', () => {
  for (const store of stores) {
    test(`${store}: one that is too large, cut short or never ends is no verdict, and changes nothing`, async () => {
      const held = await buy(store)
      for (const kind of ['oversized', 'truncated_json', 'slow_body'] as const) {
        await faults({ kind, path: reads[store] })
        const { status, body, waitS } = await bring(held)
        assert.deepEqual([status, body.code], [503, unavailable[store]], kind)
        assert.ok(waitS >= 1)
      }
      const rows = await service.pool.query('select id from store_lineage where app_id = $1', [
        (await credential(store)).app_id,
      ])
      assert.deepEqual(rows, [])
      await faults()
      assert.equal((await bring(held)).status, 200)
    })
  }
})

test('ten seconds are all that a purchase may take, however many calls each of which is in time', async () => {
  const first = await buy('playstore')
  // Eight changes of plan that nobody told us of: each is a call, and each is answered in time.
  const { access_token: bearer } = (
    await postAssertion(await playAssertion(sim.config), sim.config.playstore.service_account.token_uri)
  ).body
  let held = first
  for (let n = 0; n < 8; n++) {
    const { purchase_token: token, product_id: product } = held.purchase
    const path = `/play/androidpublisher/v3/applications/${stages.playstore.name}/purchases/subscriptions/${product}/tokens/${token}:acknowledge`
    assert.ok((await sim.call('POST', path, {}, { authorization: `Bearer ${bearer}` })).status < 300)
    const productId = n % 2 === 0 ? 'premium_monthly' : 'pro_monthly'
    const changed = await sim.verb(held, 'upgrade', { productId, basePlanId: 'monthly' })
    held = { ...changed, who: first.who, store: 'playstore' }
  }
  await faults({ kind: 'hang', path: reads.playstore, seconds: 2.5 })
  const began = performance.now()
  const answer = await bring(held)
  const tookMs = performance.now() - began
  assert.deepEqual([answer.status, answer.body.code], [503, unavailable.playstore])
  assert.ok(tookMs < 14_000, `${tookMs} ms instead of the twenty that the calls take together`)
  await faults()
  assert.equal((await bring(held)).status, 200)
})
