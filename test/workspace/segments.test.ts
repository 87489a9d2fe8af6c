import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import pino from 'pino'
import { takeStep } from '../../src/customers/segments/steps.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const pro = { property: { key: 'plan', op: 'eq', value: 'pro' } }
const defined = (where: object, name = 'Pro') => ({ name, definition: { version: 1, where } })

/** What the worker does between slices. */
async function settle(scope: Scope): Promise<void> {
  while (
    (await takeStep({ pool: api.pool, consumers: [], log: pino({ level: 'silent' }) }, scope, Date.now())) !== null
  );
}

describe('200 and 201', () => {
  test('a segment is created, filled, read with its members, changed and deleted', async () => {
    const ws = await api.workspace()
    const { body: customer } = await ws.post('/customers', { distinct_id: 'u', properties: { plan: 'pro' } })
    await ws.post('/customers', { distinct_id: 'v' })
    const created = await ws.post('/segments', defined(pro))
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const { id, created_at, updated_at, ...rest } = created.body
    assert.match(id, /^seg_/)
    assert.ok(created_at && updated_at)
    assert.deepEqual(rest, {
      ...{ object: 'segment', project_id: ws.projectId, environment: 'test', ...defined(pro) },
      ...{ version: 1, status: 'backfilling', member_count: 0, used_by: [] },
    })
    assertRefused(await ws.get(`/segments/${id}/explain?customer_id=${customer.id}`), 409, 'conflict')
    await settle(ws.scopes.test)
    const { body: ready } = await ws.get(`/segments/${id}`)
    assert.deepEqual([ready.status, ready.member_count], ['ready', 1])
    const { body: members } = await ws.get(`/segments/${id}/members`)
    const [member] = members.data
    assert.deepEqual(member, {
      ...{ object: 'membership', segment_id: id, segment_name: 'Pro', customer_id: customer.id, since: member.since },
    })
    assert.deepEqual((await ws.get(`/customers/${customer.id}/memberships`)).body.data, members.data)
    const { body: explained } = await ws.get(`/segments/${id}/explain?customer_id=${customer.id}`)
    assert.deepEqual(explained.leaves, [
      { path: 'definition.where.property', holds: true, observed: 'pro', changes_at: null },
    ])
    assert.equal((await ws.patch(`/segments/${id}`, { name: 'Payers' })).body.version, 1)
    const changed = await ws.patch(`/segments/${id}`, { definition: { version: 1, where: { not: pro } } })
    assert.deepEqual([changed.body.version, changed.body.status, changed.body.member_count], [2, 'backfilling', 1])
    await settle(ws.scopes.test)
    assert.notEqual((await ws.get(`/segments/${id}/members`)).body.data[0].customer_id, customer.id)
    assert.deepEqual((await ws.delete(`/segments/${id}`)).body, { object: 'segment', id, deleted: true })
    assert.equal((await ws.get(`/segments/${id}`)).status, 404)
    await settle(ws.scopes.test)
    assert.deepEqual((await ws.get('/segments')).body.data, [])
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update', 'update', 'delete'],
    )
  })

  test('lists go page by page, newest first', async () => {
    const ws = await api.workspace()
    for (let i = 0; i < 5; i++) await ws.post('/customers', { distinct_id: `u${i}`, properties: { plan: 'pro' } })
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift((await ws.post('/segments', defined(pro, name))).body.id)
    await settle(ws.scopes.test)
    const read = async (path: string) => {
      const data: { id: string; customer_id: string }[] = []
      let cursor: string | null = null
      do {
        const page: { body: { data: typeof data; next_cursor: string | null } } = await ws.get(
          `${path}?limit=2${cursor ? `&cursor=${cursor}` : ''}`,
        )
        data.push(...page.body.data)
        cursor = page.body.next_cursor
      } while (cursor !== null)
      return data
    }
    assert.deepEqual(
      (await read('/segments')).map(({ id }) => id),
      ids,
    )
    assert.equal(new Set((await read(`/segments/${ids[0]}/members`)).map((one) => one.customer_id)).size, 5)
  })

  test('a preview counts without saving anything', async () => {
    const ws = await api.workspace()
    const { body: customer } = await ws.post('/customers', { distinct_id: 'u', properties: { plan: 'pro' } })
    await ws.post('/customers', { distinct_id: 'v' })
    const { body } = await ws.post('/segments/preview', { definition: defined(pro).definition })
    const counts = { count: 1, exact: true, customers_seen: 2, customers_total: 2 }
    assert.deepEqual(body, { object: 'segment_preview', ...counts, samples: [customer.id] })
    assert.deepEqual((await ws.get('/segments')).body.data, [])
  })

  test('a segment may ask for another, which then cannot be deleted', async () => {
    const ws = await api.workspace()
    const { body: inner } = await ws.post('/segments', defined(pro))
    const { body: outer } = await ws.post('/segments', defined({ segment: { id: inner.id, is: false } }))
    assert.deepEqual((await ws.get(`/segments/${inner.id}`)).body.used_by, [{ object: 'segment', id: outer.id }])
    assertRefused(await ws.delete(`/segments/${inner.id}`), 409, 'conflict')
    const around = await ws.patch(`/segments/${inner.id}`, defined({ segment: { id: outer.id, is: true } }))
    assertRefused(around, 400, 'invalid_request', 'definition')
    assert.equal(around.body.error.issues[0].path, 'definition.where.segment.id')
    await ws.delete(`/segments/${outer.id}`)
    assert.equal((await ws.delete(`/segments/${inner.id}`)).status, 200)
  })
})

describe('400', () => {
  const performed = (more: object) => ({ performed: { event: 'e', ...more } })
  const nested = (levels: number): object => (levels === 1 ? pro : { not: nested(levels - 1) })
  const wrong: [string, object, string, RegExp][] = [
    ['no condition', {}, 'definition.where', /exactly one of/],
    ['two conditions', { ...pro, not: pro }, 'definition.where', /exactly one of/],
    ['an unknown word', { every: [pro] }, 'definition.where.every', /not known/],
    ['an empty list', { all: [] }, 'definition.where.all', /at least one/],
    ['51 leaves', { any: [{ all: Array(50).fill(pro) }, pro] }, 'definition.where', /51 leaves/],
    ['9 levels', nested(9), 'definition.where.not.not.not.not.not.not.not.not', /8 levels/],
    [
      'an unknown operator',
      { property: { key: 'k', op: 'like', value: 'x' } },
      'definition.where.property.op',
      /one of eq/,
    ],
    [
      'a value of another type',
      { property: { key: 'k', op: 'between', value: [2, 1] } },
      'definition.where.property.value',
      /smaller/,
    ],
    [
      'a value too many',
      { property: { key: 'k', op: 'exists', value: 1 } },
      'definition.where.property.value',
      /left out/,
    ],
    [
      '401 days',
      performed({ within: { value: 401, unit: 'day' } }),
      'definition.where.performed.within',
      /400 days.*EVENT_RETENTION_DAYS/,
    ],
    [
      '500 days ago',
      { last_performed: { event: 'e', ago: { op: 'lte', value: 500, unit: 'day' } } },
      'definition.where.last_performed.ago',
      /400 days/,
    ],
    [
      'half a minute',
      performed({ within: { value: 0.5, unit: 'minute' } }),
      'definition.where.performed.within.value',
      /whole/,
    ],
    [
      'a negative count',
      performed({ count: { op: 'gte', value: -1 } }),
      'definition.where.performed.count.value',
      /whole/,
    ],
    [
      'a directive as property',
      performed({ filters: [{ property: '$set', op: 'exists' }] }),
      'definition.where.performed.filters[0].property',
      /directive/,
    ],
    ['no time', { first_performed: { event: 'e' } }, 'definition.where.first_performed', /before, after, ago/],
    [
      'a sum of text',
      { sum: { event: 'e', property: 'p', op: 'gte', value: '5' } },
      'definition.where.sum.value',
      /number/,
    ],
    [
      'an unknown segment',
      { all: [{ segment: { id: 'seg_x', is: true } }] },
      'definition.where.all[0].segment.id',
      /no segment/,
    ],
    ['an unknown state', { feature: { id: 'pro', is: 'trial' } }, 'definition.where.feature.is', /active/],
  ]
  for (const [what, where, path, words] of wrong) {
    test(`${what} is refused with its place`, async () => {
      const ws = await api.workspace()
      for (const answer of [
        await ws.post('/segments', defined(where)),
        await ws.post('/segments/preview', { definition: { version: 1, where } }),
      ]) {
        assertRefused(answer, 400, 'invalid_request', 'definition')
        const [issue] = answer.body.error.issues
        assert.equal(issue.path, path)
        assert.match(issue.message, words)
      }
    })
  }

  test('what is at the limit is taken', async () => {
    const ws = await api.workspace()
    for (const where of [nested(8), { all: Array(50).fill(pro) }, performed({ within: { value: 400, unit: 'day' } })]) {
      assert.equal((await ws.post('/segments', defined(where))).status, 201)
    }
  })
})

describe('409', () => {
  test('a lane has 200 segments and not one more', async () => {
    const ws = await api.workspace()
    await ws.post('/segments', defined(pro))
    await api.pool.query(
      `insert into segment (scope_id, public_id, name, version, definition, status)
       select scope_id, public_id || n, name, version, definition, status
       from segment, generate_series(1, 198) n
       where scope_id = $1`,
      [ws.scopes.test.scopeId],
    )
    assert.equal((await ws.post('/segments', defined(pro))).status, 201)
    assertRefused(await ws.post('/segments', defined(pro)), 409, 'conflict')
    assert.equal((await ws.post('/segments', defined(pro), { environment: 'live' })).status, 201)
  })
})
