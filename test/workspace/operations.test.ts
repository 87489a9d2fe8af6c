import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { mergeAccounts } from '../../src/entitlements/index.ts'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const distinctId = 'user-1'

interface World {
  ws: Workspace
  customer: string
  grant: (body: object) => Promise<Body>
  spend: (operationId: string, quantity: number, part?: object) => ReturnType<Api['spend']>
  reverse: (operationId: string, body?: object) => ReturnType<Workspace['post']>
  operation: (operationId: string) => Promise<Body>
  left: () => Promise<Record<string, number>>
}

/** A metered Feature of which one unit costs 0.3 credits. */
async function world(): Promise<World> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  const credit_costs = [{ feature: 'exports', cost: '0.3' }]
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem', credit_costs })
  const customer: string = (await ws.post('/customers', { distinct_id: distinctId })).body.id
  return {
    ws,
    customer,
    grant: async (body) => (await ws.post(`/customers/${customer}/grants`, { feature: 'exports', ...body })).body,
    spend: (operationId, quantity, part = {}) =>
      api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity, operationId, ...part }),
    reverse: (operationId, body = {}) =>
      ws.post(`/operations/${encodeURIComponent(operationId)}/reverse`, { customer_id: customer, ...body }),
    operation: async (operationId) => (await ws.get(`/operations/${encodeURIComponent(operationId)}`)).body,
    left: async () => {
      const { data } = (await ws.get(`/customers/${customer}/grants`)).body
      return Object.fromEntries(data.map(({ id, remaining }: Body) => [id, remaining]))
    },
  }
}

/** As the lane does when an anonymous customer turns out to be another one. */
async function merge(ws: Workspace, source: string, target: string): Promise<void> {
  const scope = ws.scopes.test
  const [sourceCustomerId, targetCustomerId] = [source.slice(4), target.slice(4)]
  await api.pool.transaction(async (tx) => {
    await tx.query('update customer set merged_into = $2 where id = $1', [sourceCustomerId, targetCustomerId])
    await tx.query('update customer_alias set customer_id = $2 where customer_id = $1', [
      sourceCustomerId,
      targetCustomerId,
    ])
    await tx.query(
      `insert into merge_journal
         (scope_id, customer_id, source_customer_id, source_distinct_id, target_distinct_id, pos, status)
       values ($1, $2, $3, 'a', 'b', 1, 'merged')`,
      [scope.scopeId, targetCustomerId, sourceCustomerId],
    )
    await mergeAccounts(tx, scope, [{ sourceCustomerId, targetCustomerId }])
  })
}

describe('GET /operations/{operation_id}', () => {
  test('tells the saved decision and the grants that paid, in draw order', async () => {
    const { ws, customer, grant, spend, operation } = await world()
    const seat = await grant({ allowance: 1, entity_id: 'seat' })
    const shared = await grant({ allowance: 2 })
    const credits = await grant({ feature: 'credits', allowance: 10 })
    const answer = await spend('op/1 ü', 5, { entityId: 'seat' })
    const { occurred_at, ...rest } = await operation('op/1 ü')
    assert.equal(Date.parse(occurred_at), answer.occurredAt)
    assert.deepEqual(rest, {
      object: 'operation',
      id: 'op/1 ü',
      customer_id: customer,
      feature: 'exports',
      type: 'metered',
      entity_id: 'seat',
      mode: 'consume',
      quantity: 5,
      accepted: true,
      code: 'consumed',
      balance: 31,
      unlimited: false,
      active: true,
      paid: [
        { grant_id: seat.id, feature: 'exports', entity_id: 'seat', units: 1 },
        { grant_id: shared.id, feature: 'exports', entity_id: null, units: 2 },
        { grant_id: credits.id, feature: 'credits', entity_id: null, units: 0.6 },
      ],
      reversal: null,
    })
    assert.equal((await ws.get(`/operations/none`)).status, 404)
  })

  test('a denial is an operation that nobody paid', async () => {
    const { spend, operation, grant } = await world()
    await spend('early', 5)
    await grant({ allowance: 3 })
    await spend('short', 5)
    await spend('gate', 1, { feature: 'pro' })
    const told = async (id: string) => {
      const { accepted, code, balance, type, paid } = await operation(id)
      return [accepted, code, balance, type, paid]
    }
    assert.deepEqual(await told('early'), [false, 'access_inactive', 0, 'metered', []])
    assert.deepEqual(await told('short'), [false, 'insufficient_balance', 3, 'metered', []])
    assert.deepEqual(await told('gate'), [false, 'feature_not_consumable', null, 'boolean', []])
  })

  test('its payers are found among many others, also where versions have no entries', async () => {
    const { ws, grant, spend, operation } = await world()
    const { id } = await grant({ allowance: 100 })
    for (let i = 0; i < 10; i++) await spend(`before-${i}`, 1)
    const wide = await grant({ unlimited: true })
    for (let i = 0; i < 10; i++) await spend(`free-${i}`, 1)
    await ws.post(`/grants/${wide.id}/revoke`)
    for (let i = 0; i < 10; i++) await spend(`after-${i}`, 2)
    for (let i = 0; i < 10; i++) {
      for (const [name, units] of [
        ['before', [1]],
        ['free', []],
        ['after', [2]],
      ] as const) {
        const paid = units.map((count) => ({ grant_id: id, feature: 'exports', entity_id: null, units: count }))
        assert.deepEqual((await operation(`${name}-${i}`)).paid, paid)
      }
    }
  })

  test('one of another environment or workspace is not found', async () => {
    const { ws, grant, spend } = await world()
    await grant({ allowance: 3 })
    await spend('mine', 1)
    const stranger = await api.workspace()
    assertRefused(await ws.get('/operations/mine', { environment: 'live' }), 404, 'not_found')
    assertRefused(await stranger.get('/operations/mine'), 404, 'not_found')
    assertRefused(await ws.get(`/operations/${'x'.repeat(257)}`), 400, 'invalid_request', 'operation_id')
    assertRefused(await ws.get('/operations/mine?kind=1'), 400, 'unknown_field', 'kind')
  })

  test('an id that two projects have used asks for the project', async () => {
    const { ws, grant, spend } = await world()
    await grant({ allowance: 3 })
    await spend('both', 1)
    const other = (await ws.post('/projects', { name: 'Other' })).body.id
    const project_id = ws.projectId
    await ws.post('/features', { project_id: other, key: 'exports', name: 'Exports', type: 'metered' })
    const { id } = (await ws.post('/customers', { project_id: other, distinct_id: distinctId })).body
    await ws.post(`/customers/${id}/grants`, { feature: 'exports', allowance: 9 })
    const [row] = await api.pool.query<{ id: number }>(
      `select id from scope where project_id = $1 and environment = 'test'`,
      [other],
    )
    const scope = { ...ws.scopes.test, projectId: other, scopeId: row?.id ?? 0 }
    await api.spend(scope, { distinctId, feature: 'exports', quantity: 2, operationId: 'both' })
    assertRefused(await ws.get('/operations/both'), 400, 'invalid_request', 'project_id')
    assert.equal((await ws.get(`/operations/both?project_id=${project_id}`)).body.quantity, 1)
    assert.equal((await ws.get(`/operations/both?project_id=${other}`)).body.quantity, 2)
  })
})

describe('GET /customers/{id}/operations', () => {
  test('lists newest first, denials included, page by page without loss', async () => {
    const { ws, customer, grant, spend, reverse } = await world()
    await grant({ allowance: 20 })
    for (let i = 0; i < 5; i++) await spend(`one-${i}`, 1)
    // Spends of one millisecond have no order among them.
    await sleep(2)
    await Promise.all(Array.from({ length: 10 }, (_, i) => spend(`many-${i}`, 4)))
    await reverse('one-0')
    const whole: Body[] = (await ws.get(`/customers/${customer}/operations`)).body.data
    assert.equal(whole.length, 15)
    const times = whole.map(({ occurred_at }): number => Date.parse(occurred_at))
    assert.deepEqual(
      times,
      times.toSorted((a, b) => b - a),
    )
    assert.deepEqual(
      new Set(whole.slice(-5).map(({ id }) => id)),
      new Set(['one-0', 'one-1', 'one-2', 'one-3', 'one-4']),
    )
    assert.equal(whole.filter(({ accepted }) => !accepted).length, 7)
    for (const { accepted, quantity, paid } of whole) {
      assert.deepEqual(
        paid.map(({ units }: Body) => units),
        accepted ? [quantity] : [],
      )
    }
    assert.deepEqual(
      whole.filter(({ reversal }) => reversal !== null).map(({ id }) => id),
      ['one-0'],
    )
    for (const limit of [1, 4]) {
      const seen: Body[] = []
      let query = `?limit=${limit}`
      for (;;) {
        const { body } = await ws.get(`/customers/${customer}/operations${query}`)
        seen.push(...body.data)
        if (body.next_cursor === null) break
        query = `?limit=${limit}&cursor=${body.next_cursor}`
      }
      assert.deepEqual(seen, whole)
    }
  })

  test('those of a merged customer are found at the one it became, with who paid', async () => {
    const { ws, customer, grant, spend } = await world()
    const { id } = await grant({ allowance: 20 })
    await spend('before', 3)
    const other = (await ws.post('/customers', { distinct_id: 'other' })).body.id
    await ws.post(`/customers/${other}/grants`, { feature: 'exports', allowance: 1 })
    await merge(ws, customer, other)
    await spend('after', 2)
    for (const either of [customer, other]) {
      const { data } = (await ws.get(`/customers/${either}/operations`)).body
      assert.deepEqual(
        data.map((each: Body) => [each.id, each.customer_id, each.paid.map(({ units }: Body) => units)]),
        [
          ['after', other, [2]],
          ['before', other, [3]],
        ],
      )
      assert.equal(data[1].paid[0].grant_id, id)
    }
  })

  test('cursors of another kind are refused, and a customer that is not there is not found', async () => {
    const { ws, customer } = await world()
    const cursor = Buffer.from(JSON.stringify('5')).toString('base64url')
    assertRefused(await ws.get(`/customers/${customer}/operations?cursor=${cursor}`), 400, 'invalid_request', 'cursor')
    assertRefused(await ws.get(`/customers/cus_${crypto.randomUUID()}/operations`), 404, 'not_found')
  })
})

describe('POST /operations/{operation_id}/reverse, 200', () => {
  test('the units go back to the very grants, last drawn first, and nothing else changes', async () => {
    const { ws, customer, grant, spend, reverse, left, operation } = await world()
    const own = await grant({ allowance: 2 })
    const credits = await grant({ feature: 'credits', allowance: 10 })
    await spend('failed-export', 5)
    const { status, body } = await reverse('failed-export', { reason: 'the export failed' })
    assert.equal(status, 200, JSON.stringify(body))
    const { id, occurred_at, actor, ...rest } = body
    assert.match(id, /^rev_/)
    assert.match(actor, /^key_/)
    assert.deepEqual(rest, {
      object: 'reversal',
      operation_id: 'failed-export',
      customer_id: customer,
      returned: [
        { grant_id: credits.id, feature: 'credits', units: 0.9 },
        { grant_id: own.id, feature: 'exports', units: 2 },
      ],
      not_returned: [],
      note: 'the export failed',
    })
    assert.deepEqual(await left(), { [own.id]: 2, [credits.id]: 10 })
    assert.deepEqual((await operation('failed-export')).reversal, body)
    const { data } = (await ws.get(`/customers/${customer}/ledger?operation_id=failed-export`)).body
    const back = data.filter(({ reason }: Body) => reason === 'reverse')
    assert.deepEqual(back.map(({ delta }: Body) => delta).toSorted(), [0.9, 2])
    for (const entry of back) assert.deepEqual([entry.note, entry.occurred_at], ['the export failed', occurred_at])
    const [balance] = (await ws.get(`/customers/${customer}/balances?feature=exports`)).body.data
    assert.deepEqual([balance.used_total, balance.balance], [5, 35])
    assert.equal((await spend('failed-export', 5)).replay, true)
    assert.deepEqual(
      (await auditOf(api.pool, 'failed-export')).map(({ action }) => action),
      ['reverse'],
    )
  })

  test('repeated, in parallel too, it gives back once and answers the same', async () => {
    const { grant, spend, reverse, left } = await world()
    const { id } = await grant({ allowance: 10 })
    await spend('once', 6)
    await spend('other', 4)
    const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => reverse('once', { reason: `try ${i}` })))
    for (const { status, body } of answers) assert.deepEqual([status, body], [200, answers[0]?.body])
    assert.deepEqual((await reverse('once')).body, answers[0]?.body)
    assert.deepEqual(await left(), { [id]: 6 })
    assert.equal((await auditOf(api.pool, 'once')).length, 1)
  })

  test('units of a reset period, of a revoked and of an expired grant cannot go back', async () => {
    const { ws, grant, spend, reverse, left } = await world()
    const ends = new Date(Date.now() + 3_600_000).toISOString()
    const expiring = await grant({ allowance: 1, expires_at: ends })
    const monthly = await grant({ allowance: 2, interval: 'month' })
    const revoked = await grant({ allowance: 3 })
    await spend('op', 6)
    await ws.post(`/grants/${revoked.id}/revoke`, {})
    // As if two months had gone by.
    await api.pool.query(
      `update ledger_grant
       set effective_at_ms = effective_at_ms - 5356800000, anchor_ms = anchor_ms - 5356800000,
         expires_at_ms = expires_at_ms - 5356800000
       where scope_id = $1`,
      [ws.scopes.test.scopeId],
    )
    const { body } = await reverse('op')
    assert.deepEqual(body.returned, [])
    assert.deepEqual(body.not_returned, [
      { grant_id: revoked.id, feature: 'exports', units: 3, reason: 'grant_revoked' },
      { grant_id: monthly.id, feature: 'exports', units: 2, reason: 'period_reset' },
      { grant_id: expiring.id, feature: 'exports', units: 1, reason: 'grant_expired' },
    ])
    assert.deepEqual(await left(), { [expiring.id]: 0, [monthly.id]: 2, [revoked.id]: 0 })
  })

  test('a spend that an unlimited grant covered gives nothing back', async () => {
    const { grant, spend, reverse } = await world()
    await grant({ unlimited: true })
    await spend('op', 6)
    const answers = await Promise.all([reverse('op'), reverse('op')])
    for (const { body } of answers) assert.deepEqual([body.returned, body.not_returned], [[], []])
    assert.deepEqual(answers[0]?.body, answers[1]?.body)
  })

  test('the largest spends go back to the unit', async () => {
    const { grant, spend, reverse, left } = await world()
    const most = Number.MAX_SAFE_INTEGER
    const grants = [await grant({ allowance: most }), await grant({ allowance: most })]
    await spend('one', 1)
    await spend('most', most)
    const { body } = await reverse('most')
    const units = body.returned.map((part: Body) => part.units)
    assert.deepEqual(units, [1, most - 1])
    await reverse('one')
    assert.deepEqual(await left(), Object.fromEntries(grants.map(({ id }) => [id, most])))
  })

  test('after a merge either id of the customer will do', async () => {
    const { ws, customer, grant, spend, reverse, left } = await world()
    const { id } = await grant({ allowance: 10 })
    await spend('op', 6)
    const other = (await ws.post('/customers', { distinct_id: 'other' })).body.id
    const own = (await ws.post(`/customers/${other}/grants`, { feature: 'exports', allowance: 1 })).body
    await merge(ws, customer, other)
    const first = await reverse('op')
    assert.deepEqual(first.body.returned, [{ grant_id: id, feature: 'exports', units: 6 }])
    assert.deepEqual((await reverse('op', { customer_id: other })).body, first.body)
    assert.deepEqual(await left(), { [id]: 10, [own.id]: 1 })
  })

  test('spends that race it neither lose a unit nor gain one', async () => {
    const { grant, spend, reverse, left } = await world()
    const { id } = await grant({ allowance: 100 })
    await spend('op', 60)
    const spends = Array.from({ length: 40 }, (_, i) => spend(`race-${i}`, 3))
    await reverse('op')
    const accepted = (await Promise.all(spends)).filter((answer) => answer.accepted).length
    assert.deepEqual(await left(), { [id]: 100 - 3 * accepted })
  })
})

describe('POST /operations/{operation_id}/reverse, errors', () => {
  test('a denied operation is 409', async () => {
    const { spend, reverse, operation } = await world()
    await spend('op', 1)
    assertRefused(await reverse('op'), 409, 'conflict', 'operation_id')
    assert.equal((await operation('op')).reversal, null)
  })

  test("an unknown operation, another customer's, and an unknown customer are 404", async () => {
    const { ws, grant, spend, reverse } = await world()
    await grant({ allowance: 1 })
    await spend('op', 1)
    const other = (await ws.post('/customers', { distinct_id: 'other' })).body.id
    assertRefused(await reverse('none'), 404, 'not_found')
    for (const customer_id of [other, 'nobody', `cus_${crypto.randomUUID()}`]) {
      assertRefused(await reverse('op', { customer_id }), 404, 'not_found')
    }
    assertRefused(
      await ws.post('/operations/op/reverse', { customer_id: other }, { environment: 'live' }),
      404,
      'not_found',
    )
  })

  test('fields of another kind are refused', async () => {
    const { ws, reverse } = await world()
    assertRefused(await ws.post('/operations/op/reverse', {}), 400, 'invalid_request', 'customer_id')
    assertRefused(await reverse('op', { units: 5 }), 400, 'unknown_field', 'units')
    assertRefused(await reverse('op', { reason: 5 }), 400, 'invalid_request', 'reason')
  })
})
