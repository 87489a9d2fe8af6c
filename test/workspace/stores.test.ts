import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { wireCustomerId } from '../../src/customers/index.ts'
import {
  cardGraceHoursMax,
  checkoutReturnUrlsMax,
  pollLeaseHoursMax,
  returnUrlCharsMax,
  reviewCustomersMax,
  storeIdCharsMax,
  tokenNamespacesMax,
} from '../../src/kernel/limits.ts'
import { checkLiveCredentials, createLoadStoreApp } from '../../src/purchases/index.ts'
import { dayMs, testPki } from '../harness/apple-pki.ts'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

let ws: Workspace
let app: string
before(async () => {
  ws = await api.workspace()
  app = (await ws.post('/apps', { platform: 'ios', name: 'A', bundle_id: 'com.example.app' })).body.id
})

const pem = (type: 'ec' | 'rsa', curve = 'P-256') =>
  (type === 'ec'
    ? generateKeyPairSync('ec', { namedCurve: curve })
    : generateKeyPairSync('rsa', { modulusLength: 2048 })
  ).privateKey
    .export({ type: 'pkcs8', format: 'pem' })
    .toString()
const key = pem('ec')
const appStore = { kind: 'appstore', app_apple_id: 1234, issuer_id: 'issuer', key_id: 'KEY', private_key: key }
const account = {
  client_email: 'a@example.com',
  private_key: pem('rsa'),
  token_uri: 'https://oauth2.googleapis.com/token',
}
const playStore = {
  kind: 'playstore',
  service_account: { type: 'service_account', ...account },
  push_email: 'p@example.com',
}

const put = (body: object, environment = 'test') =>
  ws.call('PUT', `/apps/${app}/store_credentials`, { body, environment })
const list = async (environment = 'test') =>
  (await ws.call('GET', `/apps/${app}/store_credentials`, { environment })).body.data

describe('store credentials', () => {
  test('secrets go in and never come out', async () => {
    const made = await put(appStore)
    assert.equal(made.status, 200, JSON.stringify(made.body))
    assert.match(made.body.fields.public_key_sha256, /^[0-9a-f]{64}$/)
    assert.deepEqual(
      [made.body.kind, made.body.fields.key_id, made.body.fields.app_apple_id],
      ['appstore', 'KEY', 1234],
    )
    await put(playStore)
    await put({ kind: 'stripe', secret_key: 'sk_stripe_1234', webhook_secret: 'whsec_5678' })
    const all = await list()
    assert.deepEqual(
      all.map(({ kind }: { kind: string }) => kind),
      ['appstore', 'playstore', 'stripe'],
    )
    const shown = JSON.stringify(all)
    for (const secret of ['PRIVATE KEY', 'sk_stripe', 'whsec', key.slice(40, 80)])
      assert.ok(!shown.includes(secret), secret)
    const stored = JSON.stringify(
      await api.pool.query('select sealed, wrapped_key, public_fields from store_credential'),
    )
    assert.ok(!stored.includes('PRIVATE KEY') && !stored.includes('sk_stripe'))
    assert.ok((await auditOf(api.pool, `${app} appstore`)).length > 0)
    assert.deepEqual(await list('live'), [])
  })

  test('putting one replaces the record of its kind, and deleting removes it', async () => {
    await put(appStore)
    const { body } = await put({ ...appStore, app_apple_id: 99 })
    assert.equal(body.fields.app_apple_id, 99)
    const gone = await ws.call('DELETE', `/apps/${app}/store_credentials?kind=appstore`)
    assert.deepEqual(gone.body, { object: 'store_credential', id: 'appstore', deleted: true })
    assertRefused(await ws.call('DELETE', `/apps/${app}/store_credentials?kind=appstore`), 404, 'not_found')
  })

  test('keys and certificates are tried at once', async () => {
    const { root } = await testPki()
    for (const private_key of ['x', pem('rsa'), pem('ec', 'P-384')]) {
      assertRefused(await put({ ...appStore, private_key }), 400, 'invalid_request', 'private_key')
    }
    assertRefused(await put({ kind: 'appstore', key_id: 'KEY' }), 400, 'invalid_request')
    const wrong = { ...playStore, service_account: { ...account, private_key: key } }
    assertRefused(await put(wrong), 400, 'invalid_request', 'service_account.private_key')
    assertRefused(await put({ kind: 'appstore_trust', roots: ['x'] }), 400, 'invalid_request', 'roots.0')
    const trust = await put({ kind: 'appstore_trust', roots: [root.certificate.toString()] })
    assert.match(trust.body.fields.roots[0].sha256, /^[0-9a-f]{64}$/)
    assertRefused(await put({ kind: 'endpoints', appstore_api: 'ftp://x' }), 400, 'invalid_request')
    assertRefused(await put({ kind: 'something' }), 400, 'invalid_request')
  })

  test('what is for test only is refused in live, and ends a start that finds it there', async () => {
    const { root } = await testPki()
    const only = [
      { kind: 'appstore_trust', roots: [root.certificate.toString()] },
      { kind: 'endpoints', appstore_api: 'http://127.0.0.1:4100' },
      { ...playStore, service_account: { ...account, token_uri: 'http://127.0.0.1:4100/play/token' } },
    ]
    for (const body of only) {
      assertRefused(await put(body, 'live'), 400, 'test_only')
      assert.equal((await put(body)).status, 200)
    }
    assert.equal((await put(playStore, 'live')).status, 200)
    const { sealingKey } = api
    await checkLiveCredentials(api.pool, sealingKey)
    const scope = api.directory.scope(ws.projectId, 'live')
    assert.ok(scope)
    assert.ok((await createLoadStoreApp(sealingKey)(api.pool, scope, app)).credentials.playstore)
    // Moved from another row, as only somebody with the database could: it does not open there.
    await api.pool.query(
      `insert into store_credential (scope_id, app_id, kind, sealed, wrapped_key, public_fields)
       select $1, app_id, kind, sealed, wrapped_key, public_fields from store_credential where app_id = $2 and kind = 'endpoints'`,
      [scope.scopeId, app],
    )
    await assert.rejects(checkLiveCredentials(api.pool, sealingKey))
    await api.pool.query(`delete from store_credential where scope_id = $1 and kind = 'endpoints'`, [scope.scopeId])
  })
})

describe('store settings', () => {
  test('defaults, and changes of the named fields only', async () => {
    const before = (await ws.get(`/apps/${app}/store_settings`)).body
    assert.deepEqual(before, {
      object: 'store_settings',
      app_id: app,
      environment: 'test',
      sandbox_in_live: 'review',
      review_open_until: null,
      review_customers: [],
      unbound_purchases: 'reject',
      transfer_policy: 'keep',
      client_token_namespaces: null,
      revocation: 'background',
      poll_lease_hours: 24,
      play_voided_order_ends_access: true,
      checkout_return_urls: [],
      card_grace_hours: 72,
    })
    const changed = await ws.patch(`/apps/${app}/store_settings`, {
      unbound_purchases: 'first_claim',
      poll_lease_hours: 1,
    })
    assert.deepEqual(changed.body, { ...before, unbound_purchases: 'first_claim', poll_lease_hours: 1 })
    assert.deepEqual((await ws.get(`/apps/${app}/store_settings`)).body, changed.body)
    const live = await ws.call('GET', `/apps/${app}/store_settings`, { environment: 'live' })
    assert.equal(live.body.unbound_purchases, 'reject')
  })

  test('a review is open for 30 days at most', async () => {
    const open = (ahead: number) =>
      ws.patch(`/apps/${app}/store_settings`, { review_open_until: new Date(Date.now() + ahead).toISOString() })
    assert.equal((await open(30 * dayMs - 1000)).status, 200)
    assertRefused(await open(30 * dayMs + 60_000), 400, 'invalid_request', 'review_open_until')
    assert.equal(
      (await ws.patch(`/apps/${app}/store_settings`, { review_open_until: null })).body.review_open_until,
      null,
    )
  })

  test('what cannot be is refused', async () => {
    const change = (body: object) => ws.patch(`/apps/${app}/store_settings`, body)
    assertRefused(await change({ sandbox_in_live: 'sometimes' }), 400, 'invalid_request')
    assertRefused(await change({ review_customers: ['ada'] }), 400, 'invalid_request', 'review_customers')
    assertRefused(await change({ poll_lease_hours: -1 }), 400, 'invalid_request')
    assertRefused(await change({ anything: 1 }), 400, 'unknown_field')
    assertRefused(await change({ checkout_return_urls: ['ftp://a.example/'] }), 400, 'invalid_request')
    assertRefused(await change({ checkout_return_urls: Array(2).fill('https://a.example/') }), 400, 'invalid_request')
    assertRefused(await change({ card_grace_hours: 0.5 }), 400, 'invalid_request', 'card_grace_hours')
  })

  const many = (n: number, make: (i: number) => string) => Array.from({ length: n }, (_, i) => make(i))
  const long = (prefix: string, chars: number) => prefix + 'x'.repeat(chars - prefix.length)
  const bounds: [field: string, most: unknown, beyond: unknown, least?: [unknown, unknown]][] = [
    [
      'checkout_return_urls',
      many(checkoutReturnUrlsMax, (i) => `https://shop.example.com/${i}`),
      many(checkoutReturnUrlsMax + 1, (i) => `https://shop.example.com/${i}`),
    ],
    [
      'checkout_return_urls',
      [long('https://shop.example.com/', returnUrlCharsMax)],
      [long('https://shop.example.com/', returnUrlCharsMax + 1)],
    ],
    ['card_grace_hours', cardGraceHoursMax, cardGraceHoursMax + 1, [0, -1]],
    ['poll_lease_hours', pollLeaseHoursMax, pollLeaseHoursMax + 1, [0, -1]],
    [
      'review_customers',
      many(reviewCustomersMax, () => wireCustomerId(crypto.randomUUID())),
      many(reviewCustomersMax + 1, () => wireCustomerId(crypto.randomUUID())),
    ],
    [
      'client_token_namespaces',
      many(tokenNamespacesMax, (i) => `name-${i}`),
      many(tokenNamespacesMax + 1, (i) => `name-${i}`),
    ],
    ['client_token_namespaces', [long('n', storeIdCharsMax)], [long('n', storeIdCharsMax + 1)], [['n'], ['']]],
  ]
  for (const [field, most, beyond, [least, below] = [most, beyond]] of bounds) {
    test(`the limits of ${field} hold, and nothing beyond them: ${JSON.stringify(most).slice(0, 30)}`, async () => {
      for (const fits of [most, least]) {
        const { status, body } = await ws.patch(`/apps/${app}/store_settings`, { [field]: fits })
        assert.deepEqual([status, body[field]], [200, fits], JSON.stringify(body))
      }
      for (const wrong of [beyond, below]) {
        const { status, body } = await ws.patch(`/apps/${app}/store_settings`, { [field]: wrong })
        assert.deepEqual([status, body.error?.code], [400, 'invalid_request'], JSON.stringify(body))
      }
      assert.deepEqual((await ws.get(`/apps/${app}/store_settings`)).body[field], least)
    })
  }
})

describe('store links', () => {
  test('have duration and family_sharing on the App Store, and nowhere else', async () => {
    const product = (key: string, link: object) =>
      ws.post('/products', { key, name: key, type: 'subscription', grants: [], stores: [link] })
    const apple = { store: 'appstore', product_id: 'pass', duration: 'P1M', family_sharing: true }
    assert.deepEqual((await product('pass', apple)).body.stores, [apple])
    const wrong = await product('bad', { store: 'appstore', product_id: 'bad', duration: 'a month' })
    assertRefused(wrong, 400, 'invalid_request', 'stores.0.duration')
    for (const more of [{ duration: 'P1M' }, { family_sharing: true }]) {
      const answer = await product('play', { store: 'playstore', product_id: 'play', ...more })
      assertRefused(answer, 400, 'invalid_request', 'stores.0')
    }
  })
})

test('an unknown purchase is not found', async () => {
  assertRefused(await ws.get('/purchases/pur_nothing'), 404, 'not_found')
  assertRefused(await ws.post('/purchases/pur_nothing/reverify', {}), 404, 'not_found')
  const body = { customer_id: 'cus_2c5ea4c0-4067-5b8e-9a3c-2f6c8d0b3e97', reason: 'why' }
  assertRefused(await ws.post('/purchases/pur_nothing/transfer', body), 404, 'not_found')
})
