import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeProtectedHeader } from 'jose'
import { startStoreSim } from '../../store-sim/start.ts'
import { appleLabels, type Body, bundle, noon, openReceiver, openSim, playNotices } from './sim.ts'

const monthly = 'com.example.demo.pro_monthly'

test('the same seed and steps give the same ids; another seed gives others', async () => {
  const play = async (seed: string) => {
    await using sim = await openSim({ seed })
    const apple = await sim.buyApple({ productId: monthly })
    const android = await sim.buyPlay({ productId: 'pro_monthly' })
    await sim.move('P2M')
    const { apps } = await sim.control('GET', '/sim/state')
    const ids = apps.flatMap(({ deliveries }: Body) => deliveries.map(({ id }: Body) => id))
    return [apple.transactionId, apple.appTransactionId, android.purchaseToken, android.orderId, ...ids]
  }
  const [first, second, other] = [await play('a'), await play('a'), await play('b')]
  assert.deepEqual(first, second)
  assert.equal(
    first.filter((id) => other.includes(id)).length,
    1,
    'only the account and app give the app transaction id',
  )
})

test('moving the clock runs what is due in order, each at its own time', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  await sim.buyApple({ productId: monthly })
  await sim.move('P3D')
  await sim.buyApple({ account: 'ben', productId: monthly })
  await sim.move('P2M')
  assert.equal(appleLabels(receiver).filter((label) => label === 'DID_RENEW').length, 4)
  const { apps } = await sim.control('GET', '/sim/state')
  const at = apps[0].deliveries.map(({ createdAt }: Body) => new Date(createdAt).toISOString().slice(0, 10))
  assert.deepEqual(at, ['2027-01-15', '2027-01-18', '2027-02-15', '2027-02-18', '2027-03-15', '2027-03-18'])
})

test('clocks never go back, and say what they do not understand', async () => {
  await using sim = await openSim()
  const status = async (body: object) => (await sim.call('POST', '/sim/clock', body)).status
  assert.equal(await status({ to: new Date(noon - 1).toISOString() }), 409)
  assert.equal(await status({ by: 'a while' }), 400)
  assert.equal(await status({ by: 'P' }), 400)
  assert.equal(await status({ mode: 'wobbly' }), 400)
  assert.equal(await status({ app: 'com.example.none', by: 'P1D' }), 404)
  assert.equal(await status({ mode: 'accelerated', month_ms: 29_999 }), 400)
  assert.equal(await status({ to: '2027-02-01T00:00:00Z' }), 200)
  const { apps } = await sim.control('GET', '/sim/state')
  assert.deepEqual(
    apps.map(({ now }: Body) => now),
    ['2027-02-01T00:00:00.000Z', '2027-02-01T00:00:00.000Z'],
  )
})

test('an accelerated clock renews by itself', async () => {
  await using sim = await openSim()
  await sim.buyApple({ productId: monthly })
  await sim.control('POST', '/sim/clock', { mode: 'accelerated', month_ms: 30_000 })
  await sim.move('P30DT12H')
  const end = performance.now() + 10_000
  for (let periods = 0; periods < 2; ) {
    assert.ok(performance.now() < end, 'it renewed in time')
    await sleep(100)
    periods = (await sim.control('GET', '/sim/state')).apps[0].lineages[0].transactions.length
  }
})

test('each app has its own clock', async () => {
  await using sim = await openSim()
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: 'com.example.two', url: 'http://127.0.0.1:9/' })
  await sim.control('POST', '/sim/clock', { app: 'com.example.two', by: 'P1Y' })
  const { apps } = await sim.control('GET', '/sim/state')
  const now = (id: string) => apps.find(({ app, store }: Body) => app === id && store === 'appstore').now
  assert.equal(now(bundle), new Date(noon).toISOString())
  assert.equal(now('com.example.two'), '2028-01-15T12:00:00.000Z')
})

test('stores fail as told, by path and so many times', async () => {
  await using sim = await openSim()
  const apple = await sim.buyApple({ productId: monthly })
  const android = await sim.buyPlay({ productId: 'pro_monthly' })
  const readApple = () => sim.apple('GET', `/inApps/v1/transactions/${apple.transactionId}`)
  const readPlay = () => sim.play('GET', `/purchases/subscriptionsv2/tokens/${android.purchaseToken}`)
  await readPlay()
  const fault = (...faults: object[]) => sim.control('PUT', '/sim/faults', { faults })
  await fault(
    { kind: 'rate_limited', path: '/appstore/*', count: 2, seconds: 7 },
    { kind: 'rate_limited', path: '/play/*', count: 1, seconds: 7 },
  )
  const limited = await readApple()
  assert.equal(limited.status, 429)
  const waitMs = Number(limited.headers.get('retry-after')) - Date.now()
  assert.ok(waitMs > 0 && waitMs <= 7_000, 'the App Store gives an instant in milliseconds')
  assert.equal((await readApple()).status, 429)
  assert.equal((await readApple()).status, 200)
  const other = await readPlay()
  assert.deepEqual([other.status, other.headers.get('retry-after')], [429, '7'])
  for (const [kind, status] of [
    ['server_error', 500],
    ['unauthorized', 401],
    ['forbidden', 403],
  ] as const) {
    await fault({ kind, count: 2 })
    assert.equal((await readApple()).status, status)
    assert.equal((await readPlay()).status, status)
  }
  await fault({ kind: 'truncated_json', count: 1 })
  const broken = await readApple()
  assert.equal(typeof broken.body, 'string')
  await fault({ kind: 'not_found', seconds: 60 })
  assert.equal((await readApple()).status, 404)
  assert.equal((await readPlay()).status, 404)
  await sim.move('PT1M')
  assert.equal((await readApple()).status, 200)
  assert.equal((await readPlay()).status, 200)
  await fault({ kind: 'hang', seconds: 0.3, count: 1 })
  const began = performance.now()
  assert.equal((await readApple()).status, 200)
  assert.ok(performance.now() - began >= 290)
  assert.equal((await sim.call('PUT', '/sim/faults', { faults: [{ kind: 'rain' }] })).status, 400)
})

test('faults strike as likely as told, and alike for the same seed', async () => {
  const strikes = async (probability: number) => {
    await using sim = await openSim()
    const { transactionId } = await sim.buyApple({ productId: monthly })
    await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'server_error', path: '/appstore/*', probability }] })
    const found: number[] = []
    for (let i = 0; i < 40; i++) found.push((await sim.apple('GET', `/inApps/v1/transactions/${transactionId}`)).status)
    return found
  }
  assert.deepEqual([...new Set(await strikes(0))], [200])
  assert.deepEqual([...new Set(await strikes(1))], [500])
  const half = await strikes(0.5)
  assert.ok(half.includes(200) && half.includes(500))
  assert.deepEqual(await strikes(0.5), half)
})

test('signatures go wrong as told, and so do the clocks of those who sign', async () => {
  await using sim = await openSim()
  const { transactionId } = await sim.buyApple({ productId: monthly })
  const read = async () =>
    (await sim.apple('GET', `/inApps/v1/transactions/${transactionId}`)).body.signedTransactionInfo
  const good = decodeProtectedHeader(await read()).x5c ?? []
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'foreign_root', path: '/appstore/*', count: 1 }] })
  assert.notEqual(decodeProtectedHeader(await read()).x5c?.[2], good[2])
  assert.equal(decodeProtectedHeader(await read()).x5c?.[2], good[2])
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'clock_skew', seconds: 120, count: 1 }] })
  const { signedDate } = JSON.parse(Buffer.from((await read()).split('.')[1], 'base64url').toString())
  assert.equal(signedDate, noon + 120_000)
})

test('notifications are dropped, doubled, delayed and reordered as told', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  await sim.control('PUT', '/sim/targets', { store: 'playstore', app: bundle, url: receiver.url })
  const fault = (...faults: object[]) => sim.control('PUT', '/sim/faults', { faults })
  await fault({ kind: 'drop', count: 1 })
  const held = await sim.buyPlay({ productId: 'pro_monthly', test: false })
  assert.equal(receiver.received.length, 0)
  await fault({ kind: 'duplicate', count: 1 })
  await sim.verb(held, 'cancel')
  assert.equal(receiver.received.length, 2)
  assert.equal(receiver.received[0]?.body.message.messageId, receiver.received[1]?.body.message.messageId)
  await fault({ kind: 'delay', seconds: 90, count: 1 })
  await sim.verb(held, 'restart')
  await sim.move('PT89S')
  assert.equal(receiver.received.length, 2)
  await sim.move('PT1S')
  assert.equal(receiver.received.length, 3)
  await fault({ kind: 'reorder', count: 1 })
  await sim.verb(held, 'revoke')
  const order = playNotices(receiver)
    .slice(3)
    .map((notice) => ('voidedPurchaseNotification' in notice ? 'voided' : 'revoked'))
  assert.deepEqual(order, ['voided'])
  await sim.move('PT1M')
  assert.equal(playNotices(receiver).at(-1).subscriptionNotification.notificationType, 12)
})

test('the catalogue is what tests say it is', async () => {
  await using sim = await openSim()
  await sim.control('PUT', '/sim/appstore/products', {
    products: [{ productId: 'weekly', type: 'subscription', group: 'g', level: 1, period: 'P1W', price: 990 }],
  })
  const held = await sim.buyApple({ productId: 'weekly' })
  assert.equal(held.expiresAt, '2027-01-22T12:00:00.000Z')
  const gone = await sim.call('POST', '/sim/appstore/purchases', { account: 'ben', productId: monthly })
  assert.equal(gone.body.error.code, 'product_not_found')
  const wrong = [
    { productId: 'x', type: 'gift' },
    { productId: 'x', type: 'subscription', period: 'PT' },
  ]
  for (const product of wrong)
    assert.equal((await sim.call('PUT', '/sim/appstore/products', { products: [product] })).status, 400)
})

test('everything sold can last less, down to seconds', async () => {
  await using sim = await openSim()
  await sim.control('POST', '/sim/shorten', { app: bundle, month_ms: 12_000 })
  const apple = await sim.buyApple({ productId: monthly })
  assert.equal(Date.parse(apple.expiresAt) - noon, 12_000)
  const android = await sim.buyPlay({ productId: 'pro_monthly' })
  assert.equal(Date.parse(android.expiresAt) - noon, 12_000)
  const trial = await sim.buyApple({ account: 'ben', productId: monthly, offer: 'trial' })
  assert.equal(Date.parse(trial.expiresAt) - noon, 3_000)
  assert.equal((await sim.call('POST', '/sim/shorten', { month_ms: 999 })).status, 400)
})

test('the world survives a restart, and a reset begins anew', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'store-sim-'))
  try {
    let held: Body
    {
      await using sim = await openSim({ dataDir })
      held = await sim.buyApple({ productId: monthly })
    }
    await using sim = await openSim({ dataDir })
    assert.equal((await sim.verb(held, 're-sign')).transactionId, held.transactionId)
    await sim.control('POST', '/sim/reset', {})
    assert.deepEqual((await sim.control('GET', '/sim/state')).apps[0].lineages, [])
    const again = await sim.buyApple({ productId: monthly })
    assert.equal(again.transactionId, held.transactionId)
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})

test('the log says who called and what was delivered', async () => {
  await using sim = await openSim()
  const { transactionId } = await sim.buyApple({ productId: monthly })
  await sim.apple('GET', `/inApps/v1/transactions/${transactionId}`)
  const { log } = await sim.control('GET', '/sim/log')
  const last = log.at(-1)
  assert.deepEqual([last.what, last.status], [`GET /appstore/inApps/v1/transactions/${transactionId}`, 200])
  assert.deepEqual((await sim.control('GET', `/sim/log?after=${last.n}`)).log, [])
})

test('pages of other sites cannot press its buttons', async () => {
  await using sim = await openSim()
  const from = async (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asked = request(`${sim.url}/sim/reset`, { method: 'POST', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      asked.on('error', reject).end('{}')
    })
  assert.equal(await from({ origin: 'https://evil.example' }), 403)
  assert.equal(await from({ host: 'rebound.example' }), 403)
  assert.equal(await from({ origin: sim.url }), 200)
})

test('play purchases that wait for their acknowledgement too long are reported', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly', test: false })
  const late = async () => (await sim.control('GET', '/sim/invariants')).not_acknowledged_in_time
  assert.deepEqual(await late(), [])
  await sim.move('PT36H')
  assert.deepEqual(
    (await late()).map(({ purchase }: Body) => purchase),
    [held.id],
  )
})

test('the page and its parts are served', async () => {
  const sim = await startStoreSim()
  try {
    for (const [path, type] of [
      ['/', 'text/html'],
      ['/page.js', 'text/javascript'],
      ['/page.css', 'text/css'],
    ] as const) {
      const response = await fetch(`${sim.url}${path}`)
      assert.equal(response.status, 200)
      assert.match(response.headers.get('content-type') ?? '', new RegExp(`^${type}`))
      assert.ok((await response.text()).length > 500)
    }
    assert.equal((await fetch(`${sim.url}/sim/nothing`)).status, 404)
    assert.equal((await fetch(`${sim.url}/sim/config`, { method: 'DELETE' })).status, 405)
  } finally {
    await sim[Symbol.asyncDispose]()
  }
})
