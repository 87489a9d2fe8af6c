import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { distinctIdsMax } from '../../src/kernel/limits.ts'
import { findings } from '../ledger/world.ts'
import { type Answer, type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

async function customerIn(ws: Workspace, distinct_id: string, properties: object = {}): Promise<string> {
  return (await ws.post('/customers', { distinct_id, properties })).body.id
}

async function namedBy(ws: Workspace, distinctId: string): Promise<Body> {
  return (await ws.get(`/customers/by_distinct_id/${encodeURIComponent(distinctId)}`)).body
}

const idsOf = (customer: Body): string[] => customer.distinct_ids.map((each: Body) => each.distinct_id)

const merge = (ws: Workspace, id: string, source: string, force?: boolean) =>
  ws.post(`/customers/${id}/merge`, { source_distinct_id: source, ...(force === undefined ? {} : { force }) })

const split = (ws: Workspace, id: string, mergeId: string) => ws.post(`/customers/${id}/merges/${mergeId}/split`)

async function mergesOf(ws: Workspace, id: string): Promise<Body[]> {
  return (await ws.get(`/customers/${id}/merges`)).body.data
}

/** As an identified customer: it was the target of a merge. */
async function identified(ws: Workspace, distinctId: string, properties: object = {}): Promise<string> {
  const id = await customerIn(ws, distinctId, properties)
  await ws.post(`/customers/${id}/merge`, { source_distinct_id: `${distinctId}-device` })
  return id
}

async function feature(ws: Workspace, key = 'exports'): Promise<void> {
  assert.equal((await ws.post('/features', { key, name: key, type: 'metered' })).status, 201)
}

async function grant(ws: Workspace, id: string, allowance: number, terms: object = {}): Promise<string> {
  const { status, body } = await ws.post(`/customers/${id}/grants`, { feature: 'exports', allowance, ...terms })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

async function balanceOf(ws: Workspace, id: string): Promise<[balance: number, used: number]> {
  const { data } = (await ws.get(`/customers/${id}/balances`)).body
  const shared = data.find((each: Body) => each.feature === 'exports' && each.entity_id === null)
  return [shared?.balance ?? 0, shared?.used_total ?? 0]
}

function assertConflict(answer: Answer, reason: string): void {
  assertRefused(answer, 409, 'identity_conflict')
  assert.equal(answer.body.error.details.reason, reason)
}

describe('POST /customers/{id}/merge', () => {
  test('200: both exist: ids, properties and history go to this customer, and the other id leads to it', async () => {
    const ws = await api.workspace()
    const source = await customerIn(ws, 'anon', { a: 1, b: 1 })
    const target = await customerIn(ws, 'ada', { b: 2 })
    const { status, body } = await merge(ws, target, 'anon')
    assert.equal(status, 200, JSON.stringify(body))
    const { id, created_at, position, ...rest } = body
    assert.match(id, /^merge_[0-9]+$/)
    assert.ok(created_at && position > 0)
    assert.deepEqual(rest, {
      ...{ object: 'merge', customer_id: target, source_customer_id: source },
      ...{ source_distinct_id: 'anon', target_distinct_id: 'ada', event_uuid: null, status: 'merged', reason: null },
    })
    const survivor = (await ws.get(`/customers/${source}`)).body
    assert.deepEqual([survivor.id, survivor.properties, survivor.identified], [target, { a: 1, b: 2 }, true])
    assert.deepEqual(idsOf(survivor), ['anon', 'ada'])
    assert.deepEqual(await mergesOf(ws, target), [body])
    assert.deepEqual((await auditOf(api.pool, target)).at(-1), { action: 'merge', object: 'customer' })
  })

  test('200: an id that names nobody is added', async () => {
    const ws = await api.workspace()
    const target = await customerIn(ws, 'ada')
    const { status, body } = await merge(ws, target, 'new')
    assert.deepEqual([status, body.source_customer_id], [200, null])
    assert.deepEqual(idsOf(await namedBy(ws, 'new')), ['ada', 'new'])
  })

  test('200: the same again is the same merge, without an audit row', async () => {
    const ws = await api.workspace()
    await customerIn(ws, 'anon')
    const target = await customerIn(ws, 'ada')
    const first = await merge(ws, target, 'anon')
    assert.deepEqual((await merge(ws, target, 'anon')).body, first.body)
    assert.deepEqual((await merge(ws, target, 'anon', true)).body, first.body)
    const actions = (await auditOf(api.pool, target)).map(({ action }) => action)
    assert.deepEqual(actions, ['create', 'merge'])
  })

  test('200: force joins an identified customer with all its ids', async () => {
    const ws = await api.workspace()
    const source = await identified(ws, 'old', { a: 1 })
    const target = await identified(ws, 'ada')
    assertConflict(await merge(ws, target, 'old'), 'source_identified')
    assert.equal((await merge(ws, target, 'old', true)).body.source_customer_id, source)
    assert.deepEqual(idsOf(await namedBy(ws, 'old-device')).toSorted(), ['ada', 'ada-device', 'old', 'old-device'])
  })

  const refusals: [string, string, (ws: Workspace, target: string) => Promise<Answer>][] = [
    ['same_id', 'its own id', (ws, target) => merge(ws, target, 'ada')],
    ['illegal_id', 'a placeholder', (ws, target) => merge(ws, target, ' "Guest" ')],
    ['illegal_id', 'no text at all', (ws, target) => merge(ws, target, '')],
    ['illegal_id', 'an id that is too long', (ws, target) => merge(ws, target, 'x'.repeat(257))],
    ['illegal_id', 'a placeholder, with force', (ws, target) => merge(ws, target, 'null', true)],
    [
      'source_deleted',
      'the id of a deleted customer',
      async (ws, target) => {
        await ws.delete(`/customers/${await customerIn(ws, 'gone')}`)
        return merge(ws, target, 'gone')
      },
    ],
    [
      'source_deleted',
      'the same, with force',
      async (ws, target) => {
        await ws.delete(`/customers/${await customerIn(ws, 'gone')}`)
        return merge(ws, target, 'gone', true)
      },
    ],
    ['source_missing', 'an unknown id, with force', (ws, target) => merge(ws, target, 'nobody', true)],
    [
      'source_identified',
      'an identified customer',
      async (ws, target) => {
        await identified(ws, 'other')
        return merge(ws, target, 'other')
      },
    ],
    [
      'id_cap',
      'one id too many',
      async (ws, target) => {
        await manyIds(ws, target, distinctIdsMax)
        return merge(ws, target, 'one-more')
      },
    ],
    [
      'id_cap',
      'one id too many, with force',
      async (ws, target) => {
        await manyIds(ws, target, distinctIdsMax)
        await identified(ws, 'other')
        return merge(ws, target, 'other', true)
      },
    ],
  ]
  for (const [reason, title, ask] of refusals) {
    test(`409 ${reason}: ${title}; nothing changes`, async () => {
      const ws = await api.workspace()
      const target = await customerIn(ws, 'ada')
      assertConflict(await ask(ws, target), reason)
      const { identified: isIdentified, properties } = (await ws.get(`/customers/${target}`)).body
      assert.deepEqual([isIdentified, properties], [false, {}])
      assert.deepEqual(await mergesOf(ws, target), [])
      assert.deepEqual(
        (await auditOf(api.pool, target)).map(({ action }) => action),
        ['create'],
      )
    })
  }

  test('200: up to 1,000 ids', async () => {
    const ws = await api.workspace()
    const target = await customerIn(ws, 'ada')
    await manyIds(ws, target, distinctIdsMax - 1)
    assert.equal((await merge(ws, target, 'last')).status, 200)
    assert.equal(idsOf(await namedBy(ws, 'last')).length, distinctIdsMax)
  })

  test('404 and 400: who is not there, of another environment, and what is no id', async () => {
    const [ws, other] = [await api.workspace(), await api.workspace()]
    const target = await customerIn(ws, 'ada')
    assertRefused(await merge(ws, `cus_${crypto.randomUUID()}`, 'anon'), 404, 'not_found')
    assertRefused(await merge(other, target, 'anon'), 404, 'not_found')
    const live = await ws.post(`/customers/${target}/merge`, { source_distinct_id: 'a' }, { environment: 'live' })
    assertRefused(live, 404, 'not_found')
    for (const body of [{}, { source_distinct_id: 5 }, { source_distinct_id: 'a', force: 'yes' }]) {
      assertRefused(await ws.post(`/customers/${target}/merge`, body), 400, 'invalid_request')
    }
    assertRefused(await merge(ws, target, 'x'.repeat(1025)), 400, 'invalid_request', 'source_distinct_id')
    assertRefused(
      await ws.post(`/customers/${target}/merge`, { source_distinct_id: 'a', target: 'b' }),
      400,
      'unknown_field',
    )
    assertRefused(await ws.get(`/customers/cus_${crypto.randomUUID()}/merges`), 404, 'not_found')
    assertRefused(await ws.get(`/customers/${target}/merges?cursor=x`), 400, 'invalid_request', 'cursor')
  })

  test('units are conserved: grants and counters of both are the survivor’s', async () => {
    const ws = await api.workspace()
    await feature(ws)
    const [source, target] = [await customerIn(ws, 'anon'), await customerIn(ws, 'ada')]
    await grant(ws, source, 10)
    await grant(ws, target, 5)
    await api.spend(ws.scopes.test, { distinctId: 'anon', feature: 'exports', quantity: 3 })
    await merge(ws, target, 'anon')
    assert.deepEqual(await balanceOf(ws, target), [12, 3])
    assert.deepEqual(await findings(api.pool, ws.scopes.test), [])
  })
})

/** Gives the customer distinct ids until it has so many; `merge` one by one would take a while. */
async function manyIds(ws: Workspace, target: string, count: number): Promise<void> {
  const id = target.slice('cus_'.length)
  const { scopeId } = ws.scopes.test
  await api.pool.query(
    `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)
     select $1, 'extra-' || n, $2, 0, now() from generate_series(2, $3::int) as n on conflict do nothing`,
    [scopeId, id, count],
  )
  await api.pool.query('update customer set alias_count = $3 where scope_id = $1 and id = $2', [scopeId, id, count])
}

describe('GET /customers/{id}/merges', () => {
  test('newest first, in pages, with those of customers that went in before', async () => {
    const ws = await api.workspace()
    for (const name of ['a', 'b', 'c']) await customerIn(ws, name)
    const [b, c] = [(await namedBy(ws, 'b')).id, (await namedBy(ws, 'c')).id]
    await merge(ws, b, 'a')
    await merge(ws, c, 'b', true)
    await merge(ws, c, 'new')
    const all = await mergesOf(ws, c)
    assert.deepEqual(
      all.map((each) => each.source_distinct_id),
      ['new', 'b', 'a'],
    )
    const found: Body[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: Answer = await ws.get(`/customers/${c}/merges?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
      found.push(...body.data)
      cursor = body.next_cursor
    }
    assert.deepEqual(found, all)
  })
})

describe('POST /customers/{id}/merges/{merge_id}/split', () => {
  test('a merge that is taken back changed nothing', async () => {
    const ws = await api.workspace()
    await feature(ws)
    const source = await customerIn(ws, 'anon', { a: 1, b: 1, gone: 'x' })
    const target = await identified(ws, 'ada', { b: 2, c: 3 })
    await grant(ws, source, 10)
    await grant(ws, target, 5, { interval: 'month', rollover: { max: 5, periods: 1 } })
    await api.spend(ws.scopes.test, { distinctId: 'anon', feature: 'exports', quantity: 3 })
    await api.spend(ws.scopes.test, { distinctId: 'ada', feature: 'exports', quantity: 1 })
    const state = async () => {
      const parts = []
      for (const id of [source, target]) {
        const { updated_at: _, ...customer } = (await ws.get(`/customers/${id}`)).body
        const grants = (await ws.get(`/customers/${id}/grants`)).body.data
        const balances = (await ws.get(`/customers/${id}/balances`)).body.data
        parts.push({ customer, grants, balances })
      }
      return parts
    }
    const before = await state()
    const merged = (await merge(ws, target, 'anon')).body
    const { status, body } = await split(ws, target, merged.id)
    assert.deepEqual([status, body], [200, { ...merged, status: 'split' }])
    assert.deepEqual(await state(), before)
    assert.deepEqual(await findings(api.pool, ws.scopes.test), [])
    assert.deepEqual((await auditOf(api.pool, target)).at(-1), { action: 'split', object: 'customer' })

    // Again it is the same answer; and both can merge again, and split again.
    assert.deepEqual((await split(ws, target, merged.id)).body, body)
    const again = (await merge(ws, target, 'anon')).body
    assert.notEqual(again.id, merged.id)
    assert.deepEqual(await balanceOf(ws, target), [11, 4])
    await split(ws, source, again.id)
    assert.deepEqual(await state(), before)
    assert.deepEqual(await findings(api.pool, ws.scopes.test), [])
  })

  test('what was written since stays with the target; what the merge copied and nobody wrote leaves', async () => {
    const ws = await api.workspace()
    const source = await customerIn(ws, 'anon', { kept: 1, changed: 1, removed: 1, counted: 1 })
    const target = await customerIn(ws, 'ada', { own: 1 })
    const { id } = (await merge(ws, target, 'anon')).body
    await ws.patch(`/customers/${target}`, {
      properties: { set: { changed: 2, later: 1 }, unset: ['removed'], increment: { counted: 4 } },
    })
    await split(ws, target, id)
    assert.deepEqual((await ws.get(`/customers/${target}`)).body.properties, {
      ...{ own: 1, changed: 2, later: 1, counted: 5 },
    })
    assert.deepEqual((await ws.get(`/customers/${source}`)).body.properties, {
      ...{ kept: 1, changed: 1, removed: 1, counted: 1 },
    })
  })

  test('grants go back with what is unspent of them; what was spent or granted since stays the target’s', async () => {
    const ws = await api.workspace()
    await feature(ws)
    const [source, target] = [await customerIn(ws, 'anon'), await customerIn(ws, 'ada')]
    await grant(ws, source, 10)
    const merged = (await merge(ws, target, 'anon')).body
    await api.spend(ws.scopes.test, { distinctId: 'ada', feature: 'exports', quantity: 4 })
    await grant(ws, target, 100)
    await split(ws, target, merged.id)
    assert.deepEqual(await balanceOf(ws, source), [6, 0])
    assert.deepEqual(await balanceOf(ws, target), [100, 4])
    await api.spend(ws.scopes.test, { distinctId: 'anon', feature: 'exports', quantity: 6 })
    await api.spend(ws.scopes.test, { distinctId: 'ada', feature: 'exports', quantity: 7 })
    assert.deepEqual(await balanceOf(ws, source), [0, 6])
    assert.deepEqual(await balanceOf(ws, target), [93, 11])
    assert.deepEqual(await findings(api.pool, ws.scopes.test), [])
  })

  test('the newest first', async () => {
    const ws = await api.workspace()
    const target = await customerIn(ws, 'ada')
    const first = (await merge(ws, target, 'one')).body
    const second = (await merge(ws, target, 'two')).body
    const early = await split(ws, target, first.id)
    assertRefused(early, 409, 'conflict')
    assert.equal(early.body.error.details.merge_id, second.id)
    assert.equal((await split(ws, target, second.id)).status, 200)
    assert.equal((await split(ws, target, first.id)).status, 200)
    assert.deepEqual(idsOf(await namedBy(ws, 'ada')), ['ada'])
    assert.deepEqual([(await namedBy(ws, 'one')).properties, (await namedBy(ws, 'two')).properties], [{}, {}])
  })

  test('an id that was added and taken away is a customer of its own, the same one after every split', async () => {
    const ws = await api.workspace()
    await customerIn(ws, 'anon', { a: 1 })
    const target = await customerIn(ws, 'ada')
    const added = (await merge(ws, target, 'extra')).body
    await split(ws, target, added.id)
    const first = (await namedBy(ws, 'extra')).id
    const again = (await merge(ws, target, 'extra')).body
    assert.equal(again.source_customer_id, first)
    await split(ws, target, again.id)
    assert.equal((await namedBy(ws, 'extra')).id, first)
  })

  test('404 and 409: unknown merges, refusals, and those of others', async () => {
    const ws = await api.workspace()
    const [target, other] = [await customerIn(ws, 'ada'), await customerIn(ws, 'other')]
    const { id } = (await merge(ws, target, 'anon')).body
    for (const missing of ['merge_0', 'merge_999999999', 'x', 'merge_', 'merge_-1']) {
      assertRefused(await split(ws, target, missing), 404, 'not_found')
    }
    assertRefused(await split(ws, other, id), 404, 'not_found')
    assertRefused(await ws.post(`/customers/${target}/merges/${id}/split`, { force: true }), 400, 'unknown_field')
  })
})
