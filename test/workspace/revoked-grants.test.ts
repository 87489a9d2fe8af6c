import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const distinctId = 'user-1'
const later = '2099-01-01T00:00:00.000Z'

interface World {
  ws: Workspace
  customer: string
  grant: (body: object) => Promise<Body>
  revoke: (id: string, body?: object) => ReturnType<Workspace['post']>
  spend: (quantity: number, entityId?: string) => ReturnType<Api['spend']>
  ledger: () => Promise<Body[]>
}

async function world(): Promise<World> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  const customer: string = (await ws.post('/customers', { distinct_id: distinctId })).body.id
  return {
    ws,
    customer,
    grant: async (body) => (await ws.post(`/customers/${customer}/grants`, { feature: 'exports', ...body })).body,
    revoke: (id, body = {}) => ws.post(`/grants/${id}/revoke`, body),
    spend: (quantity, entityId) =>
      api.spend(ws.scopes.test, { distinctId, feature: 'exports', quantity, entityId: entityId ?? null }),
    ledger: async () => (await ws.get(`/customers/${customer}/ledger?limit=100`)).body.data,
  }
}

describe('POST /grants/{id}/revoke, 200', () => {
  test('the unspent units leave at once, the spent ones stay spent', async () => {
    const { ws, customer, grant, revoke, spend, ledger } = await world()
    const { id } = await grant({ allowance: 10 })
    await spend(4)
    const { status, body } = await revoke(id, { reason: 'given by mistake' })
    assert.equal(status, 200, JSON.stringify(body))
    const { state, remaining, uncollected, revoked_at } = body
    assert.deepEqual([state, remaining, uncollected], ['revoked', 0, 4])
    const { accepted, code, occurredAt } = await spend(1)
    assert.deepEqual([accepted, code], [false, 'access_inactive'])
    assert.ok(Number(occurredAt) >= Date.parse(revoked_at))
    assert.deepEqual((await ws.get(`/customers/${customer}/grants`)).body.data, [body])
    const [entry] = await ledger()
    assert.deepEqual(
      [entry.reason, entry.delta, entry.remaining_after, entry.note, entry.occurred_at],
      ['revoke', -6, 0, 'given by mistake', revoked_at],
    )
    assert.match(entry.actor, /^key_/)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'revoke'],
    )
  })

  test('repeated it answers the same and writes nothing', async () => {
    const { grant, revoke, ledger } = await world()
    const { id } = await grant({ allowance: 10 })
    const first = await revoke(id, { reason: 'one' })
    const entries = await ledger()
    for (const body of [{}, { reason: 'two' }, { at: later }]) {
      assert.deepEqual((await revoke(id, body)).body, first.body)
    }
    assert.deepEqual(await ledger(), entries)
    assert.equal((await auditOf(api.pool, id)).length, 2)
  })

  test('a later instant leaves the units usable until then, and can only be brought forward', async () => {
    const { grant, revoke, spend, ledger } = await world()
    const { id } = await grant({ allowance: 10 })
    const { body } = await revoke(id, { at: later })
    assert.deepEqual([body.state, body.remaining, body.revoked_at], ['live', 10, later])
    assert.equal((await spend(3)).balance, 7)
    assert.deepEqual((await revoke(id, { at: '2099-06-01T00:00:00.000Z' })).body.revoked_at, later)
    const now = await revoke(id)
    assert.deepEqual([now.body.state, now.body.remaining, now.body.uncollected], ['revoked', 0, 3])
    assert.deepEqual(
      (await ledger()).map(({ reason, delta }) => [reason, delta]),
      [
        ['revoke', -7],
        ['draw', -3],
        ['revoke', 0],
        ['grant', 10],
      ],
    )
  })

  test('an instant in the past is now', async () => {
    const { grant, revoke } = await world()
    const { id, created_at } = await grant({ allowance: 10 })
    const { body } = await revoke(id, { at: '2001-01-01T00:00:00.000Z' })
    assert.equal(body.state, 'revoked')
    assert.ok(Date.parse(body.revoked_at) >= Date.parse(created_at))
  })

  test('what ended periods rolled over lives on', async () => {
    const { grant, revoke, spend, ledger } = await world()
    const start = new Date(Date.now() - 90 * 60_000).toISOString()
    const terms = { allowance: 10, interval: 'hour', starts_at: start, rollover: { max: 100 } }
    const { id } = await grant(terms)
    assert.equal((await revoke(id)).body.remaining, 0)
    assert.equal((await spend(1)).balance, 9)
    assert.deepEqual(
      (await ledger()).map(({ reason, delta }) => [reason, delta]),
      [
        ['draw', -1],
        ['revoke', -10],
        ['rollover', 10],
        ['refill', 10],
        ['lapse', -10],
        ['grant', 10],
      ],
    )
  })

  test('only this grant ends: boolean, unlimited and other grants too, each by itself', async () => {
    const { ws, customer, grant, revoke, spend } = await world()
    const kept = await grant({ allowance: 5 })
    const wide = await grant({ unlimited: true })
    const pro = await grant({ feature: 'pro' })
    assert.equal((await spend(50)).unlimited, true)
    assert.equal((await revoke(wide.id)).body.uncollected, 0)
    assert.equal((await revoke(pro.id)).body.state, 'revoked')
    const { data } = (await ws.get(`/customers/${customer}/balances`)).body
    assert.deepEqual(
      data.map(({ feature, allowed, balance }: Body) => [feature, allowed, balance]),
      [
        ['exports', true, 5],
        ['pro', false, null],
      ],
    )
    assert.deepEqual(data[0].grants[0].id, kept.id)
  })

  test('a call without a body revokes at once', async () => {
    const { ws, grant } = await world()
    const { id } = await grant({ allowance: 1 })
    const { status, body } = await ws.post(`/grants/${id}/revoke`)
    assert.deepEqual([status, body.state], [200, 'revoked'])
  })

  test('spends that race it take what they took before, and nothing after', async () => {
    const { grant, revoke, spend, ledger } = await world()
    const { id } = await grant({ allowance: 1000 })
    const spends = Array.from({ length: 60 }, () => spend(7))
    const { body } = await revoke(id)
    const accepted = (await Promise.all(spends)).filter((answer) => answer.accepted)
    assert.equal(body.uncollected, 7 * accepted.length)
    assert.equal((await spend(1)).accepted, false)
    const sum = (await ledger()).reduce((total, { delta }) => total + delta, 0)
    const revoked = (await ledger()).find(({ reason }) => reason === 'revoke')
    assert.deepEqual([sum, revoked.delta], accepted.length >= 60 ? [0, 7 * 60 - 1000] : [0, revoked.delta])
    for (const answer of accepted) assert.ok(Number(answer.occurredAt) <= Date.parse(body.revoked_at))
  })
})

describe('POST /grants/{id}/revoke, errors', () => {
  test('a grant of another environment or workspace is not found, and neither is one that never was', async () => {
    const { ws, grant } = await world()
    const { id } = await grant({ allowance: 1 })
    const stranger = await api.workspace()
    assertRefused(await ws.post(`/grants/${id}/revoke`, {}, { environment: 'live' }), 404, 'not_found')
    assertRefused(await stranger.post(`/grants/${id}/revoke`, {}), 404, 'not_found')
    assertRefused(await ws.post('/grants/grant_999999999/revoke', {}), 404, 'not_found')
  })

  test('ids, instants and fields of another kind are refused', async () => {
    const { ws, grant, revoke } = await world()
    const { id } = await grant({ allowance: 1 })
    assertRefused(await ws.post('/grants/grant_x/revoke', {}), 400, 'invalid_request', 'id')
    for (const at of ['soon', '2026-02-30T00:00:00Z', 5]) {
      assertRefused(await revoke(id, { at }), 400, 'invalid_request', 'at')
    }
    assertRefused(await revoke(id, { when: later }), 400, 'unknown_field', 'when')
    assertRefused(await revoke(id, { reason: 'a'.repeat(1001) }), 400, 'invalid_request', 'reason')
    assert.equal((await revoke(id)).body.state, 'revoked')
  })
})
