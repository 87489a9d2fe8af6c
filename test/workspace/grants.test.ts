import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

interface World {
  ws: Workspace
  customer: string
  grant: (body: unknown) => ReturnType<Workspace['post']>
}

/** A boolean, a metered and a credit Feature (scale 2), and a customer. */
async function world(): Promise<World> {
  const ws = await api.workspace()
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  await ws.post('/features', { key: 'exports', name: 'Exports', type: 'metered' })
  const credit_costs = [{ feature: 'exports', cost: '0.25' }]
  await ws.post('/features', { key: 'credits', name: 'Credits', type: 'creditSystem', credit_costs })
  const customer: string = (await ws.post('/customers', { distinct_id: 'user-1' })).body.id
  return { ws, customer, grant: (body) => ws.post(`/customers/${customer}/grants`, body) }
}

async function databaseNow(): Promise<number> {
  const [row] = await api.pool.query<{ now: bigint }>(
    'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now',
  )
  return Number(row?.now)
}

describe('POST /customers/{id}/grants, 201', () => {
  test('a metered grant begins now, with a ledger entry and a raised account version', async () => {
    const { ws, customer, grant } = await world()
    const before = await databaseNow()
    const { status, body } = await grant({ feature: 'exports', allowance: 100, note: 'Sorry for the outage' })
    const afterwards = await databaseNow()
    assert.equal(status, 201, JSON.stringify(body))
    const { id, created_at, starts_at, ...rest } = body
    assert.match(id, /^grant_[0-9]+$/)
    assert.equal(starts_at, created_at)
    assert.ok(Date.parse(created_at) >= before && Date.parse(created_at) <= afterwards)
    assert.deepEqual(rest, {
      object: 'grant',
      customer_id: customer,
      feature: 'exports',
      entity_id: null,
      allowance: 100,
      unlimited: false,
      interval: null,
      rollover: null,
      remaining: 100,
      expires_at: null,
      revoked_at: null,
      state: 'live',
      source: { type: 'manual', id: null },
      note: 'Sorry for the outage',
      uncollected: 0,
    })
    assert.deepEqual((await ws.get(`/customers/${customer}/grants`)).body.data, [body])
    const [account] = await api.pool.query(
      `select a.version, a.last_at_ms, e.version as entry_version, e.line, e.kind, e.delta, e.remaining_after, e.at_ms
       from account a
       join entry e on e.account_id = a.id
       where a.scope_id = $1`,
      [ws.scopes.test.scopeId],
    )
    const at = BigInt(Date.parse(created_at))
    assert.deepEqual(account, {
      version: 1n,
      last_at_ms: at,
      entry_version: 1n,
      line: 0,
      kind: 'grant',
      delta: 100n,
      remaining_after: 100n,
      at_ms: at,
    })
    assert.deepEqual(await auditOf(api.pool, id), [{ action: 'create', object: 'grant' }])
  })

  test('each kind of Feature with the terms it takes', async () => {
    const { grant } = await world()
    const shown = async (body: object) => {
      const { feature, allowance, unlimited, interval, remaining, rollover, entity_id } = (await grant(body)).body
      return { feature, allowance, unlimited, interval, remaining, rollover, entity_id }
    }
    const none = { allowance: null, unlimited: false, interval: null, remaining: null, rollover: null, entity_id: null }
    assert.deepEqual(await shown({ feature: 'pro' }), { ...none, feature: 'pro' })
    assert.deepEqual(await shown({ feature: 'pro', entity_id: 'seat-1' }), {
      ...none,
      feature: 'pro',
      entity_id: 'seat-1',
    })
    assert.deepEqual(await shown({ feature: 'exports', unlimited: true }), {
      ...none,
      feature: 'exports',
      unlimited: true,
    })
    assert.deepEqual(await shown({ feature: 'exports', allowance: 0 }), {
      ...none,
      feature: 'exports',
      allowance: 0,
      remaining: 0,
    })
    const monthly = { feature: 'credits', allowance: 7, interval: 'month', rollover: { max: 3, periods: null } }
    assert.deepEqual(await shown(monthly), { ...none, ...monthly, remaining: 7 })
  })

  test('the largest allowance is kept to the unit, also as credits', async () => {
    const { grant } = await world()
    const most = Number.MAX_SAFE_INTEGER
    const metered = await grant({ feature: 'exports', allowance: most })
    assert.deepEqual([metered.body.allowance, metered.body.remaining], [most, most])
    const credits = await grant({ feature: 'credits', allowance: most })
    assert.deepEqual([credits.status, credits.body.allowance], [201, most])
    const [row] = await api.pool.query<{ amount: bigint }>('select amount from ledger_grant where id = $1', [
      credits.body.id.slice('grant_'.length),
    ])
    assert.equal(row?.amount, BigInt(most) * 100n)
  })

  test('states follow the instants: scheduled, live, drained, expired', async () => {
    const { ws, customer, grant } = await world()
    const now = await databaseNow()
    const at = (ms: number) => new Date(now + ms).toISOString()
    const hour = 3_600_000
    const state = async (body: object) => (await grant({ feature: 'exports', ...body })).body.state
    assert.equal(await state({ allowance: 1, starts_at: at(hour) }), 'scheduled')
    assert.equal(await state({ allowance: 1, starts_at: at(-hour), expires_at: at(hour) }), 'live')
    assert.equal(await state({ allowance: 0 }), 'drained')
    assert.equal(await state({ allowance: 1, starts_at: at(-2 * hour), expires_at: at(-hour) }), 'expired')
    assert.deepEqual(
      (await ws.get(`/customers/${customer}/grants`)).body.data.map(({ state }: Body) => state),
      ['expired', 'drained', 'live', 'scheduled'],
    )
  })

  test('instants are kept to the millisecond, whatever the offset they are written in', async () => {
    const { grant } = await world()
    const { body } = await grant({
      feature: 'pro',
      starts_at: '2026-01-31T01:02:03.004+01:00',
      expires_at: '9999-12-31T23:59:59.999Z',
    })
    assert.deepEqual([body.starts_at, body.expires_at], ['2026-01-31T00:02:03.004Z', '9999-12-31T23:59:59.999Z'])
  })

  test('a recurring grant that began long ago shows what is left of the current period', async () => {
    const { ws, customer, grant } = await world()
    const { body } = await grant({
      feature: 'exports',
      allowance: 5,
      interval: 'day',
      starts_at: '2026-01-01T00:00:00.000Z',
    })
    await api.pool.query('update ledger_grant set remaining = 0 where id = $1', [body.id.slice('grant_'.length)])
    const [listed] = (await ws.get(`/customers/${customer}/grants`)).body.data
    assert.deepEqual([listed.remaining, listed.state], [5, 'live'])
  })

  test('grants at the same time all stand in the ledger, one version each', async () => {
    const { ws, grant } = await world()
    const answers = await Promise.all(Array.from({ length: 12 }, () => grant({ feature: 'exports', allowance: 1 })))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    const rows = await api.pool.query<{ version: bigint; account_version: bigint; grants: bigint }>(
      `select e.version, a.version as account_version, count(*) over () as grants
       from account a
       join entry e on e.account_id = a.id
       where a.scope_id = $1
       order by e.version`,
      [ws.scopes.test.scopeId],
    )
    assert.deepEqual(
      rows.map((row) => row.version),
      Array.from({ length: 12 }, (_, i) => BigInt(i + 1)),
    )
    assert.equal(rows[0]?.account_version, 12n)
  })

  test('a replay with an Idempotency-Key grants nothing more', async () => {
    const { ws, customer } = await world()
    const send = () =>
      ws.post(`/customers/${customer}/grants`, { feature: 'exports', allowance: 9 }, { idempotencyKey: 'once' })
    assert.deepEqual((await send()).body, (await send()).body)
    assert.equal((await ws.get(`/customers/${customer}/grants`)).body.data.length, 1)
  })

  test('a grant to a merged customer goes to the one it became', async () => {
    const { ws, customer, grant } = await world()
    const survivor: string = (await ws.post('/customers', { distinct_id: 'other' })).body.id
    await api.pool.query('update customer set merged_into = $2 where id = $1', [customer.slice(4), survivor.slice(4)])
    assert.equal((await grant({ feature: 'pro' })).body.customer_id, survivor)
    assert.equal((await ws.get(`/customers/${survivor}/grants`)).body.data.length, 1)
  })
})

describe('POST /customers/{id}/grants, refused', () => {
  test('terms that do not fit the Feature', async () => {
    const { grant } = await world()
    const wrong: [object, string][] = [
      [{ feature: 'pro', allowance: 1 }, 'allowance'],
      [{ feature: 'pro', interval: 'day' }, 'interval'],
      [{ feature: 'exports' }, 'allowance'],
      [{ feature: 'exports', allowance: 5, unlimited: true }, 'allowance'],
      [{ feature: 'exports', allowance: 5, rollover: {} }, 'rollover'],
      [
        { feature: 'exports', allowance: 5, starts_at: '2027-01-01T00:00:00Z', expires_at: '2027-01-01T00:00:00Z' },
        'expires_at',
      ],
      [{ feature: 'exports', allowance: 5, starts_at: '1969-12-31T23:59:59Z' }, 'starts_at'],
    ]
    for (const [body, field] of wrong) assertRefused(await grant(body), 400, 'invalid_request', field)
  })

  test('an allowance that could not be kept exactly', async () => {
    const { ws, customer } = await world()
    const credit_costs = [{ feature: 'exports', cost: '0.000001' }]
    await ws.post('/features', { key: 'fine', name: 'Fine', type: 'creditSystem', credit_costs })
    const grant = (allowance: number) => ws.post(`/customers/${customer}/grants`, { feature: 'fine', allowance })
    assert.equal((await grant(9_223_372_036_854)).status, 201)
    assertRefused(await grant(9_223_372_036_855), 400, 'invalid_request', 'allowance')
  })

  test('every wrong field', async () => {
    const { grant } = await world()
    const wrong: [string, unknown[]][] = [
      ['feature', ['', ' pro', 5, null, undefined, 'k'.repeat(257)]],
      ['allowance', [-1, 1.5, '5', 2 ** 53, true]],
      ['unlimited', ['yes', 1, null]],
      ['interval', ['minute', 'fortnight', 5]],
      ['starts_at', ['yesterday', '2026-01-01', '2026-01-01T00:00:00', 5, '2026-13-01T00:00:00Z']],
      ['expires_at', ['tomorrow', 5, '2026-02-30T00:00:00Z']],
      ['entity_id', ['', ' a', 5, 'é'.repeat(129), 'a\0']],
      ['note', [5, 'n'.repeat(1001), '\ud800']],
      ['rollover', ['all', 5]],
    ]
    for (const [field, values] of wrong) {
      for (const value of values) {
        const answer = await grant({ feature: 'exports', allowance: 5, [field]: value })
        assert.equal(answer.status, 400, `${field} ${JSON.stringify(value)} ${JSON.stringify(answer.body)}`)
        assert.equal(answer.body.error.param, field, JSON.stringify(answer.body))
      }
    }
    assertRefused(await grant({ feature: 'pro', amount: 5 }), 400, 'unknown_field', 'amount')
  })

  test('Features that are not published here', async () => {
    const { ws, grant } = await world()
    await ws.post('/features', { key: 'elsewhere', name: 'E', type: 'boolean' }, { environment: 'live' })
    await ws.post('/features/pro/archive')
    for (const feature of ['none', 'elsewhere', 'pro']) {
      assertRefused(await grant({ feature }), 404, 'feature_not_found', 'feature')
    }
  })

  test('a refused grant leaves no account, no entry and no audit row', async () => {
    const { ws, grant } = await world()
    await grant({ feature: 'exports', allowance: 5, expires_at: '2020-01-01T00:00:00Z' })
    const [counts] = await api.pool.query(
      `select (select count(*) from account where scope_id = $1) as accounts,
         (select count(*) from entry where scope_id = $1) as entries,
         (select count(*) from audit_log where workspace_id = $2 and object = 'grant') as audits`,
      [ws.scopes.test.scopeId, ws.id],
    )
    assert.deepEqual(counts, { accounts: 0n, entries: 0n, audits: 0n })
  })
})
