import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const distinctId = 'user-1'

async function world(): Promise<{ ws: Workspace; customer: string; grant: (body: unknown) => Promise<Body> }> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  const credit_costs = [{ feature: 'exports', cost: '0.3' }]
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem', credit_costs })
  const customer: string = (await ws.post('/customers', { distinct_id: distinctId })).body.id
  return { ws, customer, grant: async (body) => (await ws.post(`/customers/${customer}/grants`, body)).body }
}

const shortOf = ({ operation_id, feature, delta, remaining_after, reason }: Body) =>
  [reason, feature, delta, remaining_after, operation_id] as const

describe('GET /customers/{id}/ledger', () => {
  test('tells every movement, newest first, in units of the Feature that moved', async () => {
    const { ws, customer, grant } = await world()
    const exports = await grant({ feature: 'exports', allowance: 2 })
    const credits = await grant({ feature: 'credits', allowance: 10, entity_id: 'seat' })
    await api.spend(ws.scopes.test, {
      distinctId,
      feature: 'exports',
      quantity: 5,
      entityId: 'seat',
      operationId: 'op-1',
    })
    const { body } = await ws.get(`/customers/${customer}/ledger`)
    const entries: Body[] = body.data
    assert.deepEqual(
      entries
        .slice(0, 2)
        .map(shortOf)
        .toSorted(([, a], [, b]) => (a < b ? -1 : 1)),
      [
        ['draw', 'credits', -0.9, 9.1, 'op-1'],
        ['draw', 'exports', -2, 0, 'op-1'],
      ],
    )
    assert.deepEqual(entries.slice(2).map(shortOf), [
      ['grant', 'credits', 10, 10, null],
      ['grant', 'exports', 2, 2, null],
    ])
    const draw = entries.find((entry) => entry.reason === 'draw' && entry.feature === 'credits')
    assert.deepEqual([draw.grant_id, draw.entity_id], [credits.id, 'seat'])
    const first = entries.at(-1)
    assert.deepEqual([first.grant_id, first.entity_id, first.occurred_at], [exports.id, null, exports.created_at])
    assert.equal(new Set(entries.map(({ id }) => id)).size, 4)
  })

  test('a draw in a new period shows the lapse and the refill before it', async () => {
    const { ws, customer, grant } = await world()
    const { starts_at } = await grant({
      feature: 'exports',
      allowance: 5,
      interval: 'day',
      starts_at: '2026-01-01T00:00:00Z',
    })
    assert.equal(starts_at, '2026-01-01T00:00:00.000Z')
    await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 1, operationId: 'op' })
    const { body } = await ws.get(`/customers/${customer}/ledger`)
    assert.deepEqual(body.data.map(shortOf), [
      ['draw', 'exports', -1, 4, 'op'],
      ['refill', 'exports', 5, 5, 'op'],
      ['lapse', 'exports', -5, 0, 'op'],
      ['grant', 'exports', 5, 5, null],
    ])
  })

  test('can be read of one Feature, operation or grant', async () => {
    const { ws, customer, grant } = await world()
    const first = await grant({ feature: 'exports', allowance: 5 })
    await grant({ feature: 'exports', allowance: 5, expires_at: '2030-01-01T00:00:00Z' })
    await grant({ feature: 'credits', allowance: 5 })
    await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 6, operationId: 'a/1 ü' })
    const count = async (query: string) => (await ws.get(`/customers/${customer}/ledger${query}`)).body.data.length
    assert.equal(await count(''), 5)
    assert.equal(await count('?feature=exports'), 4)
    assert.equal(await count('?feature=credits'), 1)
    assert.equal(await count('?feature=unknown'), 0)
    assert.equal(await count(`?operation_id=${encodeURIComponent('a/1 ü')}`), 2)
    assert.equal(await count('?operation_id=none'), 0)
    assert.equal(await count(`?grant_id=${first.id}`), 2)
    assert.equal(
      await count('?feature=exports&operation_id=a/1%20%C3%BC&grant_id=grant_1'),
      first.id === 'grant_1' ? 1 : 0,
    )
  })

  test('pages walk through accounts, instants and lines without loss or repetition', async () => {
    const { ws, customer, grant } = await world()
    for (let i = 0; i < 4; i++) {
      await grant({ feature: i % 2 === 0 ? 'exports' : 'credits', allowance: 2 })
    }
    await Promise.all(
      Array.from({ length: 12 }, () => api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity: 1 })),
    )
    const whole: Body[] = (await ws.get(`/customers/${customer}/ledger?limit=100`)).body.data
    assert.ok(whole.length >= 16)
    const times: string[] = whole.map(({ occurred_at }) => occurred_at)
    assert.deepEqual(
      times,
      times.toSorted((a, b) => (a < b ? 1 : -1)),
    )
    for (const limit of [1, 3, 7]) {
      const seen: Body[] = []
      let query = `?limit=${limit}`
      for (;;) {
        const { body } = await ws.get(`/customers/${customer}/ledger${query}`)
        seen.push(...body.data)
        if (body.next_cursor === null) break
        query = `?limit=${limit}&cursor=${body.next_cursor}`
      }
      assert.deepEqual(seen, whole)
    }
  })

  test('the sum of the entries of a grant is what is left of it', async () => {
    const { ws, customer, grant } = await world()
    const { id } = await grant({ feature: 'credits', allowance: 7 })
    for (const quantity of [1, 2, 3]) await api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity })
    const entries: Body[] = (await ws.get(`/customers/${customer}/ledger?grant_id=${id}`)).body.data
    const tenths = entries.reduce((total, { delta }) => total + Math.round(delta * 10), 0)
    const [listed] = (await ws.get(`/customers/${customer}/grants`)).body.data
    assert.deepEqual([tenths, listed.remaining], [52, 5.2])
  })

  test('the ledger of a merged customer goes on in that of the one it became', async () => {
    const { ws, customer, grant } = await world()
    await grant({ feature: 'exports', allowance: 5 })
    const survivor: string = (await ws.post('/customers', { distinct_id: 'other' })).body.id
    const [scopeId, source, target] = [ws.scopes.test.scopeId, customer.slice(4), survivor.slice(4)]
    await api.pool.query('update customer set merged_into = $2 where id = $1', [source, target])
    await api.pool.query(
      `insert into merge_journal
         (scope_id, customer_id, source_customer_id, source_distinct_id, target_distinct_id, pos, status)
       values ($1, $2, $3, $4, 'other', 1, 'merged')`,
      [scopeId, target, source, distinctId],
    )
    const { body } = await ws.get(`/customers/${survivor}/ledger`)
    assert.deepEqual(body.data.map(shortOf), [['grant', 'exports', 5, 5, null]])
  })

  test('cursors, limits and filters of another kind are refused', async () => {
    const { ws, customer } = await world()
    const path = `/customers/${customer}/ledger`
    const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const cursor of ['!', encoded('1_2_3'), encoded('1_2_3_x'), encoded(5), encoded(`${'9'.repeat(17)}_1_1_1`)]) {
      assertRefused(await ws.get(`${path}?cursor=${cursor}`), 400, 'invalid_request', 'cursor')
    }
    assertRefused(await ws.get(`${path}?limit=0`), 400, 'invalid_request', 'limit')
    assertRefused(await ws.get(`${path}?grant_id=5`), 400, 'invalid_request', 'grant_id')
    assertRefused(await ws.get(`${path}?operation_id=`), 400, 'invalid_request', 'operation_id')
    assertRefused(await ws.get(`${path}?kind=draw`), 400, 'unknown_field', 'kind')
  })
})
