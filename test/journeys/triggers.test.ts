import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { triggerAgeMsMax } from '../../src/kernel/limits.ts'
import { eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { openStage, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)

const is = (op: string, key: string, value: string) => ({
  ir_version: 1,
  expr: { type: 'Event', op, key, value: { type: 'String', value } },
})
const ordered = await stage.publish(
  serverDraft({ type: 'event', eventName: 'ordered', condition: is('eq', 'size', 'big') }),
)

const countOf = async (who: string) => (await stage.journeysOf(who)).length
const becomes = (who: string, count: number) => eventually(async () => (await countOf(who)) === count)

describe('an event', () => {
  test('of the trigger begins a journey in the app that sent it, with its declared fields', async () => {
    const who = randomUUID()
    const uuid = await stage.send(who, 'ordered', { size: 'big', source: 'shop', other: 1 })
    await becomes(who, 1)
    const [journey] = await stage.journeysOf(who)
    assert.deepEqual(
      [journey.origin, journey.occurrence, journey.app_id, journey.context.event, journey.trust, journey.experience_id],
      ['event', `evt:${uuid}`, stage.app.id, { source: 'shop' }, 'device', ordered.id],
    )
  })

  test('begins nothing where its condition is false or unknown, or twice under one uuid', async () => {
    const who = randomUUID()
    await stage.send(who, 'ordered', { size: 'small' })
    await stage.send(who, 'ordered')
    const uuid = await stage.send(who, 'ordered', { size: 'big' })
    await stage.send(who, 'ordered', { size: 'big' }, { uuid })
    await stage.quiet()
    assert.equal(await countOf(who), 1)
  })

  test('that is old begins nothing; neither does an import', async () => {
    const [young, old, imported] = [randomUUID(), randomUUID(), randomUUID()]
    const at = (ms: number) => ({ timestamp: new Date(Date.now() - ms).toISOString() })
    await stage.send(young, 'ordered', { size: 'big' }, at(triggerAgeMsMax - 60_000))
    await stage.send(old, 'ordered', { size: 'big' }, at(triggerAgeMsMax + 1))
    const item = { event: 'ordered', distinct_id: imported, uuid: randomUUID(), properties: { size: 'big' } }
    await stage.app.postGzip('/batch', { batch: [item], historical_migration: true })
    await becomes(young, 1)
    await stage.quiet()
    assert.deepEqual([await countOf(old), await countOf(imported)], [0, 0])
  })

  test('from a backend begins a journey where the customer was last; nowhere when they were in no app', async () => {
    const [known, unknown] = [randomUUID(), randomUUID()]
    const android = await stage.project.app('android')
    await stage.project.post(
      `/experiences/${ordered.id}/versions/${ordered.versionId}/activate?project_id=${stage.project.id}`,
      {},
    )
    await stage.send(known, 'opened')
    await android.post('/event', { event: 'opened', distinct_id: known, uuid: randomUUID() })
    const events = [known, unknown].map((distinct_id) => ({
      event: 'ordered',
      distinct_id,
      uuid: randomUUID(),
      properties: { size: 'big' },
    }))
    await stage.quiet()
    await stage.project.post('/events', { project_id: stage.project.id, events })
    await becomes(known, 1)
    assert.equal((await stage.journeysOf(known))[0].app_id, android.id)
    await stage.quiet()
    assert.equal(await countOf(unknown), 0)
    assert.equal((await stage.dispositions()).not_started_no_app, 1)
  })

  test('of a purchase begins nothing by the word of a device', async () => {
    await stage.publish(serverDraft({ type: 'event', eventName: '$purchase_completed' }))
    const who = randomUUID()
    await stage.send(who, '$purchase_completed', { product_id: 'p' })
    await stage.quiet()
    assert.equal(await countOf(who), 0)
  })
})

describe('a Segment', () => {
  test('begins a journey when a customer enters or leaves it, once for each time, and not by its definition', async () => {
    const before = randomUUID()
    await stage.send(before, 'opened', { $set: { plan: 'trial' } })
    await stage.quiet()
    const where = { property: { key: 'plan', op: 'eq', value: 'trial' } }
    const { id } = await stage.project.post('/segments', {
      ...{ project_id: stage.project.id, name: 'Trial', definition: { version: 1, where } },
    })
    await eventually(async () => (await stage.project.get(`/segments/${id}`)).status === 'ready')
    const entering = await stage.publish(serverDraft({ type: 'segment_enter', segmentId: id }))
    const leaving = await stage.publish(serverDraft({ type: 'segment_leave', segmentId: id }))
    const who = randomUUID()
    await stage.send(who, 'opened', { $set: { plan: 'trial' } })
    await becomes(who, 1)
    await stage.send(who, 'opened', { $set: { plan: 'trial' } })
    await stage.send(who, 'opened', { $set: { plan: 'pro' } })
    await becomes(who, 2)
    await stage.send(who, 'opened', { $set: { plan: 'trial' } })
    await becomes(who, 3)
    const journeys = await stage.journeysOf(who)
    assert.deepEqual(
      journeys.map(({ origin, experience_id }) => [origin, experience_id]).toReversed(),
      [entering, leaving, entering].map((of) => ['segment', of.id]),
    )
    assert.match(journeys[0].occurrence, new RegExp(`^seg:${id}:[0-9]+$`))
    await stage.quiet()
    assert.equal(await countOf(before), 0)
  })
})
