import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, describe, test } from 'node:test'
import pino from 'pino'
import { sendAnnouncements } from '../../src/experiences/index.ts'
import { webhookEndpointsMax, webhookUrlCharsMax } from '../../src/kernel/limits.ts'
import { aDraft, server } from '../harness/a-draft.ts'
import { type Receiver, receiver, says } from '../harness/receiver.ts'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

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

describe('changes of Experiences', () => {
  const all = ['published', 'paused', 'resumed', 'unpublished', 'archived'].map((verb) => `experience.${verb}`)

  async function anExperience(ws: Workspace): Promise<string> {
    const { body: app } = await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })
    const { body: key } = await ws.post('/signing_keys', {})
    await ws.post(`/signing_keys/${key.id}/activate`, {})
    await ws.post('/experiences', { key: 'welcome', name: 'Welcome' })
    const saved = { body: aDraft(), headers: { 'if-match': '0' } }
    assert.equal((await ws.call('PUT', '/experiences/welcome/draft', saved)).status, 200)
    return app.id
  }

  const hear = async (ws: Workspace, { url }: Receiver, events: string[]) =>
    (await ws.post('/webhook_endpoints', { name: 'Shop', url, events })).body

  const waiting = async (ws: Workspace) =>
    api.pool.query<{ attempts: number; due_at_ms: bigint }>(
      'select attempts, due_at_ms from announcement where scope_id = $1',
      [ws.scopes.test.scopeId],
    )

  /** As time goes on. */
  async function send(ws: Workspace, { allowPrivate = true } = {}): Promise<void> {
    await api.pool.query('update announcement set due_at_ms = 0 where scope_id = $1', [ws.scopes.test.scopeId])
    const { pool, sealingKey } = api
    await sendAnnouncements({ pool, sealingKey, allowPrivate, log: pino({ level: 'silent' }) })
  }

  test('are told to the endpoints that asked for them, signed, each once', async () => {
    const ws = await api.workspace()
    const appId = await anExperience(ws)
    await using shop = await receiver(says(200))
    await using deaf = await receiver(says(200))
    const { secret } = await hear(ws, shop, all)
    await hear(ws, deaf, [])
    await hear(await api.workspace(), deaf, all)
    await ws.post('/webhook_endpoints', { name: 'Live', url: deaf.url, events: all }, { environment: 'live' })
    const told = async (verb: string, path: string, body: object = {}) => {
      const answer = await ws.post(`/experiences/welcome/${path}`, body)
      assert.ok(answer.status < 300, JSON.stringify(answer.body))
      const before = shop.heard.length
      await send(ws)
      const [one, ...others] = shop.heard.slice(before)
      assert.deepEqual([others, await waiting(ws)], [[], []], verb)
      return one && { ...JSON.parse(one.body), heard: one }
    }
    const published = await told('published', 'versions')
    const { body: version } = await ws.get('/experiences/welcome/versions')
    const [{ id: versionId, experience_id: experienceId }] = version.data
    const data = {
      ...{
        project_id: ws.projectId,
        environment: 'test',
        experience_id: experienceId,
        key: 'welcome',
        name: 'Welcome',
      },
    }
    const app = { app_id: appId, version_id: versionId, version_number: 1, published_at_seq: 1 }
    assert.deepEqual([published.type, published.data], ['experience.published', { ...data, apps: [app] }])
    assert.ok(Math.abs(Date.parse(published.timestamp) - Date.now()) < 600_000)
    const { headers, body } = published.heard
    const seed = Buffer.from(secret.replace('whsec_', ''), 'base64')
    const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', seed).update(text).digest('base64')}`)

    const apps = [{ app_id: appId }]
    for (const [verb, type] of [
      ['pause', 'paused'],
      ['resume', 'resumed'],
      ['unpublish', 'unpublished'],
    ] as const) {
      const { type: heard, data: of } = await told(verb, verb)
      assert.deepEqual([heard, of], [`experience.${type}`, { ...data, apps }])
      assert.equal(await told(`${verb} again`, verb), undefined, 'nothing has changed')
    }
    const rollback = await told('activated', `versions/${versionId}/activate`)
    assert.deepEqual(rollback.data.apps, [{ ...app, published_at_seq: 2 }])
    assert.equal((await told('archived', 'archive')).type, 'experience.archived')
    assert.equal(await told('archived again', 'archive').catch(() => undefined), undefined)
    assert.deepEqual(deaf.heard, [])
  })

  test('are told again under one key until they are heard, but no more to what is gone or says no', async () => {
    const ws = await api.workspace()
    await anExperience(ws)
    await using shop = await receiver(says(503), (answer) => answer.destroy(), says(204, ''))
    await using closed = await receiver(says(410))
    await using gone = await receiver(says(200))
    await hear(ws, shop, ['experience.published'])
    await hear(ws, closed, ['experience.published'])
    const { id } = await hear(ws, gone, ['experience.published'])
    await ws.post('/experiences/welcome/versions', {})
    await ws.call('DELETE', `/webhook_endpoints/${id}`)
    await send(ws)
    const [left, ...others] = await waiting(ws)
    assert.deepEqual([left?.attempts, others], [1, []])
    assert.ok(Number(left?.due_at_ms) > Date.now() - 60_000, 'later')
    await send(ws)
    await send(ws)
    assert.deepEqual([shop.heard.length, closed.heard.length, gone.heard.length, await waiting(ws)], [3, 1, 0, []])
    assert.equal(new Set(shop.heard.map(({ headers }) => headers['webhook-id'])).size, 1)
  })

  test('are not told where nothing was published, nor to the own network', async () => {
    const ws = await api.workspace()
    await anExperience(ws)
    await using shop = await receiver(says(200))
    await hear(ws, shop, all)
    const wrong = { ...aDraft(), platforms: ['android'] }
    await ws.call('PUT', '/experiences/welcome/draft', { body: wrong, headers: { 'if-match': '1' } })
    assertRefused(await ws.post('/experiences/welcome/versions', {}), 409, 'conflict')
    assert.deepEqual(await waiting(ws), [])
    await ws.call('PUT', '/experiences/welcome/draft', { body: aDraft(), headers: { 'if-match': '2' } })
    await ws.post('/experiences/welcome/versions', {})
    await send(ws, { allowPrivate: false })
    assert.deepEqual([shop.heard, await waiting(ws)], [[], []])
  })

  test('are named by their words; what an endpoint hears can be changed', async () => {
    const ws = await api.workspace()
    const { body } = await ws.post('/webhook_endpoints', { name: 'x', url: 'https://a.example' })
    assert.deepEqual(body.events, [])
    const change = (events: unknown) => ws.call('PATCH', `/webhook_endpoints/${body.id}`, { body: { events } })
    assert.deepEqual((await change(all)).body.events, all)
    assert.deepEqual(
      (await ws.call('PATCH', `/webhook_endpoints/${body.id}`, { body: { name: 'y' } })).body.events,
      all,
    )
    for (const wrong of [['experience.made'], ['experience.paused', 'experience.paused'], 'experience.paused', null]) {
      assertRefused(await change(wrong), 400, 'invalid_request')
    }
    assert.deepEqual((await change([])).body.events, [])
  })
})
