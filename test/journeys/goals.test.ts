import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { conversionAgeMsMax, dayMs } from '../../src/kernel/limits.ts'
import { eventually } from '../app/project.ts'
import { server } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft, newJourneyId, openStage, type Published, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)

const goal = (more: object = {}, attribution: object = {}) => ({
  criterion: { type: 'event', eventName: 'paid', ...more },
  attribution: { basis: 'entry', window: { amount: 2, unit: 'hour' }, ...attribution },
})
const everyTime = { frequency: { type: 'every_match' } }
const entered = await stage.publish(deviceDraft(everyTime, { goal: goal() }))
const seen = await stage.publish(
  deviceDraft(everyTime, { goal: goal({ eventName: 'bought' }, { basis: 'first_shown' }) }),
)

/** A journey of the device that began so long ago. */
async function begun(of: Published, who: string, agoMs = 60_000): Promise<string> {
  const journeyId = newJourneyId()
  await stage.started(who, { journeyId, of, section: 'tell', startedAt: Date.now() - agoMs })
  await stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
  return journeyId
}
const ago = (ms: number) => ({ timestamp: new Date(Date.now() - ms).toISOString() })
const conversionOf = async (id: string) => (await stage.journey(id)).conversion
const converted = (id: string) => stage.journeyIs(id, ({ conversion }) => conversion.conversion !== null)

describe('a goal', () => {
  test('after the entry and inside the window converts, once; its revision grows', async () => {
    const who = randomUUID()
    const id = await begun(entered, who)
    const before = await conversionOf(id)
    assert.deepEqual(
      [before.revision, before.basis.event_id, before.basis.occurred_at, before.conversion],
      [1, id, before.started_at, null],
    )
    const uuid = await stage.send(who, 'paid')
    const after = (await converted(id)).conversion
    assert.deepEqual([after.revision, after.conversion.event_id], [2, uuid])
    await stage.send(who, 'paid')
    await stage.quiet()
    assert.deepEqual(await conversionOf(id), after)
  })

  test('before the entry, or after the window, does not', async () => {
    const who = randomUUID()
    const id = await begun(entered, who, 3 * 3600_000)
    await stage.send(who, 'paid', {}, ago(4 * 3600_000))
    await stage.send(who, 'paid')
    await stage.quiet()
    assert.equal((await conversionOf(id)).conversion, null)
    await stage.send(who, 'paid', {}, ago(2 * 3600_000))
    await converted(id)
  })

  test('is credited to the newest of several journeys', async () => {
    const who = randomUUID()
    const older = await begun(entered, who, 120_000)
    const newer = await begun(entered, who, 60_000)
    await stage.send(who, 'paid')
    await converted(newer)
    assert.equal((await conversionOf(older)).conversion, null)
    await stage.send(who, 'paid')
    await converted(older)
  })

  test('still converts after the journey has ended', async () => {
    const who = randomUUID()
    const id = await begun(entered, who)
    await stage.call('POST', `/journeys/${id}/cancel`, { body: {} })
    await stage.send(who, 'paid')
    const journey = await converted(id)
    assert.equal(journey.end_reason, 'cancelled')
  })

  test('in the window but older than 30 days when it was taken does not convert', async () => {
    const wide = await stage.publish(
      deviceDraft(everyTime, { goal: goal({}, { window: { amount: 60, unit: 'day' } }) }),
    )
    const who = randomUUID()
    const id = await begun(wide, who, 40 * dayMs)
    await stage.send(who, 'paid', {}, ago(conversionAgeMsMax + 60_000))
    await stage.quiet()
    assert.equal((await conversionOf(id)).conversion, null)
    await stage.send(who, 'paid', {}, ago(conversionAgeMsMax - 60_000))
    await converted(id)
  })

  test('that names a journey converts only with the word of the step that it came of', async () => {
    const told = await stage.publish(deviceDraft(everyTime, { goal: goal({ eventName: 'welcome_offered' }) }))
    const who = randomUUID()
    const [id, other] = [await begun(told, who), await begun(told, who, 30_000)]
    const properties = { journey_id: id, experience_id: told.id, experience_version_id: told.versionId }
    const origin = (more: object = {}) => {
      const uuid = randomUUID()
      const claim = {
        ...{ journeyId: id, experienceId: told.id, versionId: told.versionId, legId: told.legs.tell, generation: 0 },
        ...{ occurrenceId: uuid, source: 'device_action', stepId: 'tell', ...more },
      }
      return { uuid, journeyOrigin: claim }
    }
    await stage.send(who, 'welcome_offered', properties)
    for (const wrong of [
      { stepId: 'later' },
      { generation: 1 },
      { legId: told.legs.again },
      { versionId: 'ver_x' },
      { occurrenceId: randomUUID() },
    ]) {
      await stage.send(who, 'welcome_offered', properties, origin(wrong))
    }
    await stage.quiet()
    assert.deepEqual([(await conversionOf(id)).conversion, (await conversionOf(other)).conversion], [null, null])
    await stage.send(who, 'welcome_offered', properties, origin())
    await converted(id)
    assert.equal((await conversionOf(other)).conversion, null)
  })

  test('of a purchase converts by the word of a backend, not of a device', async () => {
    const bought = await stage.publish(deviceDraft(everyTime, { goal: goal({ eventName: '$purchase_completed' }) }))
    const who = randomUUID()
    const id = await begun(bought, who)
    await stage.send(who, '$purchase_completed', { product_id: 'p' })
    await stage.quiet()
    assert.equal((await conversionOf(id)).conversion, null)
    const events = [{ event: '$purchase_completed', distinct_id: who, uuid: randomUUID() }]
    await stage.project.post('/events', { project_id: stage.project.id, events })
    await converted(id)
  })
})

describe('what was shown', () => {
  const shown = (who: string, id: string, more: object = {}, when: object = {}) =>
    stage.send(
      who,
      '$experience_shown',
      { journey_id: id, experience_id: seen.id, experience_version_id: seen.versionId, ...more },
      when,
    )

  test('is the basis: the earliest, and nothing converts without it', async () => {
    const who = randomUUID()
    const id = await begun(seen, who)
    await stage.send(who, 'bought')
    await stage.quiet()
    assert.deepEqual([(await conversionOf(id)).basis, (await conversionOf(id)).conversion], [null, null])
    await shown(who, id, {}, ago(5000))
    await stage.journeyIs(id, ({ conversion }) => conversion.revision === 2)
    const earlier = await shown(who, id, {}, ago(20_000))
    const journey = await stage.journeyIs(id, ({ conversion }) => conversion.revision === 3)
    assert.equal(journey.conversion.basis.event_id, earlier)
    await shown(who, id, {}, ago(1000))
    await stage.send(who, 'bought')
    const last = (await converted(id)).conversion
    assert.deepEqual([last.revision, last.basis.event_id], [4, earlier])
  })

  test('counts only when all its ids agree', async () => {
    const who = randomUUID()
    const id = await begun(seen, who)
    await shown(who, id, { experience_id: 'exp_other' })
    await shown(who, id, { experience_version_id: 'ver_other' })
    await shown(who, newJourneyId())
    await shown(randomUUID(), id)
    await stage.quiet()
    assert.equal((await conversionOf(id)).revision, 1)
    await shown(who, id, { experience_version_id: undefined, experience_version: 1 })
    await stage.journeyIs(id, ({ conversion }) => conversion.basis !== null)
  })
})

describe('exitWhenAny', () => {
  const exiting = async (exitWhenAny: object[], more: object = {}) => {
    const of = await stage.publish(serverDraft({ type: 'api' }, { policy: { exitWhenAny, ...more } }))
    return async (who: string) => {
      const body = { app_id: stage.app.id, distinct_id: who }
      return (await stage.call('POST', `/experiences/${of.id}/start`, { body })).body.journey_id as string
    }
  }
  const ended = (id: string, detail: string) =>
    stage.journeyIs(id, ({ end_reason, end_detail }) => end_reason === 'exited' && end_detail === detail)

  test('goal_met ends the journey that converts', async () => {
    const start = await exiting([{ type: 'goal_met' }], { goal: goal({ eventName: 'subscribed' }) })
    const who = randomUUID()
    const id = await start(who)
    await stage.send(who, 'subscribed')
    const journey = await ended(id, 'goal_met')
    assert.ok(journey.conversion.conversion)
  })

  test('an event after the start ends it; one from before does not', async () => {
    const start = await exiting([{ type: 'event', eventName: 'churned' }])
    const who = randomUUID()
    const id = await start(who)
    await stage.send(who, 'churned', {}, ago(60_000))
    await stage.quiet()
    assert.equal((await stage.journey(id)).status, 'armed')
    await stage.send(who, 'churned')
    await ended(id, 'event:churned')
    assert.equal((await stage.legs(id))[0].status, 'withdrawn')
  })

  test('entering a Segment ends it', async () => {
    const where = { property: { key: 'state', op: 'eq', value: 'gone' } }
    const { id: segment } = await stage.project.post('/segments', {
      ...{ project_id: stage.project.id, name: 'Gone', definition: { version: 1, where } },
    })
    await eventually(async () => (await stage.project.get(`/segments/${segment}`)).status === 'ready')
    const start = await exiting([{ type: 'segment_enter', segmentId: segment }])
    const who = randomUUID()
    const id = await start(who)
    await stage.send(who, 'opened', { $set: { state: 'gone' } })
    await ended(id, `segment_enter:${segment}`)
  })

  test('eligibility_lost ends it when eligibility is known to be false; unknown does nothing', async () => {
    const expr = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'trial' } }
    const of = await stage.publish(
      serverDraft(
        { type: 'api' },
        { entry: { eligibility: { ir_version: 1, expr } }, policy: { exitWhenAny: [{ type: 'eligibility_lost' }] } },
      ),
    )
    const who = randomUUID()
    const customer = await stage.project.customer(who)
    await stage.project.patch(`/customers/${customer}`, { properties: { set: { plan: 'trial' } } })
    const body = { app_id: stage.app.id, distinct_id: who }
    const id = (await stage.call('POST', `/experiences/${of.id}/start`, { body })).body.journey_id
    await stage.send(who, 'opened', { $set: { plan: 'trial', other: 1 } })
    await stage.quiet()
    assert.equal((await stage.journey(id)).status, 'armed')
    await stage.send(who, 'opened', { $set: { plan: 'pro' } })
    await ended(id, 'eligibility_lost')
  })

  test('eligibility_lost ends it when a property is changed through the Workspace API, or by another journey', async () => {
    const expr = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'trial' } }
    const policy = { exitWhenAny: [{ type: 'eligibility_lost' }] }
    const of = await stage.publish(
      serverDraft({ type: 'api' }, { entry: { eligibility: { ir_version: 1, expr } }, policy }),
    )
    const draft = serverDraft({ type: 'api' })
    draft.graph.entry = 'write'
    draft.graph.steps.push(server('write', { type: 'set_properties', set: { plan: 'pro' } }, { next: 'again' }))
    const writes = await stage.publish(draft)
    for (const how of ['api', 'journey']) {
      const who = randomUUID()
      const customer = await stage.project.customer(who)
      const edit = (plan: string) => stage.project.patch(`/customers/${customer}`, { properties: { set: { plan } } })
      const start = async ({ id }: typeof of) => {
        const body = { app_id: stage.app.id, distinct_id: who }
        return (await stage.call('POST', `/experiences/${id}/start`, { body })).body.journey_id
      }
      await edit('trial')
      const id = await start(of)
      await edit('trial')
      await stage.quiet()
      assert.equal((await stage.journey(id)).status, 'armed')
      if (how === 'api') await edit('pro')
      else await start(writes)
      await ended(id, 'eligibility_lost')
    }
  })
})
