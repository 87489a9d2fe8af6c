import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { mintPublishableKey, mintSecretKey } from '../../src/tenancy/index.ts'
import { eventually } from '../app/project.ts'
import { type Api, assertRefused, auditOf, caller, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

describe('401', () => {
  test('a missing, unknown, malformed or publishable key is refused', async () => {
    const ways: [Record<string, string>, string][] = [
      [{}, 'invalid_api_key'],
      [{ authorization: 'Bearer ' }, 'invalid_api_key'],
      [{ authorization: 'Basic abc' }, 'invalid_api_key'],
      [{ authorization: `Bearer ${mintSecretKey().key}` }, 'invalid_api_key'],
      [{ authorization: `Bearer ${mintPublishableKey('live')}` }, 'key_kind_invalid'],
    ]
    for (const [headers, code] of ways) {
      assertRefused(await caller(api.url, null)('GET', '/projects', { headers }), 401, code)
    }
  })

  test('a revoked and an expired key are as unknown as one that never was', async () => {
    for (const column of ['revoked_at', 'expires_at']) {
      const ws = await api.workspace()
      assert.equal((await ws.get('/projects')).status, 200)
      await api.pool.query(`update secret_key set ${column} = now() - interval '1 hour' where workspace_id = $1`, [
        ws.id,
      ])
      await api.pool.query('update instance set revision = revision + 1')
      await api.directory.refresh()
      assertRefused(await ws.get('/projects'), 401, 'invalid_api_key')
    }
  })

  test('the key is asked for before the environment, the fields, the body and what is not there', async () => {
    const stranger = caller(api.url, 'sk_nobody')
    assertRefused(await stranger('GET', '/projects', { environment: 'moon' }), 401, 'invalid_api_key')
    assertRefused(await stranger('POST', '/projects', { body: { wrong: true } }), 401, 'invalid_api_key')
    assertRefused(await stranger('POST', '/projects', { body: '{broken' }), 401, 'invalid_api_key')
    assertRefused(await stranger('GET', '/features/none'), 401, 'invalid_api_key')
  })
})

describe('402', () => {
  test('a workspace without access is told why', async () => {
    const states = { api_disabled: 'api_access_required', payment_required: 'billing_payment_required' }
    for (const [access, code] of Object.entries(states)) {
      const ws = await api.workspace()
      await api.pool.query('update workspace set access = $2 where id = $1', [ws.id, access])
      await api.pool.query('update instance set revision = revision + 1')
      await api.directory.refresh()
      assertRefused(await ws.get('/projects'), 402, code)
    }
  })
})

describe('400', () => {
  test('the environment is test or live, live when nothing is said', async () => {
    const ws = await api.workspace()
    for (const environment of ['', 'Test', 'production']) {
      assertRefused(await ws.get('/projects', { environment }), 400, 'invalid_request', 'X-Service-Env')
    }
    const made = await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' }, { environment: 'live' })
    const silent = await fetch(`${api.url}/v1/features/pro`, { headers: { authorization: `Bearer ${ws.key}` } })
    assert.deepEqual(await silent.json(), made.body)
  })

  test('bodies that are no JSON object, queries and fields that nobody knows', async () => {
    const ws = await api.workspace()
    assertRefused(await ws.post('/projects', '{broken'), 400, 'invalid_json')
    assertRefused(await ws.post('/projects', '[]'), 400, 'invalid_json')
    assertRefused(await ws.post('/projects', '"text"'), 400, 'invalid_json')
    assertRefused(await ws.call('POST', '/projects'), 400, 'invalid_request')
    assertRefused(
      await ws.post('/projects', 'name=a', { headers: { 'content-type': 'text/plain' } }),
      400,
      'invalid_request',
    )
    assertRefused(await ws.post('/projects', { name: 'A', extra: 1 }), 400, 'unknown_field', 'extra')
    assertRefused(await ws.post('/projects', '{"name":"A","__proto__":{"a":1}}'), 400, 'unknown_field', '__proto__')
    assertRefused(await ws.get('/projects?page=2'), 400, 'unknown_field', 'page')
    assertRefused(await ws.get('/projects?limit=1&limit=2'), 400, 'invalid_request', 'limit')
    assertRefused(await ws.get('/projects/%00'), 400, 'invalid_request', 'id')
    assertRefused(await ws.get(`/projects/${'x'.repeat(65)}`), 400, 'invalid_request', 'id')
  })

  test('an operation without a body knows no field, and needs no body', async () => {
    const ws = await api.workspace()
    await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
    assertRefused(await ws.post('/features/pro/archive', { now: true }), 400, 'unknown_field', 'now')
    const json = { 'content-type': 'application/json' }
    assert.equal((await ws.call('POST', '/features/pro/archive', { headers: json })).status, 200)
    assert.equal((await ws.post('/features/pro/publish', {})).status, 200)
    const { body: project } = await ws.post('/projects', { name: 'Gone soon' })
    assert.equal((await ws.delete(`/projects/${project.id}`, { headers: json })).status, 200)
  })

  test('several projects make project_id necessary', async () => {
    const ws = await api.workspace()
    await ws.post('/projects', { name: 'Second' })
    const feature = { key: 'pro', name: 'Pro', type: 'boolean' }
    assertRefused(await ws.post('/features', feature), 400, 'invalid_request', 'project_id')
    assertRefused(await ws.get('/customers'), 400, 'invalid_request', 'project_id')
    assert.equal((await ws.post('/features', { ...feature, project_id: ws.projectId })).status, 201)
  })
})

describe('404', () => {
  test('a path that is not there is told in the same words', async () => {
    const ws = await api.workspace()
    assertRefused(await ws.get('/nothing'), 404, 'not_found')
  })

  test('a project of another workspace is no project', async () => {
    const [ours, theirs] = [await api.workspace(), await api.workspace()]
    const body = { project_id: theirs.projectId, key: 'pro', name: 'Pro', type: 'boolean' }
    assertRefused(await ours.post('/features', body), 404, 'not_found', 'project_id')
    assertRefused(await ours.get(`/features?project_id=${theirs.projectId}`), 404, 'not_found', 'project_id')
    assertRefused(await ours.get(`/projects/${theirs.projectId}`), 404, 'not_found')
    assertRefused(await ours.patch(`/projects/${theirs.projectId}`, { name: 'Ours' }), 404, 'not_found')
    assertRefused(await ours.delete(`/projects/${theirs.projectId}`), 404, 'not_found')
  })
})

describe('Idempotency-Key', () => {
  test('the same key and body give the first answer again and change nothing', async () => {
    const ws = await api.workspace()
    const send = () => ws.post('/projects', { name: 'Once' }, { idempotencyKey: 'one' })
    const first = await send()
    const second = await send()
    assert.equal(second.status, 201)
    assert.deepEqual(second.body, first.body)
    assert.equal(first.headers.get('idempotent-replayed'), null)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.equal((await ws.get('/projects')).body.data.length, 2)
    assert.equal((await auditOf(api.pool, first.body.id)).length, 1)
  })

  test('an answer that is given again is one that this process goes by, though nobody had told it of the change', async () => {
    const ws = await api.workspace()
    await using other = await startApi(api)
    const listening = `from pg_stat_activity where datname = current_database() and query = 'listen turnpike_revision'`
    await eventually(async () => (await api.pool.query(`select ${listening}`)).length === 2, 20_000)
    await api.pool.query(`select pg_terminate_backend(pid, 5000) ${listening}`)
    const options = { body: { name: 'Once' }, idempotencyKey: 'another process' }
    const { body } = await ws.call('POST', '/projects', options)
    const elsewhere = caller(other.url, ws.key)
    assert.equal((await elsewhere('POST', '/projects', options)).headers.get('idempotent-replayed'), 'true')
    assert.equal((await elsewhere('GET', `/features?project_id=${body.id}`)).status, 200)
  })

  test('the order of fields is not another body', async () => {
    const ws = await api.workspace()
    const first = await ws.post('/features', '{"key":"a","name":"A","type":"boolean"}', { idempotencyKey: 'order' })
    const second = await ws.post('/features', '{"type":"boolean","name":"A","key":"a"}', { idempotencyKey: 'order' })
    assert.equal(second.status, 201)
    assert.deepEqual(second.body, first.body)
  })

  test('the same key with another body, path or environment is a conflict', async () => {
    const ws = await api.workspace()
    const idempotencyKey = 'two'
    await ws.post('/projects', { name: 'A' }, { idempotencyKey })
    assertRefused(await ws.post('/projects', { name: 'B' }, { idempotencyKey }), 409, 'idempotency_conflict')
    assertRefused(
      await ws.post('/projects', { name: 'A' }, { idempotencyKey, environment: 'live' }),
      409,
      'idempotency_conflict',
    )
    const elsewhere = { project_id: ws.projectId, platform: 'web', name: 'A' }
    assertRefused(await ws.post('/apps', elsewhere, { idempotencyKey }), 409, 'idempotency_conflict')
  })

  test('twenty requests at the same time with one key create one thing', async () => {
    const ws = await api.workspace()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ws.post('/projects', { name: 'Once' }, { idempotencyKey: 'storm' })),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
    assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1)
    assert.equal((await ws.get('/projects')).body.data.length, 2)
  })

  test('a refusal is not kept: the corrected request may use the key', async () => {
    const ws = await api.workspace()
    const idempotencyKey = 'three'
    const feature = { key: 'pro', name: 'Pro', type: 'boolean' }
    await ws.post('/features', feature)
    assertRefused(await ws.post('/features', feature, { idempotencyKey }), 409, 'conflict')
    assert.equal((await ws.post('/features', { ...feature, key: 'other' }, { idempotencyKey })).status, 201)
  })

  test('two workspaces do not share keys', async () => {
    const [a, b] = [await api.workspace(), await api.workspace()]
    const idempotencyKey = 'shared'
    const [first, second] = [
      await a.post('/projects', { name: 'A' }, { idempotencyKey }),
      await b.post('/projects', { name: 'B' }, { idempotencyKey }),
    ]
    assert.deepEqual([first.status, second.status], [201, 201])
    assert.notEqual(first.body.id, second.body.id)
  })

  test('it has 1 to 255 characters', async () => {
    const ws = await api.workspace()
    const send = (idempotencyKey: string) => ws.post('/projects', { name: 'A' }, { idempotencyKey })
    assert.equal((await send('k')).status, 201)
    assert.equal((await send('k'.repeat(255))).status, 201)
    assertRefused(await send('k'.repeat(256)), 400, 'invalid_request', 'Idempotency-Key')
    assertRefused(await send(''), 400, 'invalid_request', 'Idempotency-Key')
  })
})

describe('the audit log', () => {
  test('tells who changed what, with digests of before and after, and nothing of what was refused', async () => {
    const ws = await api.workspace()
    const { body: feature } = await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
    await ws.patch('/features/pro', { name: 'Professional' }, { headers: { 'x-request-id': 'mine' } })
    await ws.patch('/features/pro', { type: 'metered' })
    await ws.post('/features', { key: 'pro', name: 'Again', type: 'boolean' })
    const rows = await api.pool.query(
      `select action, object, object_id, actor_type, actor_id, before_digest, after_digest, request_id
       from audit_log
       where workspace_id = $1
       order by id`,
      [ws.id],
    )
    const [holder] = await api.pool.query<{ id: string }>('select id from secret_key where workspace_id = $1', [ws.id])
    const [created, updated] = rows as Record<string, string>[]
    assert.equal(rows.length, 2)
    assert.deepEqual(
      [created?.action, created?.object, created?.object_id, created?.actor_type, created?.actor_id],
      ['create', 'feature', feature.id, 'secret_key', holder?.id],
    )
    assert.equal(created?.before_digest, null)
    assert.equal(updated?.before_digest, created?.after_digest)
    assert.notEqual(updated?.after_digest, created?.after_digest)
    assert.equal(updated?.request_id, 'mine')
  })
})
