import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

describe('200 and 201', () => {
  test('a project is created, read, renamed, listed and deleted', async () => {
    const ws = await api.workspace()
    const created = await ws.post('/projects', { name: 'Second' })
    assert.equal(created.status, 201)
    assert.match(created.body.id, /^proj_/)
    assert.match(created.body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual((await ws.get(`/projects/${created.body.id}`)).body, created.body)

    const renamed = await ws.patch(`/projects/${created.body.id}`, { name: 'Renamed' })
    assert.deepEqual(renamed.body, { ...created.body, name: 'Renamed' })
    assert.deepEqual((await ws.patch(`/projects/${created.body.id}`, {})).body, renamed.body)

    const list = await ws.get('/projects')
    assert.deepEqual(list.body.data[0], renamed.body)

    const deleted = await ws.delete(`/projects/${created.body.id}`)
    assert.equal(deleted.status, 200)
    assert.deepEqual(deleted.body, { object: 'project', id: created.body.id, deleted: true })
    assert.deepEqual(await auditOf(api.pool, created.body.id), [
      { action: 'create', object: 'project' },
      { action: 'update', object: 'project' },
      { action: 'update', object: 'project' },
      { action: 'delete', object: 'project' },
    ])
  })

  test('a project has both environments from the start, and keeps their data apart', async () => {
    const ws = await api.workspace()
    const { body: project } = await ws.post('/projects', { name: 'Second' })
    for (const environment of ['test', 'live']) {
      const body = { project_id: project.id, key: 'pro', name: environment, type: 'boolean' }
      const { status, body: feature } = await ws.post('/features', body, { environment })
      assert.equal(status, 201)
      assert.deepEqual([feature.project_id, feature.environment], [project.id, environment])
    }
  })

  test('the name may be any text of 1 to 200 characters', async () => {
    const ws = await api.workspace()
    for (const name of ['a', ' spaced ', '🍋'.repeat(200)]) {
      assert.equal((await ws.post('/projects', { name })).body.name, name)
    }
  })
})

describe('400', () => {
  test('every wrong name', async () => {
    const ws = await api.workspace()
    for (const name of ['', '  ', 'a'.repeat(201), 'nul\0', '\ud800', 7, null, ['a'], { a: 1 }, true]) {
      assertRefused(await ws.post('/projects', { name }), 400, 'invalid_request', 'name')
      assertRefused(await ws.patch(`/projects/${ws.projectId}`, { name }), 400, 'invalid_request', 'name')
    }
    assertRefused(await ws.post('/projects', {}), 400, 'invalid_request', 'name')
    assertRefused(await ws.patch(`/projects/${ws.projectId}`, { id: 'x' }), 400, 'unknown_field', 'id')
  })
})

describe('404', () => {
  test('a deleted project is gone, with its apps, keys and Features', async () => {
    const ws = await api.workspace()
    const { body: project } = await ws.post('/projects', { name: 'Second' })
    const { body: app } = await ws.post('/apps', { project_id: project.id, platform: 'ios', name: 'Phone' })
    const { body: key } = await ws.post(`/apps/${app.id}/publishable_keys`)
    const feature = { project_id: project.id, key: 'pro', name: 'Pro', type: 'boolean' }
    const { body: made } = await ws.post('/features', feature)
    assert.equal(api.directory.app(key.key)?.appId, app.id)

    await ws.delete(`/projects/${project.id}`)
    assert.equal(api.directory.app(key.key), undefined)
    for (const path of [`/projects/${project.id}`, `/apps/${app.id}`, `/features/${made.id}`]) {
      assertRefused(await ws.get(path), 404, 'not_found')
    }
    assertRefused(await ws.delete(`/projects/${project.id}`), 404, 'not_found')
    assertRefused(await ws.patch(`/projects/${project.id}`, { name: 'Back' }), 404, 'not_found')
    assertRefused(await ws.post('/features', { ...feature, key: 'more' }), 404, 'not_found', 'project_id')
    assert.deepEqual(
      (await ws.get('/apps')).body.data.map(({ id }: { id: string }) => id),
      [],
    )
  })
})
