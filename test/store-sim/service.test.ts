import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { playScenario } from '../../store-sim/scenarios/play-scenario.ts'
import { needsOwnService, readScenarios } from '../../store-sim/scenarios/scenario.ts'
import { eventually } from '../app/project.ts'
import { startService, type TestService } from '../harness/service.ts'
import { type Body, openSim, type Simulator } from './sim.ts'

const monthly = 'com.example.demo.pro_monthly'
let service: TestService
let sim: Simulator

before(async () => {
  service = await startService()
  sim = await openSim({ clock: 'real' })
})
after(async () => {
  await sim[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

/** A project with an app, a boolean Feature `pro`, and the Product that grants it. */
async function openApp(platform: 'ios' | 'android', name: string): Promise<Body> {
  const call = async (method: string, path: string, body?: object) => {
    const answer = await service.workspace(method, path, { ...(body ? { body } : {}) })
    assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const { id: project_id } = await call('POST', '/projects', { name })
  const names = platform === 'ios' ? { bundle_id: name } : { package_name: name }
  const app = await call('POST', '/apps', { project_id, platform, name, ...names })
  const { key } = await call('POST', `/apps/${app.id}/publishable_keys`, {})
  await call('POST', '/features', { project_id, key: 'pro', name: 'Pro', type: 'boolean' })
  await call('POST', '/products', {
    project_id,
    key: 'pro',
    name: 'Pro',
    type: 'subscription',
    grants: [{ feature: 'pro', allowance: null, unlimited: false, interval: null }],
    stores: [
      { store: 'appstore', product_id: monthly },
      { store: 'playstore', product_id: 'pro_monthly' },
    ],
  })
  return { ...app, key }
}

function connect(app: Body): Promise<Body> {
  return sim.control('POST', '/sim/connect', {
    workspace_base_url: `${service.url}/v1`,
    secret_key: service.secretKey,
    app_id: app.id,
  })
}

async function post(path: string, body: object): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

test('a connected app takes what the simulator sells, for the customer it was bought for', async () => {
  const app = await openApp('ios', 'com.example.connected')
  const about = await connect(app)
  assert.deepEqual([about.app, about.connected_app_id], ['com.example.connected', app.id])
  assert.equal(about.target, `${service.url}/webhooks/appstore/${app.id}`)
  const listed = await service.workspace('GET', `/apps/${app.id}/store_credentials`)
  const kinds = listed.body.data.map(({ kind }: Body) => kind)
  assert.deepEqual(kinds.toSorted(), ['appstore', 'appstore_trust', 'endpoints', 'stripe'])
  const checked = await service.workspace('POST', `/apps/${app.id}/store_credentials/appstore/check`, { body: {} })
  assert.deepEqual([checked.body.ok, checked.body.problem], [true, null])

  const held = await sim.buyApple({ app: about.app, customer: 'ann', productId: monthly })
  const bought = await post('/purchase', { apiKey: app.key, distinct_id: 'ann', ...held.purchase })
  assert.equal(bought.status, 200, JSON.stringify(bought.body))
  assert.equal(bought.body.transaction_id, held.transactionId)
  const entitled = await post('/entitled', { apiKey: app.key, customerId: 'ann', featureId: 'pro' })
  assert.equal(entitled.body.allowed, true)

  const other = await post('/purchase', { apiKey: app.key, distinct_id: 'ben', ...held.purchase })
  assert.deepEqual([other.status, other.body.code], [409, 'app_store_purchase_conflict'])
})

test('what is paid and not handed in is found by comparing', async () => {
  const app = await openApp('ios', 'com.example.compared')
  await connect(app)
  const buy = { app: 'com.example.compared', account: 'dora', productId: monthly }
  const held = await sim.buyApple({ ...buy, customer: 'dora' })
  const mine = async () => {
    const found = await sim.control('GET', '/sim/invariants')
    const of = (list: Body[]) => list.filter((one) => one.app === 'com.example.compared')
    return { paid: of(found.paid_without_access), free: of(found.access_without_paid) }
  }
  const missing = { app: 'com.example.compared', account: 'dora', feature: 'pro' }
  assert.deepEqual(await mine(), { paid: [missing], free: [] })
  const asked = { app: 'com.example.compared', path: '/purchase', body: { distinct_id: 'dora', ...held.purchase } }
  assert.equal((await sim.control('POST', '/sim/service', asked)).status, 200)
  assert.deepEqual(await mine(), { paid: [], free: [] })
  const features = await sim.control('GET', '/sim/features?app=com.example.compared')
  assert.deepEqual(
    features.body.data.map(({ key }: Body) => key),
    ['pro'],
  )
})

test('an Android app is connected with its service account and push settings', async () => {
  const app = await openApp('android', 'com.example.android')
  const about = await connect(app)
  assert.equal(about.store, 'playstore')
  const listed = await service.workspace('GET', `/apps/${app.id}/store_credentials`)
  const play = listed.body.data.find(({ kind }: Body) => kind === 'playstore')
  assert.equal(play.fields.client_email, sim.config.playstore.service_account.client_email)
  assert.equal(play.fields.push_email, sim.config.playstore.push_email)

  const held = await sim.buyPlay({ app: about.app, customer: 'ann', productId: 'pro_monthly' })
  const body = { distinct_id: 'ann', ...held.purchase }
  const asked = { store: 'playstore', app: about.app, path: '/purchase', body }
  const bought = await sim.control('POST', '/sim/service', asked)
  assert.equal(bought.status, 200, JSON.stringify(bought.body))
  assert.equal(bought.body.order_id, held.orderId)
  await eventually(async () => (await sim.verb(held, 're-sign')).acknowledged)
})

test('an app without a bundle id, a foreign key and an unknown app are not connected', async () => {
  const { body: project } = await service.workspace('POST', '/projects', { body: { name: 'Bare' } })
  const { body: bare } = await service.workspace('POST', '/apps', {
    body: { project_id: project.id, platform: 'ios', name: 'Bare' },
  })
  const status = async (changes: object) => {
    const usual = { workspace_base_url: `${service.url}/v1`, secret_key: service.secretKey, app_id: bare.id }
    return (await sim.call('POST', '/sim/connect', { ...usual, ...changes })).status
  }
  assert.equal(await status({}), 409)
  assert.equal(await status({ secret_key: 'sk_wrong' }), 502)
  assert.equal(await status({ app_id: 'app_none' }), 502)
  assert.equal(await status({ workspace_base_url: 'http://127.0.0.1:9/v1' }), 502)
})

test('the command connects the app it is given', async () => {
  const app = await openApp('ios', 'com.example.commanded')
  const options = ['--workspace', `${service.url}/v1`, '--key', service.secretKey, '--app', app.id]
  const env = { PATH: process.env.PATH, STORE_SIM_URL: sim.url }
  const { stdout } = await promisify(execFile)(process.execPath, ['store-sim/connect.ts', ...options], { env })
  assert.match(stdout, new RegExp(`${app.id} is connected`))
})

test('with an accelerated clock the service is never behind the store', async () => {
  const app = await openApp('ios', 'com.example.accelerated')
  const about = await connect(app)
  assert.equal(about.service_follows_clock, true)
  await sim.control('POST', '/sim/clock', { app: about.app, mode: 'accelerated', month_ms: 30_000 })
  for (const account of ['ann', 'ben', 'cleo']) {
    const held = await sim.buyApple({ app: about.app, account, customer: account, productId: monthly })
    const bought = await post('/purchase', { apiKey: app.key, distinct_id: account, ...held.purchase })
    assert.equal(bought.status, 200, JSON.stringify(bought.body))
    await sleep(700)
  }
  await sim.control('POST', '/sim/clock', { app: about.app, by: 'P40D' })
  const isRenewed = async () => {
    const { body } = await post('/entitled', { apiKey: app.key, customerId: 'ann', featureId: 'pro' })
    return body.allowed
  }
  await eventually(isRenewed)
  await sim.control('POST', '/sim/clock', { app: about.app, mode: 'manual' })
})

for (const scenario of readScenarios().filter((one) => !needsOwnService(one)))
  test(`scenario ${scenario.name} goes as told`, async () => {
    const connection = { workspaceBaseUrl: `${service.url}/v1`, secretKey: service.secretKey, namespace: 'service' }
    const { passed, why } = await playScenario({ sim: sim.url, service: connection }, scenario)
    assert.ok(passed, why)
  })
