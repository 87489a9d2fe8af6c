import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

async function world(): Promise<{ ws: Workspace; customer: string }> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem' })
  return { ws, customer: (await ws.post('/customers', { distinct_id: 'user-1' })).body.id }
}

describe('POST /customers/{id}/products', () => {
  const monthly = {
    key: 'monthly',
    name: 'Monthly',
    type: 'subscription',
    grants: [
      { feature: 'pro' },
      { feature: 'exports', allowance: 100, interval: 'month' },
      { feature: 'exports', allowance: 5, entity_scoped: true },
      { feature: 'credits', allowance: 20, interval: 'month', rollover: { max: 10 } },
    ],
  }

  test('makes one grant for each template that is not per entity, from one source', async () => {
    const { ws, customer } = await world()
    const { body: product } = await ws.post('/products', monthly)
    const dates = { starts_at: '2026-11-01T00:00:00.000Z', expires_at: '2099-01-01T00:00:00.000Z' }
    const { status, body } = await ws.post(`/customers/${customer}/products`, { product: 'monthly', ...dates })
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual([body.object, body.has_more, body.next_cursor], ['list', false, null])
    const terms = body.data.map(({ feature, allowance, interval, rollover, starts_at, expires_at, source }: Body) => {
      return { feature, allowance, interval, rollover, starts_at, expires_at, source }
    })
    const common = { ...dates, source: { type: 'product', id: product.id }, rollover: null }
    assert.deepEqual(terms, [
      { ...common, feature: 'pro', allowance: null, interval: null },
      { ...common, feature: 'exports', allowance: 100, interval: 'month' },
      { ...common, feature: 'credits', allowance: 20, interval: 'month', rollover: { max: 10, periods: null } },
    ])
    assert.deepEqual((await ws.get(`/customers/${customer}/grants`)).body.data, body.data.toReversed())
    assert.deepEqual(
      (await auditOf(api.pool, customer)).map(({ action }) => action),
      ['create', 'attach_product'],
    )
  })

  test('attached twice it grants twice', async () => {
    const { ws, customer } = await world()
    const { body: product } = await ws.post('/products', monthly)
    for (const name of ['monthly', product.id]) {
      assert.equal((await ws.post(`/customers/${customer}/products`, { product: name })).status, 201)
    }
    assert.equal((await ws.get(`/customers/${customer}/grants`)).body.data.length, 6)
  })

  test('a changed Product changes no grant that was made before', async () => {
    const { ws, customer } = await world()
    await ws.post('/products', monthly)
    const attach = async () => (await ws.post(`/customers/${customer}/products`, { product: 'monthly' })).body.data
    const before = await attach()
    await ws.patch('/products/monthly', { grants: [{ feature: 'exports', allowance: 7 }] })
    const later = await attach()
    assert.deepEqual(
      later.map(({ feature, allowance, interval }: Body) => [feature, allowance, interval]),
      [['exports', 7, null]],
    )
    const listed = (await ws.get(`/customers/${customer}/grants`)).body.data
    assert.deepEqual(listed, [...later.toReversed(), ...before.toReversed()])
  })

  test('a Product that is not there is 404, an archived one 409, one with an archived Feature 404', async () => {
    const { ws, customer } = await world()
    const attach = (product: unknown) => ws.post(`/customers/${customer}/products`, { product })
    await ws.post('/products', { ...monthly, key: 'elsewhere', grants: [] }, { environment: 'live' })
    for (const product of ['none', 'elsewhere']) assertRefused(await attach(product), 404, 'not_found', 'product')
    for (const product of [undefined, '', 5]) assertRefused(await attach(product), 400, 'invalid_request', 'product')
    await ws.post('/products', monthly)
    await ws.post('/features/exports/archive')
    assertRefused(await attach('monthly'), 404, 'feature_not_found', 'product')
    await ws.post('/features/exports/publish')
    await ws.post('/products/monthly/archive')
    assertRefused(await attach('monthly'), 409, 'conflict', 'product')
    assert.deepEqual((await ws.get(`/customers/${customer}/grants`)).body.data, [])
  })
})
