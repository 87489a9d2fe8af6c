import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { draftBytesMax } from '../../src/kernel/limits.ts'
import { aDraft } from '../harness/a-draft.ts'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const welcome = { key: 'welcome', name: 'Welcome' }
const put = (ws: Workspace, body: unknown, revision: number | string, path = 'welcome') =>
  ws.call('PUT', `/experiences/${path}/draft`, { body, headers: { 'if-match': String(revision) } })

describe('200 and 201', () => {
  test('an Experience is created, read by id and key, renamed and listed', async () => {
    const ws = await api.workspace()
    const made = await ws.post('/experiences', welcome)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const { id, created_at, ...rest } = made.body
    assert.match(id, /^exp_/)
    assert.ok(created_at)
    assert.deepEqual(rest, {
      object: 'experience',
      project_id: ws.projectId,
      environment: 'test',
      ...welcome,
      status: 'draft',
      draft_revision: 0,
      latest_version_id: null,
      publications: [],
    })
    assert.deepEqual((await ws.get(`/experiences/${id}`)).body, made.body)
    const renamed = await ws.patch('/experiences/welcome', { name: 'Hello' })
    assert.deepEqual(renamed.body, { ...made.body, name: 'Hello' })
    const second = await ws.post('/experiences', { key: 'second', name: 'Second' })
    assert.deepEqual((await ws.get('/experiences')).body.data, [second.body, renamed.body])
    assert.deepEqual((await ws.get('/experiences', { environment: 'live' })).body.data, [])
  })

  test('a draft is saved at the revision that was read, right or wrong, and read back as it was', async () => {
    const ws = await api.workspace()
    const { id } = (await ws.post('/experiences', welcome)).body
    const none = await ws.get('/experiences/welcome/draft')
    assert.deepEqual(none.body, { object: 'experience_draft', id, revision: 0, updated_at: null, draft: null })
    const draft = { ...aDraft(), odd: 'a\u0000b\ud800' }
    const saved = await put(ws, draft, 0)
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
    assert.deepEqual([saved.body.revision, saved.body.draft], [1, draft])
    assert.deepEqual((await ws.get(`/experiences/${id}/draft`)).body, saved.body)
    assert.equal((await put(ws, aDraft(), '"1"')).body.revision, 2)
    assert.equal((await ws.get(`/experiences/${id}`)).body.draft_revision, 2)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'save_draft', 'save_draft'],
    )
  })

  test('validation tells all that is wrong, of the saved draft or of another, and what devices would run', async () => {
    const ws = await api.workspace()
    const { id } = (await ws.post('/experiences', welcome)).body
    const validate = async (body: object) => (await ws.post(`/experiences/${id}/draft/validate`, body)).body
    assert.equal((await validate({})).valid, false)
    const good = await validate({ draft: aDraft() })
    assert.deepEqual([good.valid, good.issues, good.warnings], [true, [], []])
    assert.deepEqual(
      good.sections.map(({ section_key, steps }: { section_key: string; steps: string[] }) => [section_key, steps]),
      [
        ['tell', ['tell']],
        ['again', ['again', 'bye']],
      ],
    )
    assert.match(good.sections[0].leg_id, /^[0-9a-f]{64}$/)
    await put(ws, { ...aDraft(), extra: 1, priority: 'high' }, 0)
    assert.deepEqual((await validate({})).issues, [
      { path: '/priority', code: 'value_invalid', message: 'This must be a whole number from -1000000 to 1000000.' },
      { path: '/extra', code: 'unknown_key', message: 'Key "extra" is not part of the draft format here.' },
    ])
  })

  test('segments and Features are known to validation while they are there', async () => {
    const ws = await api.workspace()
    await ws.post('/experiences', welcome)
    const { body: segment } = await ws.post('/segments', {
      name: 'S',
      definition: { version: 1, where: { property: { key: 'plan', op: 'eq', value: 'pro' } } },
    })
    await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
    const draft = aDraft()
    draft.policy.entry = {
      trigger: { type: 'segment_enter', segmentId: segment.id },
      frequency: { type: 'one_time' },
      eligibility: { ir_version: 1, expr: { type: 'Feature', op: 'not_has', id: 'pro' } },
    }
    const validate = () => ws.post('/experiences/welcome/draft/validate', { draft })
    assert.deepEqual((await validate()).body.issues, [])
    await ws.post('/features/pro/archive')
    const { issues } = (await validate()).body
    assert.deepEqual(
      issues.map(({ code, message }: { code: string; message: string }) => [code, message]),
      [['reference_missing', 'Feature "pro" does not exist in this project and environment.']],
    )
  })
})

describe('refusals', () => {
  test('409: a key stays taken, and a draft is not saved over what somebody else saved', async () => {
    const ws = await api.workspace()
    await ws.post('/experiences', welcome)
    assertRefused(await ws.post('/experiences', welcome), 409, 'conflict', 'key')
    assert.equal((await ws.post('/experiences', welcome, { environment: 'live' })).status, 201)
    const both = await Promise.all([put(ws, aDraft(), 0), put(ws, aDraft(), 0)])
    assert.deepEqual(new Set(both.map(({ status }) => status)), new Set([200, 409]))
    const late = await put(ws, aDraft(), 0)
    assertRefused(late, 409, 'draft_conflict')
    assert.deepEqual(late.body.error.details, { revision: 1 })
  })

  test('400: without If-Match, with another than a revision, and a body that is no object', async () => {
    const ws = await api.workspace()
    await ws.post('/experiences', welcome)
    assertRefused(await ws.call('PUT', '/experiences/welcome/draft', { body: {} }), 400, 'invalid_request', 'If-Match')
    for (const revision of ['*', '-1', 'W/"1"', '1.0']) {
      assertRefused(await put(ws, {}, revision), 400, 'invalid_request', 'If-Match')
    }
    assertRefused(await put(ws, [], 0), 400, 'invalid_json')
  })

  test('404: Experiences of others', async () => {
    const [ws, other] = [await api.workspace(), await api.workspace()]
    const { id } = (await ws.post('/experiences', welcome)).body
    for (const path of [`/experiences/${id}`, `/experiences/${id}/draft`]) {
      assertRefused(await other.get(path), 404, 'not_found')
      assertRefused(await ws.get(path, { environment: 'live' }), 404, 'not_found')
    }
    assertRefused(await put(other, {}, 0, id), 404, 'not_found')
    assertRefused(await other.post(`/experiences/${id}/draft/validate`, {}), 404, 'not_found')
  })

  test(`413: a draft has at most ${draftBytesMax} bytes`, async () => {
    const ws = await api.workspace()
    await ws.post('/experiences', welcome)
    const sized = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
    assert.equal((await put(ws, sized(draftBytesMax), 0)).status, 200)
    assertRefused(await put(ws, sized(draftBytesMax + 1), 1), 413, 'payload_too_large')
  })
})
