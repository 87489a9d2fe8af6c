import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Catalogues, createStanding } from '../../src/entitlements/index.ts'
import { featureSource } from '../../src/feature-facts.ts'
import { applyInputs } from '../../src/journeys/apply/apply.ts'
import { pinnedPlans } from '../../src/journeys/apply/pinned-plans.ts'
import { fireTimers } from '../../src/journeys/timers/fire.ts'
import { must } from '../../src/kernel/assert.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { aDraft, server } from '../harness/a-draft.ts'
import { startApi, type Workspace } from '../workspace/api.ts'
import { newJourneyId, services } from './world.ts'

const api = await startApi()
after(() => api[Symbol.asyncDispose]())
const { pool, tombstoneKey } = api
const features = featureSource(pool, new Catalogues(pool, api.directory), createStanding({ pool, tombstoneKey, clock }))

/** A published Experience that anybody's backend may start, with these steps, and a customer. */
async function published(ws: Workspace, steps: ReturnType<typeof server>[]) {
  await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })
  const { body: key } = await ws.post('/signing_keys', { key_id: 'first' })
  await ws.post(`/signing_keys/${key.id}/activate`, {})
  await ws.post('/experiences', { key: 'welcome', name: 'Welcome' })
  const draft = aDraft()
  Object.assign(draft.policy, { entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } } })
  draft.graph.entry = must(steps[0], 'a first step').id
  draft.graph.steps = steps
  draft.fields = { event: {}, responses: {} }
  const saved = await ws.call('PUT', '/experiences/welcome/draft', { body: draft, headers: { 'if-match': '0' } })
  assert.equal(saved.status, 200)
  const version = await ws.post('/experiences/welcome/versions', {})
  assert.equal(version.status, 201, JSON.stringify(version.body))
  const [publication] = (await ws.get('/publications')).body.data
  const scope = ws.scopes.test
  const { app_id: appId, build_id: buildId } = publication
  const plan = must((await pinnedPlans(pool, scope, [{ appId, buildId }])).get(buildId), 'it was published')
  const customer = await ws.post('/customers', { distinct_id: 'u1' })
  const customerId = customer.body.id.replace('cus_', '')
  const journeyId = newJourneyId()
  const now = clock.now()
  const start = () => {
    const input = {
      ...{ journeyId, customerId, appId, occurrence: journeyId, at: now },
      context: { event: {}, responses: {} },
    }
    const told = [{ journeyId, plan, input: { kind: 'enrol' as const, by: 'api' as const, ...input } }]
    return pool.transaction((tx) => applyInputs(tx, scope, told, now, { ...services, features }))
  }
  return { scope, customer: customer.body, customerId, now, start, journeyOf: () => stateOf(journeyId) }
}

async function stateOf(id: string): Promise<unknown[]> {
  const [row] = await pool.query<{ status: string; end_detail: string | null; rev: number }>(
    'select status, end_detail, rev from journey where id = $1',
    [id],
  )
  return [row?.status, row?.end_detail, row?.rev]
}

const exit = (reason: string) => server(reason, { type: 'exit', reason })

test('what is published is what runs', async () => {
  const ws = await api.workspace()
  const { start, now, journeyOf } = await published(ws, [
    server('later', { type: 'delay', durationMs: 60_000 }, { next: 'say' }),
    server('say', { type: 'emit_event', eventName: 'minute_passed' }, { next: 'enough' }),
    exit('enough'),
  ])
  await start()
  assert.deepEqual(await journeyOf(), ['waiting', null, 1])
  assert.equal(await fireTimers({ pool, services, now: now + 59_999 }), 0)
  assert.equal(await fireTimers({ pool, services, now: now + 60_000 }), 1)
  assert.deepEqual(await journeyOf(), ['ended', 'enough', 2])
  const events = await pool.query<{ payload: string }>(
    `select payload from event_log where payload like '%minute_passed%'`,
  )
  assert.equal(events.length, 1)
})

test('a branch over a Feature sees what the customer has of it', async () => {
  for (const has of [false, true]) {
    const ws = await api.workspace()
    await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean', published: true })
    const expr = { type: 'Feature', op: 'has', id: 'pro' }
    const branches = [{ id: 'yes', condition: { ir_version: 1, expr } }]
    const { start, customer, journeyOf } = await published(ws, [
      server('ask', { type: 'branch', branches }, { yes: 'has', default: 'hasnt' }),
      ...[exit('has'), exit('hasnt')],
    ])
    if (has) {
      const granted = await ws.post(`/customers/${customer.id}/grants`, { feature: 'pro' })
      assert.equal(granted.status, 201, JSON.stringify(granted.body))
    }
    await start()
    assert.deepEqual(await journeyOf(), ['ended', has ? 'has' : 'hasnt', 1])
  }
})

test('a split assigns whom it meets, and notes who has seen what', async () => {
  const ws = await api.workspace()
  const variants = [
    { id: 'a', weight: 0.5, is_holdout: false },
    { id: 'b', weight: 0.5, is_holdout: false },
  ]
  const experiment = await ws.post('/experiments', { key: 'colour', kind: 'ab', variants, coverage: 1, metrics: [] })
  assert.equal(experiment.status, 201, JSON.stringify(experiment.body))
  await ws.post(`/experiments/${experiment.body.id}/start`, {})
  const listed = [
    { id: 'a', isHoldout: false },
    { id: 'b', isHoldout: false },
  ]
  const action = {
    type: 'experiment_split',
    experimentId: experiment.body.id,
    fallbackVariantId: 'a',
    variants: listed,
  }
  const { start, journeyOf, customerId } = await published(ws, [
    server('split', action, { a: 'saw_a', b: 'saw_b' }),
    ...[exit('saw_a'), exit('saw_b')],
  ])
  await start()
  const assigned = await pool.query<{ variant_id: string }>(
    'select variant_id from experiment_assignment where customer_id = $1',
    [customerId],
  )
  assert.equal(assigned.length, 1)
  assert.deepEqual(await journeyOf(), ['ended', `saw_${assigned[0]?.variant_id}`, 1])
  const exposed = await pool.query('select customer_id from experiment_exposure where customer_id = $1', [customerId])
  assert.equal(exposed.length, 1)
})
