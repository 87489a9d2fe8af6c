import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { type Body, openReceiver, openSim } from './sim.ts'

/** Card payments as a developer tries them: connect, open a page, press its buttons, and see what the service makes of it. */
const service = await startService()
const sim = await openSim({ clock: 'real' })
after(async () => {
  await sim[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const project = await openProject(service)
const shop = await project.app('web', 'test')
const connection = { workspace_base_url: `${service.url}/v1`, secret_key: service.secretKey }
const connected = await sim.control('POST', '/sim/connect', { ...connection, app_id: shop.id })
await project.feature('pro', { type: 'boolean' })
await project.feature('coins')
const product = (key: string, type: string, grants: object[]) =>
  project.post('/products', {
    ...{ project_id: project.id, key, name: key, type, grants },
    stores: [{ store: 'stripe', product_id: `price_of_${key}` }],
  })
await product('plan', 'subscription', [{ feature: 'pro' }])
await product('coins_10', 'one_time', [{ feature: 'coins', allowance: 10 }])

async function openPage(customerId: string, ...productIds: string[]): Promise<{ id: string; path: string }> {
  const { status, body } = await shop.post('/purchase', { type: 'stripe', customerId, productIds })
  assert.equal(status, 200, JSON.stringify(body))
  const { origin, pathname } = new URL(body.checkout.url)
  assert.equal(origin, sim.url)
  return { id: body.checkout.id, path: pathname }
}

/** What is on a page: its words, and the addresses of its buttons. */
async function look(path: string): Promise<{ words: string; buttons: string[] }> {
  const { status, body } = await sim.call('GET', path)
  assert.equal(status, 200)
  return { words: body, buttons: [...body.matchAll(/action="([^"]+)"/g)].map(([, action]: string[]) => action ?? '') }
}

async function press(path: string, verb: string): Promise<string | null> {
  const { buttons } = await look(path)
  assert.ok(buttons.includes(`${path}/${verb}`), `${verb} is not among ${buttons.join()}`)
  const response = await fetch(`${sim.url}${path}/${verb}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: sim.url },
  })
  assert.equal(response.status, 303, await response.text())
  return response.headers.get('location')
}

const has = (customerId: string, featureId: string, wanted: boolean | number) =>
  eventually(async () => {
    const { body } = await shop.post('/entitled', { customerId, featureId })
    return (typeof wanted === 'number' ? body.balance : body.allowed) === wanted
  }, 20_000)

test('an app of the web is connected for cards alone, and has somewhere to return to', async () => {
  assert.deepEqual([connected.platform, connected.store], ['web', undefined])
  const { checkout_return_urls: returns } = await project.get(`/apps/${shop.id}/store_settings`)
  assert.deepEqual(returns, [`${sim.url}/stripe/`])
  const { ok } = await project.post(`/apps/${shop.id}/store_credentials/stripe/check`, {})
  assert.equal(ok, true)
})

test('a subscription: paid, failed, recovered, renewed, refunded', async () => {
  const { id, path } = await openPage('ann', 'plan')
  assert.match((await look(path)).words, /price_of_plan/)
  assert.equal(await press(path, 'pay'), `${sim.url}/stripe/`)
  await has('ann', 'pro', true)
  assert.match((await look('/stripe/')).words, new RegExp(id))
  assert.equal(await press(path, 'renew'), path)
  await press(path, 'fail')
  await press(path, 'recover')
  await press(path, 'refund')
  await has('ann', 'pro', false)
  await press(path, 'renew')
  await has('ann', 'pro', true)
  await press(path, 'cancel')
  assert.match((await look(path)).words, /canceled/)
})

test('what is bought once: a half given back, disputed, won', async () => {
  const { path } = await openPage('ben', 'coins_10')
  await press(path, 'pay')
  await has('ben', 'coins', 10)
  await press(path, 'refund-half')
  await has('ben', 'coins', 5)
  await press(path, 'dispute')
  await has('ben', 'coins', 0)
  await press(path, 'win-dispute')
  await has('ben', 'coins', 5)
})

test('every button leads somewhere', async () => {
  for (const products of [['plan', 'coins_10'], ['coins_10']]) {
    const opened = await openPage(`cid ${products.join()}`, ...products)
    assert.equal(await press(opened.path, 'leave'), `${sim.url}/stripe/`)
    await press(opened.path, 'pay')
    const { buttons } = await look(opened.path)
    assert.ok(buttons.length >= 5)
    for (const button of buttons) {
      const { status, body } = await sim.call('POST', button, '')
      assert.ok(status === 200 || status === 409, `${button}: ${status} ${JSON.stringify(body)}`)
    }
  }
  assert.equal((await sim.call('POST', '/stripe/pay/cs_none/pay', '')).status, 404)
})

test('an iOS app is connected to both', async () => {
  const app = await project.app('ios', 'test')
  await project.patch(`/apps/${app.id}`, { bundle_id: 'com.example.both' })
  const { store, stripe_webhook: webhook } = await sim.control('POST', '/sim/connect', {
    ...connection,
    app_id: app.id,
  })
  assert.deepEqual([store, webhook], ['appstore', `${service.url}/webhooks/stripe/${app.id}`])
  const { data } = await project.get(`/apps/${app.id}/store_credentials`)
  const { fields } = data.find(({ kind }: Body) => kind === 'endpoints')
  assert.deepEqual([fields.appstore_api, fields.stripe_api], [`${sim.url}/appstore`, `${sim.url}/stripe`])
})

test('who did not listen is told again', async () => {
  await using other = await openSim({ clock: 'real', seed: 'b' })
  await using receiver = await openReceiver()
  receiver.status = 500
  const to = { ...connection, app_id: shop.id, webhook_base_url: new URL(receiver.url).origin }
  await other.control('POST', '/sim/connect', to)
  const { body } = await shop.post('/purchase', { type: 'stripe', customerId: 'dan', productIds: ['coins_10'] })
  await other.call('POST', `${new URL(body.checkout.url).pathname}/pay`, '')
  assert.equal(receiver.received.length, 1)
  receiver.status = 200
  await eventually(async () => receiver.received.length > 1, 20_000)
  const [first, second] = receiver.received
  assert.deepEqual(second?.body, first?.body)
  assert.equal(first?.body.type, 'checkout.session.completed')
})
