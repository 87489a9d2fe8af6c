import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

/** A new customer's id. */
async function customerIn(ws: Workspace, distinct_id = 'user-1'): Promise<string> {
  return (await ws.post('/customers', { distinct_id })).body.id
}

describe('200 and 201', () => {
  test('a distinct id gives a new customer once, and the same one from then on', async () => {
    const ws = await api.workspace()
    const created = await ws.post('/customers', { distinct_id: 'user-1', properties: { plan: 'pro' } })
    assert.equal(created.status, 201)
    const { id, created_at, updated_at, distinct_ids, ...rest } = created.body
    assert.match(id, /^cus_[0-9a-f-]{36}$/)
    assert.ok(created_at && updated_at)
    assert.deepEqual(distinct_ids, [{ distinct_id: 'user-1', identified: false, first_seen_at: created_at }])
    assert.deepEqual(rest, {
      object: 'customer',
      project_id: ws.projectId,
      environment: 'test',
      identified: false,
      properties: { plan: 'pro' },
    })
    assert.deepEqual((await ws.get(`/customers/${id}`)).body, created.body)
    assert.deepEqual((await ws.get('/customers/by_distinct_id/user-1')).body, created.body)
    assert.deepEqual((await ws.get('/customers?distinct_id=user-1')).body.data, [created.body])
    assert.deepEqual((await ws.get('/customers')).body.data, [created.body])

    const again = await ws.post('/customers', { distinct_id: 'user-1' })
    assert.deepEqual([again.status, again.body], [200, created.body])
    const more = await ws.post('/customers', { distinct_id: 'user-1', properties: { city: 'Bern' } })
    assert.equal(more.status, 200)
    assert.deepEqual(more.body.properties, { plan: 'pro', city: 'Bern' })
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update'],
    )
  })

  test('many at the same time find one customer', async () => {
    const ws = await api.workspace()
    const answers = await Promise.all(Array.from({ length: 10 }, () => ws.post('/customers', { distinct_id: 'storm' })))
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [...Array<number>(9).fill(200), 201],
    )
  })

  test('distinct ids of any script are found percent-encoded', async () => {
    const ws = await api.workspace()
    for (const distinctId of ['a/b', 'ä ö?&=#%', '🍋'.repeat(256), ' spaced ', '%2F', '+']) {
      const { status, body } = await ws.post('/customers', { distinct_id: distinctId })
      assert.equal(status, 201, JSON.stringify(body))
      const encoded = encodeURIComponent(distinctId)
      assert.deepEqual((await ws.get(`/customers/by_distinct_id/${encoded}`)).body, body)
      assert.deepEqual((await ws.get(`/customers?distinct_id=${encoded}`)).body.data, [body])
    }
  })

  test('properties are set, kept, removed and counted at once', async () => {
    const ws = await api.workspace()
    const id = await customerIn(ws)
    const edit = async (properties: object) => (await ws.patch(`/customers/${id}`, { properties })).body.properties
    assert.deepEqual(await edit({ set: { a: 1, b: [true, null], c: { d: 'x' } } }), {
      a: 1,
      b: [true, null],
      c: { d: 'x' },
    })
    assert.deepEqual(await edit({ set_once: { a: 2, e: 5 }, unset: ['b', 'unknown'] }), { a: 1, c: { d: 'x' }, e: 5 })
    assert.deepEqual(await edit({ increment: { a: 1.5, n: -2 }, set: { c: null } }), { a: 2.5, c: null, e: 5, n: -2 })
    assert.deepEqual(await edit({}), { a: 2.5, c: null, e: 5, n: -2 })
    assert.deepEqual((await ws.get(`/customers/${id}`)).body.properties, { a: 2.5, c: null, e: 5, n: -2 })
  })

  test('what could not be written is told, the rest is written', async () => {
    const ws = await api.workspace()
    const id = await customerIn(ws)
    await ws.patch(`/customers/${id}`, { properties: { set: { name: 'text' } } })
    const { body } = await ws.patch(`/customers/${id}`, { properties: { increment: { name: 1, visits: 1 } } })
    assert.deepEqual(body.properties, { name: 'text', visits: 1 })
    assert.deepEqual(body.warnings, [{ code: 'increment_not_number', detail: 'name' }])
    assert.equal((await ws.get(`/customers/${id}`)).body.warnings, undefined)
  })

  test('names that objects have by birth are names like any other', async () => {
    const ws = await api.workspace()
    const id = await customerIn(ws)
    const body = '{"properties":{"set":{"__proto__":{"x":1},"constructor":"y","toString":2}}}'
    const patched = await ws.patch(`/customers/${id}`, body)
    assert.deepEqual(
      Object.entries(patched.body.properties).toSorted(([a], [b]) => (a < b ? -1 : 1)),
      [
        ['__proto__', { x: 1 }],
        ['constructor', 'y'],
        ['toString', 2],
      ],
    )
  })

  test('text that cannot be stored is replaced as in events', async () => {
    const ws = await api.workspace()
    const { body } = await ws.post(
      '/customers',
      '{"distinct_id":"u","properties":{"a":"x\\u0000y","b\\ud800":"\\udfff"}}',
    )
    assert.deepEqual(body.properties, { a: 'x\ufffdy', 'b\ufffd': '\ufffd' })
  })

  test('a merged customer is shown as the one it became', async () => {
    const ws = await api.workspace()
    const [gone, survivor] = [await customerIn(ws, 'anon'), await customerIn(ws, 'user')]
    await mergeRows(ws, gone, survivor)
    assert.equal((await ws.get(`/customers/${gone}`)).body.id, survivor)
    assert.deepEqual(
      (await ws.get('/customers')).body.data.map(({ id }: { id: string }) => id),
      [survivor],
    )
  })
})

async function mergeRows(ws: Workspace, gone: string, survivor: string): Promise<void> {
  const [scopeId, source, target] = [ws.scopes.test.scopeId, gone.slice(4), survivor.slice(4)]
  await api.pool.query('update customer_alias set customer_id = $3 where scope_id = $1 and customer_id = $2', [
    scopeId,
    source,
    target,
  ])
  await api.pool.query('update customer set merged_into = $3 where scope_id = $1 and id = $2', [
    scopeId,
    source,
    target,
  ])
}

describe('400', () => {
  test('distinct ids that name nobody', async () => {
    const ws = await api.workspace()
    const wrong = ['', ' ', 'anonymous', 'Guest', 'undefined', 'null', 'x'.repeat(257), 'a\0b', '\ud800', 5, null]
    for (const distinct_id of wrong) {
      assertRefused(await ws.post('/customers', { distinct_id }), 400, 'invalid_request', 'distinct_id')
    }
    assertRefused(await ws.post('/customers', {}), 400, 'invalid_request', 'distinct_id')
    for (const text of ['', 'anonymous', '%00', 'x'.repeat(257)]) {
      assertRefused(await ws.get(`/customers?distinct_id=${text}`), 400, 'invalid_request', 'distinct_id')
      if (text !== '') {
        assertRefused(await ws.get(`/customers/by_distinct_id/${text}`), 400, 'invalid_request', 'distinct_id')
      }
    }
  })

  test('properties that are no properties', async () => {
    const ws = await api.workspace()
    const id = await customerIn(ws)
    const patch = (properties: unknown) => ws.patch(`/customers/${id}`, { properties })
    assertRefused(await ws.patch(`/customers/${id}`, {}), 400, 'invalid_request', 'properties')
    for (const wrong of ['x', 5, null, []]) {
      assertRefused(await patch(wrong), 400, 'invalid_request', 'properties')
      assertRefused(await patch({ set: wrong }), 400, 'invalid_request', 'properties.set')
      assertRefused(await patch({ set_once: wrong }), 400, 'invalid_request', 'properties.set_once')
      assertRefused(await patch({ increment: wrong }), 400, 'invalid_request', 'properties.increment')
      assertRefused(
        await ws.post('/customers', { distinct_id: 'a', properties: wrong }),
        400,
        'invalid_request',
        'properties',
      )
    }
    assertRefused(await patch({ unset: 'a' }), 400, 'invalid_request', 'properties.unset')
    assertRefused(await patch({ unset: [5] }), 400, 'invalid_request', 'properties.unset.0')
    assertRefused(await patch({ increment: { a: '1' } }), 400, 'invalid_request', 'properties.increment.a')
    assertRefused(await patch({ $set: { a: 1 } }), 400, 'unknown_field', 'properties.$set')
    assertRefused(await ws.patch(`/customers/${id}`, { properties: {}, distinct_id: 'x' }), 400, 'unknown_field')

    let deep: object = {}
    for (let i = 0; i < 33; i++) deep = { deep }
    assertRefused(await patch({ set: deep }), 400, 'invalid_request')
    const wide = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`k${i}`, i]))
    assertRefused(await patch({ set: wide }), 400, 'invalid_request')
    const huge = await ws.patch(`/customers/${id}`, '{"properties":{"set":{"a":1e999}}}')
    assertRefused(huge, 400, 'invalid_request', 'properties.set.a')
  })
})

describe('404', () => {
  test('customers that are not there, or of another workspace or environment', async () => {
    const [ours, theirs] = [await api.workspace(), await api.workspace()]
    const id = await customerIn(theirs)
    for (const missing of ['cus_x', 'x', `cus_${crypto.randomUUID()}`]) {
      assertRefused(await ours.get(`/customers/${missing}`), 404, 'not_found')
    }
    for (const [who, environment] of [
      [ours, 'test'],
      [theirs, 'live'],
    ] as const) {
      assertRefused(await who.get(`/customers/${id}`, { environment }), 404, 'not_found')
      assertRefused(await who.patch(`/customers/${id}`, { properties: {} }, { environment }), 404, 'not_found')
      assertRefused(await who.get('/customers/by_distinct_id/user-1', { environment }), 404, 'not_found')
      assert.deepEqual((await who.get('/customers?distinct_id=user-1', { environment })).body.data, [])
      for (const part of ['balances', 'ledger', 'grants']) {
        assertRefused(await who.get(`/customers/${id}/${part}`, { environment }), 404, 'not_found')
      }
      const grant = { feature: 'pro' }
      assertRefused(await who.post(`/customers/${id}/grants`, grant, { environment }), 404, 'not_found')
      assertRefused(await who.post(`/customers/${id}/products`, { product: 'p' }, { environment }), 404, 'not_found')
    }
  })

  test('the same distinct id in two environments names two customers', async () => {
    const ws = await api.workspace()
    const inTest = await ws.post('/customers', { distinct_id: 'user-1', properties: { where: 'test' } })
    const inLive = await ws.post('/customers', { distinct_id: 'user-1' }, { environment: 'live' })
    assert.equal(inLive.status, 201)
    assert.notEqual(inLive.body.id, inTest.body.id)
    assert.deepEqual(inLive.body.properties, {})
  })
})

describe('410', () => {
  test('the distinct id of a deleted customer makes no new one', async () => {
    const ws = await api.workspace()
    await api.pool.query(
      `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to($3, 'UTF8')))`,
      [ws.scopes.test.scopeId, api.tombstoneKey, 'gone'],
    )
    assertRefused(await ws.post('/customers', { distinct_id: 'gone' }), 410, 'customer_deleted')
    assert.equal((await ws.post('/customers', { distinct_id: 'gone' }, { environment: 'live' })).status, 201)
  })
})
