import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Body } from '../app/answers.ts'
import { anEvent, eventually } from '../app/project.ts'
import { aDraft } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage, type Stage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

/** Started by a backend, measured, and with data of the start that its leg declares. */
function byApi(name = 'Welcome') {
  const draft = aDraft()
  draft.metadata = { ...draft.metadata, name }
  draft.policy = {
    entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } },
    goal: {
      criterion: { type: 'event', eventName: 'bought' },
      attribution: { basis: 'entry', window: { amount: 3, unit: 'day' } },
    },
    exitWhenAny: [],
  }
  return draft
}

async function begin({ project, app }: Stage, distinctId: string, key = 'welcome'): Promise<string> {
  const { id: experienceId } = await project.get(`/experiences/${key}?project_id=${project.id}`)
  const path = `/experiences/${experienceId}/start`
  const body = { app_id: app.id, distinct_id: distinctId, context: { source: 'ads', other: 1 } }
  const { status, journey_id: id } = await project.post(path, body)
  assert.equal(status, 'started')
  return id
}

async function report({ app }: Stage, distinctId: string, arm: Body, kind: 'started' | 'completed', more: object = {}) {
  const { reference, binding } = arm
  const properties = {
    ...{ journey_id: binding.journeyId, experience_id: reference.experienceId, leg_id: reference.legId },
    ...{ experience_version_id: reference.versionId, leg_generation: binding.generation },
    ...{ started_at: new Date().toISOString(), ...more },
  }
  await app.post('/event', anEvent(distinctId, { event: `$journey_leg_${kind}`, properties }))
}

const onward = async (stage: Stage, who: string): Promise<Body[]> => {
  const { body } = await stage.profile(who)
  return body.armedLegs.filter(({ binding }: Body) => binding.type === 'continue')
}

describe('a journey that the server began', () => {
  test('is armed with its id, generation, declared context and measure, until its start is reported', async () => {
    const stage = await openStage(service)
    await stage.publish('welcome', byApi())
    await stage.project.customer('ada')
    const { tag } = await stage.profile('ada')
    const journeyId = await begin(stage, 'ada')
    const changed = await stage.app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })
    assert.equal(changed.status, 200)
    const [arm] = await onward(stage, 'ada')
    assert.deepEqual(arm.binding, { type: 'continue', journeyId, generation: 1 })
    assert.deepEqual(arm.context.responses, {})
    assert.equal('other' in arm.context.event, false)
    assert.equal(arm.conversion.revision, 1)
    assert.deepEqual((await onward(stage, 'ada'))[0], arm)
    assert.deepEqual(await onward(stage, 'somebody else'), [])
    await report(stage, 'ada', arm, 'started')
    await eventually(async () => (await onward(stage, 'ada')).length === 0, 20_000)
    const told = await stage.explain('ada')
    assert.deepEqual(told.journeys, [{ journey_id: journeyId, status: 'on_device', armed: false, reason: 'not_armed' }])
  })

  test('keeps its version while another is live, under the newest stamp and the newest key', async () => {
    const stage = await openStage(service)
    const first = await stage.publish('welcome', byApi('One'))
    await begin(stage, 'ada')
    const second = await stage.publish('welcome', byApi('Two'))
    await stage.rotate()
    const seen = async () => {
      const { body, tag } = await stage.profile('ada')
      const [{ locator, envelope }] = body.releases
      assert.equal(body.armedLegs[0].reference.versionId, first.id)
      return { seq: locator.publishedAtSeq, keyId: envelope.signature.keyId, tag }
    }
    assert.equal((await seen()).seq, 1)
    for (const { id } of [first, second]) {
      await stage.project.post(`/experiences/welcome/versions/${id}/activate?project_id=${stage.project.id}`, {})
      assert.equal((await seen()).seq, 3)
    }
    const { key_id: newest } = await stage.rotate()
    await stage.change('welcome', 'unpublish')
    const { seq, keyId, tag } = await seen()
    assert.deepEqual([seq, keyId], [3, newest])
    const again = await stage.app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })
    assert.equal(again.status, 304)
  })

  test('is not armed in another app, nor while the customer’s journeys rest', async () => {
    const stage = await openStage(service)
    const android = await stage.project.app('android')
    await stage.publish('welcome', byApi())
    await stage.publish('greet', aDraft())
    const journeyId = await begin(stage, 'ada')
    const there = await stage.explain('ada', '', android)
    assert.deepEqual(
      there.journeys.map(({ reason }: Body) => reason),
      ['other_app'],
    )
    const id = await stage.project.customer('ada')
    await stage.project.post(`/customers/${id}/pause_journeys`, {})
    assert.deepEqual((await stage.profile('ada')).body.armedLegs, [])
    const told = await stage.explain('ada')
    assert.deepEqual(told.journeys, [{ journey_id: journeyId, status: 'armed', armed: false, reason: 'held' }])
    assert.ok(told.experiences.every(({ reason }: Body) => reason === 'customer_paused'))
    await stage.project.post(`/customers/${id}/resume_journeys`, {})
    assert.equal((await stage.profile('ada')).body.armedLegs.length, 2)
  })
})

describe('a journey that a device began', () => {
  test('takes the place of the arm that let it in, and goes on under a higher generation', async () => {
    const stage = await openStage(service)
    const draft = aDraft()
    draft.graph.steps = draft.graph.steps.filter(({ id }) => id !== 'later' && id !== 'note')
    for (const one of draft.graph.steps) if (one.id === 'tell') one.outlets = { next: 'note' }
    draft.graph.steps.push({
      ...{ id: 'note', plane: 'server', outlets: { next: 'again' } },
      action: { type: 'emit_event', eventName: 'noted', properties: {} },
    })
    await stage.publish('welcome', draft)
    await stage.project.customer('ada')
    const [arm] = (await stage.profile('ada')).body.armedLegs
    const journeyId = '0198c0de-0000-7000-8000-00000000abcd'
    const own = { ...arm, binding: { journeyId, generation: 0 } }
    await report(stage, 'ada', own, 'started')
    await eventually(async () => (await stage.profile('ada')).body.armedLegs.length === 0, 20_000)
    const { experiences } = await stage.explain('ada')
    assert.deepEqual([experiences[0].reason, /^enrolled /.test(experiences[0].detail)], ['frequency', true])
    const outputs = { event: {}, responses: {} }
    const completed = { completed_at: new Date().toISOString(), outcome: 'note', outputs }
    await report(stage, 'ada', own, 'completed', completed)
    await eventually(async () => (await onward(stage, 'ada')).length === 1, 20_000)
    const [next] = await onward(stage, 'ada')
    assert.deepEqual(next.binding, { type: 'continue', journeyId, generation: 1 })
    assert.equal('conversion' in next, false)
  })
})
