import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const pro = { key: 'pro', name: 'Pro', type: 'boolean' }

describe('200 and 201', () => {
  test('a Feature is created published, read by id and key, changed, archived and published again', async () => {
    const ws = await api.workspace()
    const created = await ws.post('/features', pro)
    assert.equal(created.status, 201)
    const { id, created_at, updated_at, ...rest } = created.body
    assert.match(id, /^feat_/)
    assert.ok(created_at && updated_at)
    assert.deepEqual(rest, {
      object: 'feature',
      project_id: ws.projectId,
      environment: 'test',
      ...pro,
      platforms: null,
      credit_costs: [],
      status: 'published',
    })
    assert.deepEqual((await ws.get(`/features/${id}`)).body, created.body)
    assert.deepEqual((await ws.get('/features/pro')).body, created.body)

    const changed = await ws.patch('/features/pro', { name: 'New', platforms: ['ios', 'web'] })
    assert.deepEqual(changed.body, {
      ...created.body,
      name: 'New',
      platforms: ['ios', 'web'],
      updated_at: changed.body.updated_at,
    })
    assert.deepEqual((await ws.patch(`/features/${id}`, { platforms: null })).body.platforms, null)
    assert.equal((await ws.post(`/features/${id}/archive`)).body.status, 'archived')
    assert.equal((await ws.get('/features/pro')).body.status, 'archived')
    assert.equal((await ws.post('/features/pro/publish')).body.status, 'published')
    assert.equal((await ws.post('/features/pro/publish')).status, 200)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update', 'update', 'archive', 'publish', 'publish'],
    )
  })

  test('a draft is a Feature that nobody can be granted yet', async () => {
    const ws = await api.workspace()
    assert.equal((await ws.post('/features', { ...pro, published: false })).body.status, 'draft')
    const { body: customer } = await ws.post('/customers', { distinct_id: 'c' })
    const grant = () => ws.post(`/customers/${customer.id}/grants`, { feature: 'pro' })
    assertRefused(await grant(), 404, 'feature_not_found', 'feature')
    await ws.post('/features/pro/publish')
    assert.equal((await grant()).status, 201)
  })

  test('every change raises the revision of its own environment only', async () => {
    const ws = await api.workspace()
    const revision = (environment: 'test' | 'live') => api.directory.catalogueRevision(ws.scopes[environment].scopeId)
    const [test0, live0] = [revision('test'), revision('live')]
    await ws.post('/features', pro)
    await ws.patch('/features/pro', { name: 'P' })
    await ws.post('/features/pro/archive')
    assert.deepEqual([revision('test'), revision('live')], [test0 + 3n, live0])
  })

  test('a key has 1 to 256 characters of any script and is found percent-encoded', async () => {
    const ws = await api.workspace()
    for (const key of ['a', 'k'.repeat(256), 'a/b?c=d&e', 'größe ü 🍋', '%', 'publish']) {
      const made = await ws.post('/features', { ...pro, key })
      assert.equal(made.status, 201, JSON.stringify(made.body))
      assert.deepEqual((await ws.get(`/features/${encodeURIComponent(key)}`)).body, made.body)
    }
  })

  test('an id wins over a key that looks like it', async () => {
    const ws = await api.workspace()
    const { body: first } = await ws.post('/features', pro)
    await ws.post('/features', { ...pro, key: first.id })
    assert.equal((await ws.get(`/features/${first.id}`)).body.key, 'pro')
  })
})

describe('credit systems', () => {
  test('costs are kept exactly and shown as numbers', async () => {
    const ws = await api.workspace()
    for (const key of ['a', 'b', 'c', 'd', 'e']) await ws.post('/features', { key, name: key, type: 'metered' })
    const created = await ws.post('/features', {
      key: 'credits',
      name: 'Credits',
      type: 'creditSystem',
      credit_costs: [
        { feature: 'e', cost: 2 },
        { feature: 'b', cost: '0.250' },
        { feature: 'a', cost: 0.000001 },
        { feature: 'c', cost: '999999999999.999999' },
        { feature: 'd', cost: '10' },
      ],
    })
    assert.equal(created.status, 201, JSON.stringify(created.body))
    assert.deepEqual(created.body.credit_costs, [
      { feature: 'a', cost: 0.000001 },
      { feature: 'b', cost: 0.25 },
      { feature: 'c', cost: '999999999999.999999' },
      { feature: 'd', cost: 10 },
      { feature: 'e', cost: 2 },
    ])
    const replaced = await ws.patch('/features/credits', { credit_costs: [{ feature: 'a', cost: 1.5 }] })
    assert.deepEqual(replaced.body.credit_costs, [{ feature: 'a', cost: 1.5 }])
    assert.deepEqual((await ws.patch('/features/credits', { credit_costs: [] })).body.credit_costs, [])
  })

  test('the decimals of the first costs bind later ones, but not while it is a draft', async () => {
    const ws = await api.workspace()
    await ws.post('/features', { key: 'chat', name: 'Chat', type: 'metered' })
    const system = { name: 'Credits', type: 'creditSystem', credit_costs: [{ feature: 'chat', cost: 0.5 }] }
    const change = (key: string, cost: string) =>
      ws.patch(`/features/${key}`, { credit_costs: [{ feature: 'chat', cost }] })

    await ws.post('/features', { key: 'fixed', ...system })
    assert.equal((await change('fixed', '2.5')).status, 200)
    assert.equal((await change('fixed', '3')).status, 200)
    assert.equal((await change('fixed', '0.50')).status, 200)
    assertRefused(await change('fixed', '0.25'), 400, 'invalid_request', 'credit_costs.0.cost')
    await ws.post('/features/fixed/archive')
    assertRefused(await change('fixed', '0.25'), 400, 'invalid_request', 'credit_costs.0.cost')

    await ws.post('/features', { key: 'draft', ...system, published: false })
    assert.equal((await change('draft', '0.125')).status, 200)
    await ws.post('/features/draft/publish')
    assert.equal((await change('draft', '0.001')).status, 200)
    assertRefused(await change('draft', '0.0001'), 400, 'invalid_request', 'credit_costs.0.cost')
  })

  test('members are metered Features of the same scope, each named once', async () => {
    const ws = await api.workspace()
    await ws.post('/features', pro)
    await ws.post('/features', { key: 'chat', name: 'Chat', type: 'metered' })
    await ws.post('/features', { key: 'old', name: 'Old', type: 'metered' })
    await ws.post('/features/old/archive')
    await ws.post('/features', { key: 'live', name: 'Live', type: 'metered' }, { environment: 'live' })
    await ws.post('/features', { key: 'nested', name: 'N', type: 'creditSystem' })
    const create = (costs: unknown) =>
      ws.post('/features', { key: 'credits', name: 'C', type: 'creditSystem', credit_costs: costs })
    const path = 'credit_costs.0.feature'
    assertRefused(await create([{ feature: 'pro', cost: 1 }]), 400, 'invalid_request', path)
    assertRefused(await create([{ feature: 'nested', cost: 1 }]), 400, 'invalid_request', path)
    for (const feature of ['none', 'live', 'old', 'credits']) {
      assertRefused(await create([{ feature, cost: 1 }]), 404, 'feature_not_found', path)
    }
    const twice = [
      { feature: 'chat', cost: 1 },
      { feature: 'chat', cost: 2 },
    ]
    assertRefused(await create(twice), 400, 'invalid_request', 'credit_costs.1.feature')
    assertRefused(await ws.get('/features/credits'), 404, 'not_found')
  })

  test('every wrong cost', async () => {
    const ws = await api.workspace()
    await ws.post('/features', { key: 'chat', name: 'Chat', type: 'metered' })
    const wrong = [0, -1, 1e-7, 1e12, 1e300, '0', '0.0', '-1', '+1', '1e3', '1.1234567', ' 1', '.5', '5.', 'x', '']
    wrong.push('1000000000000')
    for (const cost of [...wrong, null, true, [1], {}]) {
      const body = { key: 'credits', name: 'C', type: 'creditSystem', credit_costs: [{ feature: 'chat', cost }] }
      assertRefused(await ws.post('/features', body), 400, 'invalid_request', 'credit_costs.0.cost')
    }
    const extra = [{ feature: 'chat', cost: 1, per: 2 }]
    const body = { key: 'credits', name: 'C', type: 'creditSystem', credit_costs: extra }
    assertRefused(await ws.post('/features', body), 400, 'unknown_field', 'credit_costs.0.per')
  })

  test('other types have no costs', async () => {
    const ws = await api.workspace()
    await ws.post('/features', { key: 'chat', name: 'Chat', type: 'metered' })
    const credit_costs = [{ feature: 'chat', cost: 1 }]
    for (const type of ['boolean', 'metered']) {
      const body = { key: 'x', name: 'X', type, credit_costs }
      assertRefused(await ws.post('/features', body), 400, 'invalid_request', 'credit_costs')
    }
    assertRefused(await ws.patch('/features/chat', { credit_costs }), 400, 'invalid_request', 'credit_costs')
  })
})

describe('400', () => {
  test('every wrong field', async () => {
    const ws = await api.workspace()
    const wrong: [string, unknown[]][] = [
      ['key', ['', ' pro', 'pro ', 'k'.repeat(257), 'a\0b', '\ud800', 5, null, undefined]],
      ['name', ['', ' ', 'n'.repeat(201), 5, null, undefined]],
      ['type', ['Boolean', 'credits', 5, null, undefined]],
      ['platforms', [[], ['ios', 'ios'], ['windows'], 'ios', 5]],
      ['published', ['yes', 1, null]],
      ['credit_costs', ['x', {}, null]],
    ]
    for (const [field, values] of wrong) {
      for (const value of values) {
        const answer = await ws.post('/features', { ...pro, [field]: value })
        assert.equal(answer.status, 400, `${field} ${JSON.stringify(value)}`)
        assert.ok(answer.body.error.param.startsWith(field), JSON.stringify(answer.body))
      }
    }
    assertRefused(await ws.post('/features', { ...pro, status: 'draft' }), 400, 'unknown_field', 'status')
    await ws.post('/features', pro)
    for (const field of ['type', 'key', 'published', 'status']) {
      assertRefused(await ws.patch('/features/pro', { [field]: 'metered' }), 400, 'unknown_field', field)
    }
  })

  test('a key that several projects have needs the project', async () => {
    const ws = await api.workspace()
    const { body: second } = await ws.post('/projects', { name: 'Second' })
    const make = async (project_id: string) => (await ws.post('/features', { ...pro, project_id })).body
    const [a, b] = [await make(ws.projectId), await make(second.id)]
    assertRefused(await ws.get('/features/pro'), 400, 'invalid_request', 'project_id')
    assertRefused(await ws.post('/features/pro/archive'), 400, 'invalid_request', 'project_id')
    assert.deepEqual((await ws.get(`/features/pro?project_id=${ws.projectId}`)).body, a)
    assert.deepEqual((await ws.get(`/features/pro?project_id=${second.id}`)).body, b)
    assert.deepEqual((await ws.get(`/features/${b.id}`)).body, b)
    assert.equal((await ws.patch(`/features/pro?project_id=${second.id}`, { name: 'B' })).body.id, b.id)
  })
})

describe('404', () => {
  test('Features of another workspace or environment', async () => {
    const [ours, theirs] = [await api.workspace(), await api.workspace()]
    const { body: feature } = await theirs.post('/features', pro)
    for (const name of [feature.id, 'pro']) {
      for (const [who, environment] of [
        [ours, 'test'],
        [theirs, 'live'],
      ] as const) {
        assertRefused(await who.get(`/features/${name}`, { environment }), 404, 'not_found')
        assertRefused(await who.patch(`/features/${name}`, { name: 'X' }, { environment }), 404, 'not_found')
        assertRefused(await who.call('POST', `/features/${name}/archive`, { environment }), 404, 'not_found')
        assertRefused(await who.call('POST', `/features/${name}/publish`, { environment }), 404, 'not_found')
      }
    }
    assert.deepEqual((await theirs.get('/features/pro')).body, feature)
    assert.deepEqual((await theirs.get('/features', { environment: 'live' })).body.data, [])
  })
})

describe('409', () => {
  test('a key is used once per project and environment, by archived Features too', async () => {
    const ws = await api.workspace()
    await ws.post('/features', pro)
    assertRefused(await ws.post('/features', { ...pro, type: 'metered' }), 409, 'conflict', 'key')
    await ws.post('/features/pro/archive')
    assertRefused(await ws.post('/features', pro), 409, 'conflict', 'key')
    assert.equal((await ws.post('/features', pro, { environment: 'live' })).status, 201)
  })

  test('of many at the same time one gets the key', async () => {
    const ws = await api.workspace()
    const answers = await Promise.all(Array.from({ length: 10 }, () => ws.post('/features', pro)))
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [201, ...Array<number>(9).fill(409)],
    )
  })
})
