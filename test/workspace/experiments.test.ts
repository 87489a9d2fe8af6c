import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { dayMs, experimentMetricsMax, experimentVariantsMax } from '../../src/kernel/limits.ts'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const variants = [
  { id: 'a', weight: 0.5, is_holdout: false },
  { id: 'b', weight: 0.5, is_holdout: false },
]
const held = [
  { id: 'in', weight: 0.9, is_holdout: false },
  { id: 'out', weight: 0.1, is_holdout: true },
]
const asked = { key: 'price', variants }

async function made(ws: Workspace, more: object = {}): Promise<Body> {
  const { status, body } = await ws.post('/experiments', { ...asked, ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

const verb = (ws: Workspace, id: string, name: string, body: object = {}) => ws.post(`/experiments/${id}/${name}`, body)

async function running(ws: Workspace, more: object = {}): Promise<Body> {
  const { id } = await made(ws, more)
  const { status, body } = await verb(ws, id, 'start')
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

describe('200 and 201', () => {
  test('an experiment is a draft with what was left out filled in', async () => {
    const ws = await api.workspace()
    const { id, created_at, ...rest } = await made(ws)
    assert.match(id, /^xp_/)
    assert.ok(created_at)
    assert.deepEqual(rest, {
      ...{
        object: 'experiment',
        project_id: ws.projectId,
        environment: 'test',
        key: 'price',
        name: 'price',
        kind: 'ab',
      },
      ...{ status: 'draft', phase: 1, seed: `${id}:1`, variants, coverage: 1, audience_segment_id: null },
      ...{ namespace: null, metrics: [], winner_variant_id: null, started_at: null },
    })
    assert.deepEqual((await ws.get(`/experiments/${id}`)).body, (await ws.get('/experiments/price')).body)
  })

  test('it runs, rests, goes on, begins a phase, is concluded and archived, each in the audit log', async () => {
    const ws = await api.workspace()
    const { id } = await made(ws)
    const began = (await verb(ws, id, 'start')).body
    assert.equal(began.status, 'running')
    assert.ok(began.started_at)
    assert.equal((await verb(ws, id, 'pause')).body.status, 'paused')
    assert.equal((await verb(ws, id, 'resume')).body.status, 'running')
    const next = (await verb(ws, id, 'new_phase', { variants: held })).body
    assert.deepEqual([next.phase, next.seed, next.status, next.variants], [2, `${id}:2`, 'running', held])
    const over = (await verb(ws, id, 'conclude', { winner_variant_id: 'in' })).body
    assert.deepEqual([over.status, over.winner_variant_id], ['concluded', 'in'])
    assert.equal((await verb(ws, id, 'archive')).body.status, 'archived')
    assert.deepEqual((await ws.get('/experiments')).body.data, [])
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'start', 'pause', 'resume', 'new_phase', 'conclude', 'archive'],
    )
  })

  test('a draft may change whole; once it runs its name, its weights and a higher coverage', async () => {
    const ws = await api.workspace()
    const { id } = await made(ws)
    const metrics = [{ event_name: 'paid', window_ms: dayMs }]
    const whole = { variants: held, coverage: 0.1, seed: 's', namespace: { id: 'n', start: 0, end: 0.5 }, metrics }
    const changed = await ws.patch(`/experiments/${id}`, { name: 'Prices', ...whole })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    const { variants: v, coverage, seed, namespace, metrics: m, name } = changed.body
    assert.deepEqual({ variants: v, coverage, seed, namespace, metrics: m, name }, { name: 'Prices', ...whole })
    await verb(ws, id, 'start')
    const weights = held.map((variant) => ({ ...variant, weight: 0.5 }))
    const later = await ws.patch(`/experiments/${id}`, { name: 'Still', coverage: 0.2, variants: weights })
    assert.deepEqual(
      [later.status, later.body.name, later.body.coverage, later.body.variants],
      [200, 'Still', 0.2, weights],
    )
  })

  test('lists go page by page, newest first, and each environment has its own', async () => {
    const ws = await api.workspace()
    const ids: string[] = []
    for (const key of ['one', 'two', 'three']) ids.unshift((await made(ws, { key })).id)
    const first = (await ws.get('/experiments?limit=2')).body
    const second = (await ws.get(`/experiments?limit=2&cursor=${first.next_cursor}`)).body
    assert.deepEqual(
      [...first.data, ...second.data].map(({ id }) => id),
      ids,
    )
    assert.deepEqual((await ws.get('/experiments', { environment: 'live' })).body.data, [])
    assertRefused(await ws.get(`/experiments/${ids[0]}`, { environment: 'live' }), 404, 'not_found')
  })

  test('two run in separate parts of one namespace', async () => {
    const ws = await api.workspace()
    await running(ws, { key: 'low', namespace: { id: 'n', start: 0, end: 0.5 } })
    await running(ws, { key: 'high', namespace: { id: 'n', start: 0.5, end: 1 } })
    await running(ws, { key: 'other', namespace: { id: 'm', start: 0, end: 1 } })
  })

  test('results of an experiment that nobody saw say nothing', async () => {
    const ws = await api.workspace()
    const { id } = await running(ws, { metrics: [{ event_name: 'paid', window_ms: dayMs }] })
    const { status, body } = await ws.get(`/experiments/${id}/results`)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.phase, body.srm.status, body.verdict], [1, 'too_few', null])
    assert.deepEqual(body.excluded, { fallback: 0, mismatch: 0, crossover: 0 })
    assert.deepEqual(body.variants[1], {
      ...{ id: 'b', units: 0, conversions: 0, rate: null, diff: null, se: null, z: null, p: null, interval: null },
      ...{ sequential_interval: null, chance_to_win: null },
    })
    assert.deepEqual((await ws.get(`/experiments/${id}/assignments`)).body.data, [])
  })
})

describe('400', () => {
  const wrong: [what: string, terms: object][] = [
    ['one variant', { variants: [{ id: 'a', weight: 1, is_holdout: false }] }],
    ['a variant twice', { variants: [variants[0], variants[0]] }],
    ['weights that do not add up', { variants: variants.map((one) => ({ ...one, weight: 0.49 })) }],
    [
      'a weight below nothing',
      {
        variants: [
          { ...variants[0], weight: 1.1 },
          { ...variants[1], weight: -0.1 },
        ],
      },
    ],
    ['a coverage above all', { coverage: 1.01 }],
    ['a namespace that ends where it begins', { namespace: { id: 'n', start: 0.5, end: 0.5 } }],
    ['a namespace that ends beyond', { namespace: { id: 'n', start: 0.5, end: 1.1 } }],
    ['one metric twice', { metrics: [1, 2].map((window_ms) => ({ event_name: 'paid', window_ms })) }],
    ['a window above 90 days', { metrics: [{ event_name: 'paid', window_ms: 90 * dayMs + 1 }] }],
    ['a holdout that holds nobody out', { kind: 'holdout' }],
    ['an unknown audience', { audience_segment_id: 'seg_none' }],
    ['a variant that no step could name', { variants: [{ ...variants[0], id: 'a b' }, variants[1]] }],
    ['a field nobody knows', { traffic: 1 }],
  ]
  for (const [what, terms] of wrong) {
    test(what, async () => {
      const ws = await api.workspace()
      assert.equal((await ws.post('/experiments', { ...asked, ...terms })).status, 400)
    })
  }

  test('weights may miss their sum by a millionth, and no more', async () => {
    const ws = await api.workspace()
    const with_ = (weight: number) => ({ variants: [{ ...variants[0], weight }, variants[1]] })
    await made(ws, with_(0.5000009))
    assertRefused(await ws.post('/experiments', { key: 'k', ...with_(0.5000011) }), 400, 'invalid_request')
  })

  test('as many variants and metrics as the limits say, and no more', async () => {
    const ws = await api.workspace()
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ id: `v${i}`, weight: 1 / count, is_holdout: false }))
    const metrics = (count: number) => Array.from({ length: count }, (_, i) => ({ event_name: `e${i}`, window_ms: 1 }))
    await made(ws, { variants: many(experimentVariantsMax), metrics: metrics(experimentMetricsMax) })
    const over = [{ variants: many(experimentVariantsMax + 1) }, { metrics: metrics(experimentMetricsMax + 1) }]
    for (const terms of over) {
      assertRefused(await ws.post('/experiments', { ...asked, key: 'over', ...terms }), 400, 'invalid_request')
    }
  })

  test('a winner that is no variant, a phase and a metric that are not there', async () => {
    const ws = await api.workspace()
    const { id } = await running(ws)
    assertRefused(
      await verb(ws, id, 'conclude', { winner_variant_id: 'z' }),
      400,
      'invalid_request',
      'winner_variant_id',
    )
    assertRefused(await ws.get(`/experiments/${id}/results?phase=2`), 400, 'invalid_request', 'phase')
    assertRefused(await ws.get(`/experiments/${id}/results?metric=paid`), 400, 'invalid_request', 'metric')
  })
})

describe('404 and 409', () => {
  test('a key is taken for ever, in its environment', async () => {
    const ws = await api.workspace()
    const { id } = await made(ws)
    await verb(ws, id, 'archive')
    assertRefused(await ws.post('/experiments', asked), 409, 'conflict', 'key')
    assert.equal((await ws.post('/experiments', asked, { environment: 'live' })).status, 201)
  })

  test('verbs lead nowhere but from their states', async () => {
    const ws = await api.workspace()
    const states: [state: string, allowed: string[], reach: string[]][] = [
      ['draft', ['start', 'archive'], []],
      ['running', ['pause', 'new_phase', 'conclude'], ['start']],
      ['paused', ['resume', 'new_phase', 'conclude'], ['start', 'pause']],
      ['concluded', ['archive'], ['start', 'conclude']],
      ['archived', [], ['archive']],
    ]
    const body = (name: string) => (name === 'conclude' ? { winner_variant_id: 'a' } : {})
    for (const [state, allowed, reach] of states) {
      const { id } = await made(ws, { key: state })
      for (const name of reach) await verb(ws, id, name, body(name))
      for (const name of ['start', 'pause', 'resume', 'new_phase', 'conclude', 'archive']) {
        if (allowed.includes(name)) continue
        assertRefused(await verb(ws, id, name, body(name)), 409, 'conflict')
      }
      assert.equal((await ws.get(`/experiments/${id}`)).body.status, state)
    }
  })

  test('what would move somebody is refused once it runs', async () => {
    const ws = await api.workspace()
    const { id } = await running(ws, { coverage: 0.5 })
    const refused: [param: string, body: object][] = [
      ['variants', { variants: held }],
      ['variants', { variants: variants.toReversed() }],
      ['coverage', { coverage: 0.4 }],
      ['seed', { seed: 'other' }],
      ['namespace', { namespace: { id: 'n', start: 0, end: 1 } }],
      ['metrics', { metrics: [{ event_name: 'paid', window_ms: 1 }] }],
    ]
    for (const [param, body] of refused) {
      assertRefused(await ws.patch(`/experiments/${id}`, body), 409, 'conflict', param)
    }
  })

  test('two may not run in the same part of a namespace', async () => {
    const ws = await api.workspace()
    const { id } = await running(ws, { key: 'low', namespace: { id: 'n', start: 0, end: 0.5 } })
    const other = await made(ws, { key: 'mid', namespace: { id: 'n', start: 0.4, end: 0.6 } })
    assertRefused(await verb(ws, other.id, 'start'), 409, 'conflict', 'namespace')
    await verb(ws, id, 'pause')
    assert.equal((await verb(ws, other.id, 'start')).status, 200)
    assertRefused(await verb(ws, id, 'resume'), 409, 'conflict', 'namespace')
  })

  test('a holdout keeps its variants for ever', async () => {
    const ws = await api.workspace()
    const { id } = await made(ws, { kind: 'holdout', variants: held })
    const others = [{ ...held[0], id: 'other' }, held[1]]
    assertRefused(await ws.patch(`/experiments/${id}`, { variants: others }), 409, 'conflict', 'variants')
    await verb(ws, id, 'start')
    assertRefused(await verb(ws, id, 'new_phase', { variants: others }), 409, 'conflict', 'variants')
  })

  test('one that is not there', async () => {
    const ws = await api.workspace()
    for (const path of ['', '/results', '/assignments']) {
      assertRefused(await ws.get(`/experiments/xp_none${path}`), 404, 'not_found')
    }
    assertRefused(await verb(ws, 'xp_none', 'start'), 404, 'not_found')
  })
})
