import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Body } from '../app/answers.ts'
import { anEvent, clientOf, eventually } from '../app/project.ts'
import { aDraft, device } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage, type Stage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const half = [
  { id: 'a', weight: 0.5, is_holdout: false },
  { id: 'b', weight: 0.5, is_holdout: false },
]

async function experimentIn({ project }: Stage, key = 'price', more: object = {}): Promise<string> {
  const { id } = await project.post('/experiments', { project_id: project.id, key, variants: half, ...more })
  await project.post(`/experiments/${id}/start`, {})
  return id
}

/** The device forks by the experiment. */
function forking(experimentId: string, variants: string[] = ['a', 'b']) {
  const draft = aDraft()
  draft.graph.entry = 'fork'
  const listed = variants.map((id) => ({ id, isHoldout: false }))
  const action = { type: 'experiment', experimentId, fallbackVariantId: 'a', variants: listed }
  draft.graph.steps.unshift(device('fork', action, Object.fromEntries(variants.map((id) => [id, 'tell']))))
  return draft
}

async function rowsOf({ project }: Stage): Promise<{ customer: string; variant: string }[]> {
  return service.pool.query<{ customer: string; variant: string }>(
    'select customer_id as customer, variant_id as variant from experiment_assignment where scope_id = $1',
    [await project.scopeId()],
  )
}

const assignmentIn = ({ facts }: Body, experimentId: string): Body => facts.assignments[experimentId]

test('a customer gets a variant with the first profile that asks for it, stored before it is told, and keeps it', async () => {
  const stage = await openStage(service)
  const xp = await experimentIn(stage)
  for (const who of ['ada', 'ben']) await stage.project.customer(who)
  await stage.profile('ada')
  assert.deepEqual(await rowsOf(stage), [], 'nothing asks for it yet')
  await stage.publish('forked', forking(xp))
  const told = assignmentIn((await stage.explain('ada')).profile, xp)
  assert.deepEqual(await rowsOf(stage), [], 'explaining gives nobody a variant')
  const { body, tag } = await stage.profile('ada')
  const given = assignmentIn(body, xp)
  assert.deepEqual(given, told)
  assert.deepEqual(
    (await rowsOf(stage)).map(({ variant }) => variant),
    [given.variantId],
  )
  assert.equal(given.isHoldout, false)
  const again = await stage.app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })
  assert.equal(again.status, 304)
  assert.deepEqual(assignmentIn((await stage.profile('ada')).body, xp), given)
  assert.equal((await rowsOf(stage)).length, 1)
})

test('whoever asks at the same time, in any process, is told the one variant that is stored', async () => {
  await using node = await service.another({ ROLE: 'api' })
  const stage = await openStage(service)
  const xp = await experimentIn(stage)
  await stage.publish('forked', forking(xp))
  const there = { ...stage.app, ...clientOf(node.url, stage.app.key) }
  for (const who of ['a', 'b', 'c', 'd', 'e', 'f']) {
    await stage.project.customer(who)
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => stage.profile(who, {}, i % 2 ? there : stage.app)),
    )
    for (const { body } of answers) assert.deepEqual(assignmentIn(body, xp), assignmentIn(answers[0]?.body, xp))
  }
  const rows = await rowsOf(stage)
  assert.equal(rows.length, 6)
})

test('an id of which nothing was heard is dealt with its first profile what its record keeps', async () => {
  const stage = await openStage(service)
  const { project, app } = stage
  const xp = await experimentIn(stage)
  await stage.publish('forked', forking(xp))
  const given = new Map<string, Body>()
  for (const who of ['a', 'b', 'c', 'd', 'e', 'f']) {
    const answers = await Promise.all([stage.profile(who), stage.profile(who)])
    const [one, other] = answers.map(({ body }) => assignmentIn(body, xp))
    assert.ok(one?.variantId)
    assert.deepEqual(other, one)
    given.set(who, one)
  }
  assert.equal((await rowsOf(stage)).length, 6)
  // What those to come are dealt moves nobody.
  const moved = [0.01, 0.99].map((weight, i) => ({ ...half[i], weight }))
  await project.patch(`/experiments/${xp}`, { variants: moved })
  for (const [who, variant] of given) {
    await app.post('/event', anEvent(who))
    const { id } = await eventually(async () => {
      const found = await service.workspace('GET', `/customers/by_distinct_id/${who}?project_id=${project.id}`)
      return found.status === 200 && found.body
    })
    const [row, ...others] = (await project.get(`/experiments/${xp}/assignments?customer_id=${id}`)).data
    assert.deepEqual([row?.variant_id, row?.is_holdout, others], [variant.variantId, variant.isHoldout, []])
    assert.deepEqual(assignmentIn((await stage.profile(who)).body, xp), variant)
  }
  assert.equal((await rowsOf(stage)).length, 6)
})

test('what an id was dealt before it had a record is erased with the customer it came to name', async () => {
  const stage = await openStage(service)
  const { project, app } = stage
  const xp = await experimentIn(stage)
  await stage.publish('forked', forking(xp))
  await stage.profile('unheard')
  assert.equal((await rowsOf(stage)).length, 1)
  await app.post('/event', anEvent('ada', { event: '$identify', $anon_distinct_id: 'unheard' }))
  const { id } = await eventually(async () => {
    const found = await service.workspace('GET', `/customers/by_distinct_id/ada?project_id=${project.id}`)
    return found.body.distinct_ids?.length === 2 && found.body
  })
  await project.delete(`/customers/${id}`)
  await eventually(async () => (await rowsOf(stage)).length === 0, 30_000)
})

test('a paused experiment gives nobody one, but those that have one keep it', async () => {
  const stage = await openStage(service)
  const xp = await experimentIn(stage)
  await stage.publish('forked', forking(xp))
  const heard = assignmentIn((await stage.profile('unheard')).body, xp)
  await stage.project.customer('ada')
  const had = assignmentIn((await stage.profile('ada')).body, xp)
  await stage.project.post(`/experiments/${xp}/pause`, {})
  await stage.project.customer('late')
  assert.equal(assignmentIn((await stage.profile('late')).body, xp), null)
  assert.equal(assignmentIn((await stage.profile('stranger')).body, xp), null)
  assert.deepEqual(assignmentIn((await stage.profile('ada')).body, xp), had)
  assert.deepEqual(assignmentIn((await stage.profile('unheard')).body, xp), heard)
  await stage.project.post(`/experiments/${xp}/resume`, {})
  await stage.project.post(`/experiments/${xp}/conclude`, { winner_variant_id: 'b' })
  for (const who of ['ada', 'late', 'stranger']) {
    assert.deepEqual(assignmentIn((await stage.profile(who)).body, xp), { variantId: 'b', isHoldout: false })
  }
  assert.equal((await rowsOf(stage)).length, 2)
})

test('an audience takes part from the event on that makes somebody its member', async () => {
  const stage = await openStage(service)
  const { project, app } = stage
  const where = { property: { key: 'plan', op: 'eq', value: 'pro' } }
  const { id: segment } = await project.post('/segments', {
    ...{ project_id: project.id, name: 'Pro', definition: { version: 1, where } },
  })
  await eventually(async () => (await project.get(`/segments/${segment}`)).status === 'ready')
  const xp = await experimentIn(stage, 'price', { audience_segment_id: segment })
  await stage.publish('forked', forking(xp))
  await project.customer('ada')
  assert.equal(assignmentIn((await stage.profile('ada')).body, xp), null)
  await app.post('/event', anEvent('ada', { properties: { $set: { plan: 'pro' } } }))
  await eventually(async () => assignmentIn((await stage.profile('ada')).body, xp) !== null)
})

test('eligibility that asks of past events follows them', async () => {
  const stage = await openStage(service)
  const draft = aDraft()
  const seen = { type: 'Events.Count', name: 'opened', within: { type: 'Duration', value: 7 * 86_400 } }
  const expr = { type: 'Compare', op: '>=', left: seen, right: { type: 'Number', value: 2 } }
  draft.policy = {
    ...draft.policy,
    entry: {
      trigger: { type: 'event', eventName: 'e' },
      frequency: { type: 'every_match' },
      eligibility: { ir_version: 1, expr },
    },
  }
  await stage.publish('often', draft)
  const arms = async () => (await stage.profile('ada')).body.armedLegs.length
  await stage.app.post('/event', anEvent('ada'))
  assert.equal(await arms(), 0)
  await stage.app.post('/event', anEvent('ada'))
  await eventually(async () => (await arms()) === 1, 20_000)
})
