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

    const list = await ws.get('/projects')
    assert.deepEqual(
      list.body.data.map((project: { id: string }) => project.id),
      [created.body.id, ws.projectId],
    )

    const deleted = await ws.delete(`/projects/${created.body.id}`)
    assert.equal(deleted.status, 200)
    assert.deepEqual(deleted.body, { object: 'project', id: created.body.id, deleted: true })
    assertRefused(await ws.get(`/projects/${created.body.id}`), 404, 'not_found')
    assertRefused(await ws.delete(`/projects/${created.body.id}`), 404, 'not_found')
    assert.deepEqual(await auditOf(api.pool, created.body.id), [
      { action: 'create', object: 'project' },
      { action: 'update', object: 'project' },
      { action: 'delete', object: 'project' },
    ])
  })
})
