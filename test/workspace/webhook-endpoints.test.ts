import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { webhookEndpointsMax, webhookUrlCharsMax } from '../../src/kernel/limits.ts'
import { aDraft, server } from '../harness/a-draft.ts'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

test('an endpoint is made, listed, changed and deleted; its secret is shown when it is new, and never again', async () => {
  const ws = await api.workspace()
  const made = await ws.post('/webhook_endpoints', { name: 'Shop', url: 'https://shop.example.com/hook' })
  assert.equal(made.status, 201)
  const { secret, ...shown } = made.body
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.match(shown.id, /^whe_/)
  assert.deepEqual((await ws.get(`/webhook_endpoints/${shown.id}`)).body, shown)
  assert.deepEqual((await ws.get('/webhook_endpoints')).body.data, [shown])
  const changed = await ws.call('PATCH', `/webhook_endpoints/${shown.id}`, {
    body: { url: 'http://shop.example.com/2' },
  })
  assert.deepEqual([changed.status, changed.body.name, changed.body.url], [200, 'Shop', 'http://shop.example.com/2'])
  const rotated = await ws.post(`/webhook_endpoints/${shown.id}/rotate_secret`, {})
  assert.notEqual(rotated.body.secret, secret)
  const gone = await ws.call('DELETE', `/webhook_endpoints/${shown.id}`)
  assert.deepEqual(gone.body, { object: 'webhook_endpoint', id: shown.id, deleted: true })
  assertRefused(await ws.get(`/webhook_endpoints/${shown.id}`), 404, 'not_found')
  assert.deepEqual((await ws.get('/webhook_endpoints')).body.data, [])
  const stored = await api.pool.query<{ sealed_secret: string }>(
    'select sealed_secret from webhook_endpoint where public_id = $1',
    [shown.id],
  )
  assert.deepEqual(stored, [{ sealed_secret: '' }])
  assert.deepEqual(
    (await auditOf(api.pool, shown.id)).map(({ action }) => action),
    ['create', 'update', 'rotate_secret', 'delete'],
  )
})

test('its secret is stored sealed, in the answer kept for an Idempotency-Key too', async () => {
  const ws = await api.workspace()
  const body = { name: 'Shop', url: 'https://shop.example.com/hook' }
  const headers = { 'idempotency-key': 'one' }
  const first = await ws.call('POST', '/webhook_endpoints', { body, headers })
  const again = await ws.call('POST', '/webhook_endpoints', { body, headers })
  assert.deepEqual(again.body, first.body)
  const dump = await api.pool.query<{ text: string }>(
    'select sealed_secret as text from webhook_endpoint union all select body from idempotency',
  )
  assert.ok(dump.length > 1 && dump.every(({ text }) => !text.includes(first.body.secret)))
})

test('an address is http or https, without user, password and fragment, and has its length', async () => {
  const ws = await api.workspace()
  const add = (url: string) => ws.post('/webhook_endpoints', { name: 'x', url })
  for (const url of [
    '',
    'shop',
    'ftp://a.example',
    'https://u:p@a.example',
    'https://u@a.example',
    'https://a.example/#x',
    'javascript:1',
  ]) {
    assertRefused(await add(url), 400, 'invalid_request')
  }
  const long = (length: number) => `https://a.example/${'x'.repeat(length - 'https://a.example/'.length)}`
  assert.equal((await add(long(webhookUrlCharsMax))).status, 201)
  assertRefused(await add(long(webhookUrlCharsMax + 1)), 400, 'invalid_request')
})

test(`a project has at most ${webhookEndpointsMax} in an environment`, async () => {
  const ws = await api.workspace()
  await api.pool.query(
    `insert into webhook_endpoint (scope_id, public_id, name, url, sealed_secret)
     select $1, 'whe_' || md5($1::int || ' ' || n), 'x', 'https://a.example', ''
     from generate_series(2, $2::int) n`,
    [ws.scopes.test.scopeId, webhookEndpointsMax],
  )
  const add = () => ws.post('/webhook_endpoints', { name: 'x', url: 'https://a.example' })
  assert.equal((await add()).status, 201)
  assertRefused(await add(), 409, 'conflict')
})

test('a draft may name an endpoint of its project and environment, and no other', async () => {
  const ws = await api.workspace()
  const { body: endpoint } = await ws.post('/webhook_endpoints', { name: 'Shop', url: 'https://shop.example.com' })
  const issuesOf = async (endpointId: string) => {
    const draft = aDraft()
    const action = { type: 'webhook', endpointId, body: {}, timeoutMs: 1000, attempts: 1 }
    draft.graph.steps[2] = server('note', action, { success: 'again', failure: null })
    const { body } = await ws.post('/experiences/welcome/draft/validate', { draft })
    return body.issues.map(({ code }: { code: string }) => code)
  }
  await ws.post('/experiences', { key: 'welcome', name: 'Welcome' })
  assert.deepEqual(await issuesOf(endpoint.id), [])
  assert.deepEqual(await issuesOf('whe_other'), ['reference_missing'])
  await ws.call('DELETE', `/webhook_endpoints/${endpoint.id}`)
  assert.deepEqual(await issuesOf(endpoint.id), ['reference_missing'])
})
