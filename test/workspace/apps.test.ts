import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

describe('apps, 200 and 201', () => {
  test('an app is created, read, changed and deleted', async () => {
    const ws = await api.workspace()
    const created = await ws.post('/apps', { platform: 'ios', name: 'Phone', bundle_id: 'com.example.app' })
    assert.equal(created.status, 201)
    const { id, created_at, account_token_namespace, ...rest } = created.body
    assert.match(id, /^app_/)
    assert.match(account_token_namespace, /^[0-9a-f-]{36}$/)
    assert.ok(created_at)
    assert.deepEqual(rest, {
      object: 'app',
      project_id: ws.projectId,
      platform: 'ios',
      name: 'Phone',
      bundle_id: 'com.example.app',
      package_name: null,
      last_connected_at: null,
    })
    assert.deepEqual((await ws.get(`/apps/${id}`)).body, created.body)

    const changed = await ws.patch(`/apps/${id}`, { name: 'New', bundle_id: null })
    assert.deepEqual(changed.body, { ...created.body, name: 'New', bundle_id: null })
    assert.deepEqual((await ws.delete(`/apps/${id}`)).body, { object: 'app', id, deleted: true })
    assertRefused(await ws.get(`/apps/${id}`), 404, 'not_found')
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update', 'delete'],
    )
  })

  test('apps are listed of one project or of the whole workspace', async () => {
    const ws = await api.workspace()
    const { body: second } = await ws.post('/projects', { name: 'Second' })
    const make = async (project_id: string) =>
      (await ws.post('/apps', { project_id, platform: 'web', name: 'W' })).body.id
    const [a, b] = [await make(ws.projectId), await make(second.id)]
    const listed = async (query: string) =>
      (await ws.get(`/apps${query}`)).body.data.map(({ id }: { id: string }) => id)
    assert.deepEqual(await listed(''), [b, a])
    assert.deepEqual(await listed(`?project_id=${ws.projectId}`), [a])
    assert.deepEqual(await listed(`?project_id=${second.id}`), [b])
  })

  test('last_connected_at is that of the environment asked about', async () => {
    const ws = await api.workspace()
    const { body: app } = await ws.post('/apps', { platform: 'android', name: 'Phone' })
    const at = '2026-03-04T05:06:07.089Z'
    await api.pool.query('insert into app_connection (app_id, environment, last_connected_at) values ($1, $2, $3)', [
      app.id,
      'test',
      at,
    ])
    assert.equal((await ws.get(`/apps/${app.id}`, { environment: 'test' })).body.last_connected_at, at)
    assert.equal((await ws.get(`/apps/${app.id}`, { environment: 'live' })).body.last_connected_at, null)
    assert.equal((await ws.get('/apps', { environment: 'test' })).body.data[0].last_connected_at, at)
    assert.equal((await ws.patch(`/apps/${app.id}`, { name: 'P' })).body.last_connected_at, at)
  })
})

describe('apps, 400', () => {
  test('every wrong field', async () => {
    const ws = await api.workspace()
    const app = { platform: 'ios', name: 'Phone' }
    const wrong: [string, unknown[]][] = [
      ['platform', ['windows', 'iOS', 1, null]],
      ['name', ['', 5, null, 'x'.repeat(201)]],
      ['bundle_id', ['', ' com.example', 'x'.repeat(256), 5, 'a\0b']],
      ['package_name', ['', 5, {}]],
      ['project_id', ['', 5, null]],
    ]
    for (const [field, values] of wrong) {
      for (const value of values) {
        const answer = await ws.post('/apps', { ...app, [field]: value })
        assertRefused(answer, 400, 'invalid_request', field)
      }
    }
    assertRefused(await ws.post('/apps', { name: 'Phone' }), 400, 'invalid_request', 'platform')
    assertRefused(await ws.post('/apps', { ...app, icon: 'x' }), 400, 'unknown_field', 'icon')
    const { body: made } = await ws.post('/apps', app)
    assertRefused(await ws.patch(`/apps/${made.id}`, { platform: 'web' }), 400, 'unknown_field', 'platform')
    assertRefused(await ws.patch(`/apps/${made.id}`, { project_id: 'x' }), 400, 'unknown_field', 'project_id')
  })
})

describe('apps, 404', () => {
  test('apps of another workspace', async () => {
    const [ours, theirs] = [await api.workspace(), await api.workspace()]
    const { body: app } = await theirs.post('/apps', { platform: 'ios', name: 'Theirs' })
    assertRefused(await ours.get(`/apps/${app.id}`), 404, 'not_found')
    assertRefused(await ours.patch(`/apps/${app.id}`, { name: 'Ours' }), 404, 'not_found')
    assertRefused(await ours.delete(`/apps/${app.id}`), 404, 'not_found')
    assertRefused(await ours.post(`/apps/${app.id}/publishable_keys`), 404, 'not_found')
    assertRefused(await ours.get(`/apps/${app.id}/publishable_keys`), 404, 'not_found')
    const body = { project_id: theirs.projectId, platform: 'ios', name: 'Spy' }
    assertRefused(await ours.post('/apps', body), 404, 'not_found', 'project_id')
    assert.equal((await theirs.get(`/apps/${app.id}`)).body.name, 'Theirs')
  })
})

describe('publishable keys', () => {
  test('a key is made for the environment of the request, works, is listed whole and revoked', async () => {
    const ws = await api.workspace()
    const { body: app } = await ws.post('/apps', { platform: 'ios', name: 'Phone' })
    const path = `/apps/${app.id}/publishable_keys`
    for (const environment of ['test', 'live'] as const) {
      const made = await ws.call('POST', path, { environment })
      assert.equal(made.status, 201)
      const { id, key, created_at, ...rest } = made.body
      assert.ok(key.startsWith(`pk_${environment}_`))
      assert.ok(id && created_at)
      assert.deepEqual(rest, {
        object: 'publishable_key',
        app_id: app.id,
        environment,
        enabled: true,
        revoked_at: null,
        last_used_at: null,
      })
      assert.deepEqual(api.directory.app(key)?.environment, environment)
      assert.deepEqual((await ws.get(path, { environment })).body.data, [made.body])

      const revoked = await ws.delete(`${path}/${id}`, { environment })
      assert.deepEqual(revoked.body, { object: 'publishable_key', id, deleted: true })
      assert.equal(api.directory.app(key), undefined)
      const [listed] = (await ws.get(path, { environment })).body.data
      assert.equal(listed.enabled, false)
      assert.ok(listed.revoked_at)

      assert.equal((await ws.delete(`${path}/${id}`, { environment })).status, 200)
      assert.deepEqual((await ws.get(path, { environment })).body.data, [listed])
    }
  })

  test('a key of the other environment, app or workspace is not there', async () => {
    const ws = await api.workspace()
    const stranger = await api.workspace()
    const { body: app } = await ws.post('/apps', { platform: 'ios', name: 'Phone' })
    const { body: second } = await ws.post('/apps', { platform: 'android', name: 'Other' })
    const { body: key } = await ws.post(`/apps/${app.id}/publishable_keys`)
    const path = (appId: string) => `/apps/${appId}/publishable_keys/${key.id}`
    assertRefused(await ws.delete(path(app.id), { environment: 'live' }), 404, 'not_found')
    assertRefused(await ws.delete(path(second.id)), 404, 'not_found')
    assertRefused(await stranger.delete(path(app.id)), 404, 'not_found')
    assert.ok(api.directory.app(key.key))
  })

  test('the keys of a deleted app stop working', async () => {
    const ws = await api.workspace()
    const { body: app } = await ws.post('/apps', { platform: 'ios', name: 'Phone' })
    const { body: key } = await ws.post(`/apps/${app.id}/publishable_keys`)
    await ws.delete(`/apps/${app.id}`)
    assert.equal(api.directory.app(key.key), undefined)
    assertRefused(await ws.post(`/apps/${app.id}/publishable_keys`), 404, 'not_found')
  })
})
