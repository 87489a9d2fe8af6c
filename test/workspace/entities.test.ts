import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { mergeAccounts } from '../../src/entitlements/index.ts'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const distinctId = 'user-1'

interface World {
  ws: Workspace
  customer: string
  product: Body
  attach: (body?: object) => Promise<Body[]>
  register: (entity_id: string, feature?: string) => ReturnType<Workspace['post']>
  retire: (entity_id: string, feature?: string) => ReturnType<Workspace['delete']>
  spend: (quantity: number, entityId?: string) => ReturnType<Api['spend']>
  grants: () => Promise<Body[]>
}

/** `team` gives 10 exports to share, 5 a month to each seat, and the boolean `pro` to each seat. */
async function world(): Promise<World> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  const product = await ws.post('/products', {
    key: 'team',
    name: 'Team',
    type: 'subscription',
    grants: [
      { feature: 'exports', allowance: 10 },
      { feature: 'exports', allowance: 5, interval: 'month', entity_scoped: true },
      { feature: 'pro', entity_scoped: true },
    ],
  })
  const customer: string = (await ws.post('/customers', { distinct_id: distinctId })).body.id
  const path = `/customers/${customer}/entities`
  return {
    ws,
    customer,
    product: product.body,
    attach: async (body = {}) =>
      (await ws.post(`/customers/${customer}/products`, { product: 'team', ...body })).body.data,
    register: (entity_id, feature = 'exports') => ws.post(path, { feature, entity_id }),
    retire: (entity_id, feature = 'exports') =>
      ws.delete(`${path}?feature=${feature}&entity_id=${encodeURIComponent(entity_id)}`),
    spend: (quantity, entityId) =>
      api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity, entityId: entityId ?? null }),
    grants: async () => (await ws.get(`/customers/${customer}/grants?limit=100`)).body.data,
  }
}

const short = ({ feature, entity_id, remaining, state }: Body) => [feature, entity_id, remaining, state]

describe('POST /customers/{id}/entities', () => {
  test('201 for a new one, with the grants that live attachments owe it', async () => {
    const { ws, customer, product, attach, register, grants } = await world()
    assert.deepEqual((await attach()).map(short), [['exports', null, 10, 'live']])
    const { status, body } = await register('seat-1')
    assert.equal(status, 201, JSON.stringify(body))
    const { id, registered_at, ...rest } = body
    assert.match(id, /^ent_[0-9]+$/)
    assert.deepEqual(rest, {
      object: 'entity',
      customer_id: customer,
      feature: 'exports',
      entity_id: 'seat-1',
      used_total: 0,
    })
    const [made, ...others] = await grants()
    assert.equal(others.length, 1)
    assert.deepEqual(short(made), ['exports', 'seat-1', 5, 'live'])
    assert.deepEqual([made.interval, made.source], ['month', { type: 'product', id: product.id }])
    assert.ok(made.starts_at >= registered_at)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action, object }) => [action, object]),
      [['register', 'entity']],
    )
    const [entry] = (await ws.get(`/customers/${customer}/ledger`)).body.data
    assert.deepEqual([entry.reason, entry.entity_id], ['grant', 'seat-1'])
    assert.match(entry.actor, /^key_/)
  })

  test('200 for one that is registered already, and nothing more is given', async () => {
    const { attach, register, grants } = await world()
    await attach()
    const first = await register('seat-1')
    const again = await Promise.all([register('seat-1'), register('seat-1')])
    for (const { status, body } of again) assert.deepEqual([status, body], [200, first.body])
    assert.equal((await grants()).length, 2)
    assert.equal((await auditOf(api.pool, first.body.id)).length, 1)
  })

  test('per Feature: a seat of one is no seat of another', async () => {
    const { attach, register, grants } = await world()
    await attach()
    await register('seat-1', 'pro')
    assert.deepEqual((await grants()).map(short), [
      ['pro', 'seat-1', null, 'live'],
      ['exports', null, 10, 'live'],
    ])
  })

  test('what was attached and has ended gives nothing; what is to come gives from its start', async () => {
    const { attach, register, grants } = await world()
    await attach({ starts_at: '2020-01-01T00:00:00.000Z', expires_at: '2020-02-01T00:00:00.000Z' })
    await attach({ starts_at: '2099-01-01T00:00:00.000Z', expires_at: '2100-01-01T00:00:00.000Z' })
    await register('seat-1')
    const made = (await grants()).filter(({ entity_id }) => entity_id === 'seat-1')
    assert.deepEqual(
      made.map(({ state, starts_at, expires_at }) => [state, starts_at, expires_at]),
      [['scheduled', '2099-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z']],
    )
  })

  test('an id that was merely seen is not registered and gets nothing; its usage counts once it is', async () => {
    const { ws, customer, attach, register, spend, grants } = await world()
    await attach()
    assert.equal((await spend(3, 'seat-1')).balance, 7)
    assert.equal((await grants()).length, 1)
    assert.deepEqual((await ws.get(`/customers/${customer}/entities`)).body.data, [])
    const { status, body } = await register('seat-1')
    assert.deepEqual([status, body.used_total], [201, 3])
    assert.equal((await spend(1, 'seat-1')).balance, 11)
  })

  test('ids that nobody registered never raise the units a customer can get', async () => {
    const { attach, register, spend } = await world()
    await attach()
    await register('seat-1')
    const ids = ['x', 'y', 'z', 'seat-1 ', 'SEAT-1'].flatMap((id) => [id, `${id}-2`, `${id}-3`])
    const answers = await Promise.all(ids.map((id) => spend(1, id)))
    assert.equal(answers.filter(({ accepted }) => accepted).length, 10)
    assert.equal((await spend(5, 'seat-1')).accepted, true)
  })

  test('however registering and attaching meet, each seat gets each attachment once', async () => {
    const { attach, register, grants } = await world()
    const seats = ['a', 'b', 'c', 'd']
    await Promise.all([
      attach(),
      ...seats.map((seat) => register(seat)),
      attach(),
      ...seats.map((seat) => register(seat)),
    ])
    const made = (await grants()).filter(({ entity_id }) => entity_id !== null)
    const named: string[] = made.map(({ entity_id }) => entity_id)
    assert.deepEqual(named.toSorted(), ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd'])
  })

  test('unknown Features and customers are 404, other ids and fields 400', async () => {
    const { ws, customer, register } = await world()
    assertRefused(await register('seat-1', 'none'), 404, 'feature_not_found', 'feature')
    const body = { feature: 'exports', entity_id: 'seat-1' }
    assertRefused(await ws.post(`/customers/cus_${crypto.randomUUID()}/entities`, body), 404, 'not_found')
    for (const id of ['', ' seat', 'é'.repeat(129)]) {
      assertRefused(await register(id), 400, 'invalid_request', 'entity_id')
    }
    assertRefused(
      await ws.post(`/customers/${customer}/entities`, { ...body, name: 'x' }),
      400,
      'unknown_field',
      'name',
    )
  })
})

describe('POST /customers/{id}/products, with templates per entity', () => {
  test('gives each registered entity its own grant, from one source', async () => {
    const { attach, register } = await world()
    await register('b')
    await register('a')
    await register('a', 'pro')
    assert.deepEqual((await attach()).map(short), [
      ['exports', null, 10, 'live'],
      ['exports', 'b', 5, 'live'],
      ['exports', 'a', 5, 'live'],
      ['pro', 'a', null, 'live'],
    ])
  })

  test('terms are those of the day it was attached, whatever the Product says later', async () => {
    const { ws, attach, register, grants } = await world()
    await attach()
    await ws.patch('/products/team', { grants: [{ feature: 'exports', allowance: 99, entity_scoped: true }] })
    await ws.post('/products/team/archive')
    await register('late')
    assert.deepEqual(short((await grants())[0]), ['exports', 'late', 5, 'live'])
  })
})

describe('GET /customers/{id}/entities', () => {
  test('lists registered ones newest first, of one Feature or all, page by page', async () => {
    const { ws, customer, register, retire } = await world()
    for (const id of ['a', 'b', 'c']) await register(id)
    await register('a', 'pro')
    await retire('b')
    const list = async (query = '') => (await ws.get(`/customers/${customer}/entities${query}`)).body
    const named = (data: Body[]) => data.map(({ feature, entity_id }) => `${feature} ${entity_id}`)
    assert.deepEqual(named((await list()).data), ['pro a', 'exports c', 'exports a'])
    assert.deepEqual(named((await list('?feature=exports')).data), ['exports c', 'exports a'])
    const first = await list('?limit=2')
    assert.deepEqual(named((await list(`?limit=2&cursor=${first.next_cursor}`)).data), ['exports a'])
    assertRefused(await ws.get(`/customers/${customer}/entities?cursor=x`), 400, 'invalid_request', 'cursor')
    assertRefused(await ws.get(`/customers/cus_${crypto.randomUUID()}/entities`), 404, 'not_found')
  })
})

describe('DELETE /customers/{id}/entities', () => {
  test('its own grants are revoked at once, the shared ones and its counter stay', async () => {
    const { ws, customer, attach, register, retire, spend, grants } = await world()
    await attach()
    const { body: entity } = await register('seat-1')
    await register('seat-2')
    await spend(2, 'seat-1')
    const { status, body } = await retire('seat-1')
    assert.deepEqual([status, body], [200, { object: 'entity', id: entity.id, deleted: true }])
    assert.deepEqual((await grants()).map(short), [
      ['exports', 'seat-2', 5, 'live'],
      ['exports', 'seat-1', 0, 'revoked'],
      ['exports', null, 10, 'live'],
    ])
    assert.equal((await spend(1, 'seat-1')).balance, 9)
    const [balance] = (await ws.get(`/customers/${customer}/balances?feature=exports&entity_id=seat-1`)).body.data
    assert.equal(balance.used_total, 3)
    assert.deepEqual(
      (await auditOf(api.pool, entity.id)).map(({ action }) => action),
      ['register', 'retire'],
    )
  })

  test('registered again it gets nothing a second time, but what is attached from then on', async () => {
    const { attach, register, retire, grants } = await world()
    await attach()
    const first = await register('seat-1')
    await retire('seat-1')
    const again = await register('seat-1')
    assert.equal(again.status, 201)
    assert.notEqual(again.body.id, first.body.id)
    const own = async () => (await grants()).filter(({ entity_id }) => entity_id !== null).map(({ state }) => state)
    assert.deepEqual(await own(), ['revoked'])
    await attach()
    assert.deepEqual(await own(), ['live', 'revoked'])
  })

  test('scheduled grants of the entity and those made by hand end too', async () => {
    const { ws, customer, attach, register, retire, grants } = await world()
    await attach({ starts_at: '2099-01-01T00:00:00.000Z' })
    await register('seat-1')
    await ws.post(`/customers/${customer}/grants`, { feature: 'exports', allowance: 3, entity_id: 'seat-1' })
    await retire('seat-1')
    const states = (await grants()).map(({ entity_id, state }) => [entity_id, state])
    assert.deepEqual(states, [
      ['seat-1', 'revoked'],
      ['seat-1', 'revoked'],
      [null, 'scheduled'],
    ])
  })

  test('one that is not registered is not found, and one retired twice neither', async () => {
    const { ws, customer, register, retire, spend, attach } = await world()
    await attach()
    await spend(1, 'seen')
    for (const id of ['none', 'seen']) assertRefused(await retire(id), 404, 'not_found')
    await register('seat-1')
    assert.equal((await retire('seat-1')).status, 200)
    assertRefused(await retire('seat-1'), 404, 'not_found')
    assertRefused(
      await ws.delete(`/customers/${customer}/entities?feature=exports`),
      400,
      'invalid_request',
      'entity_id',
    )
  })

  test('it can be retired while its Feature is archived', async () => {
    const { ws, register, retire } = await world()
    await register('seat-1')
    await ws.post('/features/exports/archive')
    assert.equal((await retire('seat-1')).status, 200)
  })
})

test('a merge carries entities and what later ones are owed, and mints nothing by itself', async () => {
  const { ws, customer, attach, register, grants } = await world()
  const other = (await ws.post('/customers', { distinct_id: 'other' })).body.id
  await attach()
  await register('a')
  await ws.post(`/customers/${other}/entities`, { feature: 'exports', entity_id: 'b' })
  const [source, target] = [customer.slice(4), other.slice(4)]
  await api.pool.transaction(async (tx) => {
    await tx.query('update customer set merged_into = $2 where id = $1', [source, target])
    await mergeAccounts(tx, ws.scopes.test, [{ sourceCustomerId: source, targetCustomerId: target }])
  })
  const before = await grants()
  assert.deepEqual(
    before.map(({ entity_id }) => entity_id),
    ['a', null],
  )
  const { data } = (await ws.get(`/customers/${other}/entities`)).body
  assert.deepEqual(
    data.map(({ entity_id }: Body) => entity_id),
    ['b', 'a'],
  )
  assert.equal((await register('c')).status, 201)
  assert.equal((await register('b')).status, 200)
  assert.deepEqual(
    (await grants()).map(({ entity_id }) => entity_id),
    ['b', 'c', 'a', null],
  )
})
