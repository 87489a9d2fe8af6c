import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

async function workspaceWithFeatures(): Promise<Workspace> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  const credit_costs = [{ feature: 'exports', cost: '0.0001' }]
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem', credit_costs })
  return ws
}

const plain = { key: 'monthly', name: 'Monthly', type: 'subscription', grants: [] }
const templateOf = (part: object) => ({
  allowance: null,
  unlimited: false,
  interval: null,
  entity_scoped: false,
  max_entities: 0,
  rollover: null,
  ...part,
})

describe('200 and 201', () => {
  test('a Product is created, read by id and key, changed and archived', async () => {
    const ws = await workspaceWithFeatures()
    const created = await ws.post('/products', {
      ...plain,
      grants: [
        { feature: 'pro' },
        { feature: 'exports', allowance: 100, interval: 'month', rollover: { max: 50, periods: 2 } },
        { feature: 'exports', allowance: 5, entity_scoped: true },
        { feature: 'credits', unlimited: true },
      ],
      stores: [
        { store: 'playstore', product_id: 'pro', base_plan_id: 'monthly', offer_id: null },
        { store: 'appstore', product_id: 'com.example.pro' },
        { store: 'playstore', product_id: 'pack', consumable: true },
      ],
    })
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const { id, created_at, updated_at, grants, stores, ...rest } = created.body
    assert.match(id, /^prod_/)
    assert.ok(created_at && updated_at)
    assert.deepEqual(rest, {
      object: 'product',
      project_id: ws.projectId,
      environment: 'test',
      key: 'monthly',
      name: 'Monthly',
      type: 'subscription',
      preview: null,
      status: 'active',
    })
    assert.deepEqual(grants, [
      templateOf({ feature: 'pro' }),
      templateOf({ feature: 'exports', allowance: 100, interval: 'month', rollover: { max: 50, periods: 2 } }),
      templateOf({ feature: 'exports', allowance: 5, entity_scoped: true }),
      templateOf({ feature: 'credits', unlimited: true }),
    ])
    const play = { store: 'playstore', base_plan_id: null, purchase_option_id: null, offer_id: null, consumable: false }
    assert.deepEqual(stores, [
      { store: 'appstore', product_id: 'com.example.pro' },
      { ...play, product_id: 'pack', consumable: true },
      { ...play, product_id: 'pro', base_plan_id: 'monthly' },
    ])
    assert.deepEqual((await ws.get(`/products/${id}`)).body, created.body)
    assert.deepEqual((await ws.get('/products/monthly')).body, created.body)
    assert.deepEqual((await ws.get('/products')).body.data, [created.body])

    const renamed = await ws.patch('/products/monthly', { name: 'New' })
    assert.deepEqual(renamed.body, { ...created.body, name: 'New', updated_at: renamed.body.updated_at })
    const changed = await ws.patch(`/products/${id}`, { grants: [{ feature: 'pro' }], stores: [] })
    assert.deepEqual([changed.body.grants, changed.body.stores], [[templateOf({ feature: 'pro' })], []])
    const archived = await ws.post('/products/monthly/archive')
    assert.deepEqual([archived.status, archived.body.status], [200, 'archived'])
    const [row] = await api.pool.query<{ version: number }>('select version from product where id = $1', [id])
    assert.equal(row?.version, 4)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update', 'update', 'archive'],
    )
  })

  test('its own answer can be sent back', async () => {
    const ws = await workspaceWithFeatures()
    const { body } = await ws.post('/products', {
      ...plain,
      grants: [{ feature: 'exports', allowance: 1, interval: 'year', rollover: {} }],
      stores: [{ store: 'playstore', product_id: 'p' }],
    })
    const { grants, stores } = body
    assert.deepEqual((await ws.patch('/products/monthly', { grants, stores })).body.grants, grants)
  })

  test('a store link may move once its Product has let go of it', async () => {
    const ws = await api.workspace()
    const stores = [{ store: 'appstore', product_id: 'one' }]
    await ws.post('/products', { ...plain, key: 'a', stores })
    assert.equal((await ws.patch('/products/a', { stores })).status, 200)
    assert.equal((await ws.patch('/products/a', { stores: [] })).status, 200)
    assert.equal((await ws.post('/products', { ...plain, key: 'b', stores })).status, 201)
  })
})

describe('400', () => {
  test('templates that do not fit their Feature', async () => {
    const ws = await workspaceWithFeatures()
    const wrong: [object, string][] = [
      [{ feature: 'pro', allowance: 1 }, 'allowance'],
      [{ feature: 'pro', allowance: 0 }, 'allowance'],
      [{ feature: 'pro', interval: 'month' }, 'interval'],
      [{ feature: 'pro', rollover: {} }, 'rollover'],
      [{ feature: 'exports' }, 'allowance'],
      [{ feature: 'exports', allowance: null, unlimited: false }, 'allowance'],
      [{ feature: 'exports', allowance: 1, unlimited: true }, 'allowance'],
      [{ feature: 'exports', allowance: 1, rollover: {} }, 'rollover'],
      [{ feature: 'exports', unlimited: true, interval: 'month', rollover: {} }, 'rollover'],
      [{ feature: 'credits', allowance: 922_337_203_685_478 }, 'allowance'],
      [{ feature: 'exports', allowance: -1 }, 'allowance'],
      [{ feature: 'exports', allowance: 1.5 }, 'allowance'],
      [{ feature: 'exports', allowance: '5' }, 'allowance'],
      [{ feature: 'exports', allowance: 2 ** 53 }, 'allowance'],
      [{ feature: 'exports', allowance: 1, interval: 'minute' }, 'interval'],
      [{ feature: 'exports', allowance: 1, interval: 'semiAnnual' }, 'interval'],
      [{ feature: 'exports', allowance: 1, interval: 'month', rollover: { max: 0 } }, 'rollover.max'],
      [{ feature: 'exports', allowance: 1, interval: 'month', rollover: { periods: 0 } }, 'rollover.periods'],
      [{ feature: 'exports', allowance: 1, interval: 'month', rollover: { periods: 121 } }, 'rollover.periods'],
      [{ feature: 'exports', allowance: 1, entity_scoped: 'yes' }, 'entity_scoped'],
      [{ feature: 'exports', allowance: 1, entity_scoped: true, max_entities: -1 }, 'max_entities'],
      [{ feature: 'exports', allowance: 1, entity_scoped: true, max_entities: 10_001 }, 'max_entities'],
      [{ feature: 'exports', allowance: 1, entity_scoped: true, max_entities: 1.5 }, 'max_entities'],
      [{ feature: 'exports', allowance: 1, max_entities: 1 }, 'max_entities'],
      [{ feature: 'pro', entity_scoped: true, max_entities: 1 }, 'max_entities'],
      [{ allowance: 1 }, 'feature'],
    ]
    for (const [template, field] of wrong) {
      const answer = await ws.post('/products', { ...plain, grants: [template] })
      assertRefused(answer, 400, 'invalid_request', `grants.0.${field}`)
    }
    const twice = [
      { feature: 'exports', allowance: 1 },
      { feature: 'exports', allowance: 2 },
    ]
    assertRefused(await ws.post('/products', { ...plain, grants: twice }), 400, 'invalid_request', 'grants.1.feature')
    const extra = [{ feature: 'pro', amount: 1 }]
    assertRefused(await ws.post('/products', { ...plain, grants: extra }), 400, 'unknown_field', 'grants.0.amount')
    assert.deepEqual((await ws.get('/products')).body.data, [])
  })

  test('templates at their limits are kept exactly', async () => {
    const ws = await workspaceWithFeatures()
    const grants = [
      templateOf({ feature: 'exports', allowance: Number.MAX_SAFE_INTEGER }),
      templateOf({
        feature: 'credits',
        allowance: 922_337_203_685_477,
        interval: 'hour',
        rollover: { max: 1, periods: 120 },
      }),
      templateOf({ feature: 'exports', allowance: 0, interval: 'day', entity_scoped: true, max_entities: 10_000 }),
    ]
    const { status, body } = await ws.post('/products', { ...plain, grants })
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual(body.grants, grants)
  })

  test('links that do not fit their store, and every other wrong field', async () => {
    const ws = await api.workspace()
    const links: [object, string][] = [
      [{ store: 'appstore', product_id: 'p', base_plan_id: 'b' }, 'stores.0'],
      [{ store: 'appstore', product_id: 'p', offer_id: 'b' }, 'stores.0'],
      [{ store: 'appstore', product_id: 'p', consumable: true }, 'stores.0'],
      [{ store: 'steam', product_id: 'p' }, 'stores.0.store'],
      [{ store: 'appstore' }, 'stores.0.product_id'],
      [{ store: 'appstore', product_id: '' }, 'stores.0.product_id'],
      [{ store: 'playstore', product_id: 'x'.repeat(256) }, 'stores.0.product_id'],
      [{ store: 'playstore', product_id: 'p', base_plan_id: 5 }, 'stores.0.base_plan_id'],
      [{ store: 'playstore', product_id: 'p', consumable: 'no' }, 'stores.0.consumable'],
    ]
    for (const [link, path] of links) {
      assertRefused(await ws.post('/products', { ...plain, stores: [link] }), 400, 'invalid_request', path)
    }
    const wrong: [string, unknown[]][] = [
      ['key', ['', ' a', 'k'.repeat(257), 5, undefined]],
      ['name', ['', 5, undefined]],
      ['type', ['weekly', undefined]],
      ['grants', [{}, 'x', null, undefined]],
      ['stores', [{}, 'x', null]],
    ]
    for (const [field, values] of wrong) {
      for (const value of values) {
        assertRefused(await ws.post('/products', { ...plain, [field]: value }), 400, 'invalid_request', field)
      }
    }
    await ws.post('/products', plain)
    for (const field of ['key', 'type', 'status', 'version']) {
      assertRefused(await ws.patch('/products/monthly', { [field]: 'x' }), 400, 'unknown_field', field)
    }
  })
})

describe('404', () => {
  test('Features that are not published here', async () => {
    const ws = await workspaceWithFeatures()
    await ws.post('/features', { key: 'draft', name: 'D', type: 'boolean', published: false })
    await ws.post('/features', { key: 'elsewhere', name: 'E', type: 'boolean' }, { environment: 'live' })
    await ws.post('/features/pro/archive')
    for (const feature of ['none', 'draft', 'elsewhere', 'pro']) {
      const answer = await ws.post('/products', { ...plain, grants: [{ feature }] })
      assertRefused(answer, 404, 'feature_not_found', 'grants.0.feature')
    }
  })

  test('Products of another workspace or environment', async () => {
    const [ours, theirs] = [await api.workspace(), await api.workspace()]
    const { body: product } = await theirs.post('/products', plain)
    for (const name of [product.id, 'monthly']) {
      for (const [who, environment] of [
        [ours, 'test'],
        [theirs, 'live'],
      ] as const) {
        assertRefused(await who.get(`/products/${name}`, { environment }), 404, 'not_found')
        assertRefused(await who.patch(`/products/${name}`, { name: 'X' }, { environment }), 404, 'not_found')
        assertRefused(await who.call('POST', `/products/${name}/archive`, { environment }), 404, 'not_found')
      }
    }
  })
})

describe('409', () => {
  test('a key, and a store link, belongs to one Product of the environment', async () => {
    const ws = await api.workspace()
    const stores = [{ store: 'playstore', product_id: 'pro', base_plan_id: 'monthly' }]
    await ws.post('/products', { ...plain, stores })
    assertRefused(await ws.post('/products', plain), 409, 'conflict', 'key')
    const refused = await ws.post('/products', { ...plain, key: 'other', stores })
    assertRefused(refused, 409, 'conflict', 'stores.0')
    assert.match(refused.body.error.message, /playstore \/ pro \/ monthly/)
    assertRefused(await ws.get('/products/other'), 404, 'not_found')
    assertRefused(
      await ws.post('/products', { ...plain, key: 'x', stores: [...[stores[0], stores[0]]] }),
      409,
      'conflict',
    )

    const near = [{ store: 'playstore', product_id: 'pro' }]
    assert.equal((await ws.post('/products', { ...plain, key: 'near', stores: near })).status, 201)
    assertRefused(await ws.patch('/products/near', { stores }), 409, 'conflict', 'stores.0')
    assert.equal((await ws.get('/products/near')).body.stores.length, 1)
    assert.equal((await ws.post('/products', { ...plain, stores }, { environment: 'live' })).status, 201)
  })
})
