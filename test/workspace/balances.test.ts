import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const distinctId = 'user-1'

async function world(): Promise<{ ws: Workspace; customer: string; grant: (body: unknown) => Promise<Body> }> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean', platforms: ['ios'] })
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  await ws.post('/features', { key: 'chat', name: 'Chat', type: 'metered' })
  await ws.post('/features', { key: 'unused', name: 'Unused', type: 'metered' })
  const credit_costs = [{ feature: 'chat', cost: '0.3' }]
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem', credit_costs })
  const customer: string = (await ws.post('/customers', { distinct_id: distinctId })).body.id
  return {
    ws,
    customer,
    grant: async (body) => {
      const answer = await ws.post(`/customers/${customer}/grants`, body)
      assert.equal(answer.status, 201, JSON.stringify(answer.body))
      return answer.body
    },
  }
}

async function balancesOf(ws: Workspace, customer: string, query = ''): Promise<Body[]> {
  const { status, body } = await ws.get(`/customers/${customer}/balances${query}`)
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.object, body.has_more, body.next_cursor], ['list', false, null])
  return body.data
}

describe('GET /customers/{id}/balances, 200', () => {
  test('shows every Feature the customer was granted, by key, as a check would see it', async () => {
    const { ws, customer, grant } = await world()
    assert.deepEqual(await balancesOf(ws, customer), [])
    await grant({ feature: 'pro' })
    const exported = await grant({ feature: 'exports', allowance: 100, interval: 'month' })
    await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 7 })

    const [exports, pro] = await balancesOf(ws, customer)
    const [shown] = exports.grants
    assert.ok(Date.parse(exports.next_reset_at) > Date.parse(exported.starts_at))
    assert.deepEqual(exports, {
      object: 'balance',
      feature: 'exports',
      type: 'metered',
      entity_id: null,
      allowed: true,
      live: true,
      unlimited: false,
      balance: 93,
      credits: null,
      used_total: 7,
      next_reset_at: shown.next_reset_at,
      interval: 'month',
      grants: [
        {
          id: exported.id,
          feature: 'exports',
          entity_id: null,
          source: 'manual',
          allowance: 100,
          unlimited: false,
          remaining: 93,
          starts_at: exported.starts_at,
          expires_at: null,
          next_reset_at: shown.next_reset_at,
        },
      ],
    })
    assert.deepEqual(
      [pro.feature, pro.type, pro.allowed, pro.unlimited, pro.balance, pro.grants.length, pro.grants[0].remaining],
      ['pro', 'boolean', true, false, null, 1, null],
    )
  })

  test('credits are shown to the last decimal and pay for their members', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'credits', allowance: 10 })
    await api.spend(ws.scopes.test, { distinctId, feature: 'chat', quantity: 5 })
    const [chat, credits] = await balancesOf(ws, customer)
    assert.deepEqual([chat.feature, chat.balance, chat.credits, chat.used_total], ['chat', 28, null, 5])
    assert.deepEqual([chat.grants[0].feature, chat.grants[0].remaining], ['credits', 8.5])
    assert.deepEqual([credits.feature, credits.balance, credits.credits, credits.used_total], ['credits', 8, 8.5, 0])
  })

  test('unlimited, drained, scheduled and expired grants', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'exports', unlimited: true })
    await grant({ feature: 'exports', allowance: 5 })
    await grant({
      feature: 'chat',
      allowance: 1,
      starts_at: '2020-01-01T00:00:00Z',
      expires_at: '2020-02-01T00:00:00Z',
    })
    await grant({ feature: 'unused', allowance: 2 })
    await api.spend(ws.scopes.test, { distinctId, feature: 'unused', quantity: 2 })
    const [chat, exports, unused] = await balancesOf(ws, customer)
    assert.deepEqual([chat.live, chat.allowed, chat.balance, chat.grants], [false, false, 0, []])
    assert.deepEqual([exports.unlimited, exports.balance, exports.grants.length], [true, null, 2])
    assert.deepEqual([exports.grants[0].unlimited, exports.grants[0].allowance], [true, null])
    assert.deepEqual([unused.live, unused.allowed, unused.balance, unused.used_total], [true, false, 0, 2])
  })

  test('an entity has its own grants and counter, and sees the shared ones', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'exports', allowance: 10 })
    await grant({ feature: 'exports', allowance: 3, entity_id: 'seat 1' })
    await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 2, entityId: 'seat 1' })
    await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 4 })
    const [shared] = await balancesOf(ws, customer)
    assert.deepEqual([shared.entity_id, shared.balance, shared.used_total], [null, 6, 4])
    const [seat] = await balancesOf(ws, customer, '?entity_id=seat%201')
    assert.deepEqual([seat.entity_id, seat.balance, seat.used_total, seat.grants.length], ['seat 1', 7, 2, 2])
    const [other] = await balancesOf(ws, customer, '?entity_id=seat%202')
    assert.deepEqual([other.balance, other.used_total], [6, 0])
  })

  test('one Feature, whether it was granted or not, and those of one platform', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'pro' })
    await grant({ feature: 'exports', allowance: 1 })
    const keys = async (query: string) => (await balancesOf(ws, customer, query)).map(({ feature }) => feature)
    assert.deepEqual(await keys('?feature=exports'), ['exports'])
    const [unused] = await balancesOf(ws, customer, '?feature=unused')
    assert.deepEqual([unused.live, unused.balance, unused.used_total], [false, 0, 0])
    const app = async (platform: string) => (await ws.post('/apps', { platform, name: platform })).body.id
    assert.deepEqual(await keys(`?app_id=${await app('ios')}`), ['exports', 'pro'])
    assert.deepEqual(await keys(`?app_id=${await app('web')}`), ['exports'])
  })

  test('a balance beyond 2^53 − 1 is capped, allowances are not', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'exports', allowance: Number.MAX_SAFE_INTEGER })
    await grant({ feature: 'exports', allowance: Number.MAX_SAFE_INTEGER })
    const [exports] = await balancesOf(ws, customer)
    assert.equal(exports.balance, Number.MAX_SAFE_INTEGER)
  })

  test('reading changes nothing', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'exports', allowance: 5, interval: 'hour', starts_at: '2026-01-01T00:00:00Z', rollover: {} })
    const state = () =>
      api.pool.query(
        `select a.version, a.last_at_ms, g.remaining, g.period_no, (select count(*) from entry where scope_id = $1) as entries
         from account a
         join ledger_grant g on g.account_id = a.id
         where a.scope_id = $1`,
        [ws.scopes.test.scopeId],
      )
    const before = await state()
    for (const part of ['balances', 'grants', 'ledger']) {
      assert.equal((await ws.get(`/customers/${customer}/${part}`)).status, 200)
    }
    assert.deepEqual(await state(), before)
  })
})

describe('GET /customers/{id}/balances, refused', () => {
  test('wrong and unknown queries, Features and apps', async () => {
    const { ws, customer } = await world()
    const path = `/customers/${customer}/balances`
    assertRefused(await ws.get(`${path}?feature=none`), 404, 'feature_not_found', 'feature')
    assertRefused(await ws.get(`${path}?app_id=app_none`), 404, 'not_found')
    assertRefused(await ws.get(`${path}?entity_id=`), 400, 'invalid_request', 'entity_id')
    assertRefused(await ws.get(`${path}?entity_id=%20a`), 400, 'invalid_request', 'entity_id')
    assertRefused(await ws.get(`${path}?limit=5`), 400, 'unknown_field', 'limit')
  })
})
