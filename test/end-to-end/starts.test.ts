import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { anEvent, eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft, serverDraft } from '../journeys/stage.ts'
import type { Device } from '../reference-client/device.ts'
import { armsOf, openWorld, reportsOf, type World } from './world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

/** The one leg that the service offers is run, and the journey ends with it. */
async function runs(world: World, phone: Device, journeyId?: string): Promise<void> {
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  const [arm] = armsOf(phone).onward
  assert.equal(arm?.generation, 1)
  if (journeyId !== undefined) assert.equal(arm.journeyId, journeyId)
  phone.foreground()
  assert.deepEqual(
    reportsOf(phone).map(({ properties }) => properties.journey_id),
    [arm.journeyId, arm.journeyId],
  )
  await phone.flush()
  await world.journeyIs(arm.journeyId, ({ status }) => status === 'ended')
  await world.synced(phone, ({ armedLegs }) => armedLegs.length === 0)
}

/** A Segment of who is on trial, as soon as it is kept. */
async function trials({ project }: World): Promise<string> {
  const definition = { version: 1, where: { property: { key: 'plan', op: 'eq', value: 'trial' } } }
  const { id } = await project.post('/segments', { project_id: project.id, name: 'Trials', definition })
  await eventually(async () => (await project.get(`/segments/${id}`)).status === 'ready', 10_000)
  return id
}

test('a backend starts one, asks again, and one device runs it once', async () => {
  const world = await openWorld(service)
  const { id } = await world.publish(serverDraft({ type: 'api' }))
  const who = randomUUID()
  const phone = world.device(who)
  await phone.sync()
  assert.deepEqual(armsOf(phone), { fresh: 0, onward: [] })
  const start = () =>
    world.call('POST', `/experiences/${id}/start`, {
      body: { app_id: world.app.id, distinct_id: who, context: { source: 'order' } },
      headers: { 'idempotency-key': 'order-1' },
    })
  const answers = await Promise.all([start(), start(), start()])
  const statuses = answers.map(({ body }) => String(body.status))
  assert.deepEqual(
    statuses.toSorted((a, b) => a.localeCompare(b)),
    ['coalesced', 'coalesced', 'started'],
  )
  assert.equal(new Set(answers.map(({ body }) => body.journey_id)).size, 1)
  await runs(world, phone, answers[0]?.body.journey_id)
  const again = await start()
  assert.deepEqual([again.body.status, again.body.journey_id], ['coalesced', answers[0]?.body.journey_id])
  assert.deepEqual(await phone.sync(), { kind: 'unchanged' })
})

test('an event starts one on the service, the same event sent again does not', async () => {
  const world = await openWorld(service)
  await world.publish(serverDraft({ type: 'event', eventName: 'order_paid' }))
  const who = randomUUID()
  const phone = world.device(who)
  const event = anEvent(who, { event: 'order_paid', properties: { source: 'shop' } })
  for (let n = 0; n < 3; n += 1) assert.equal((await world.app.post('/event', event)).status, 200)
  await runs(world, phone)
  await world.quiet()
  assert.equal((await world.journeysOf(who)).length, 1)
})

test('a Segment that is entered starts one: on the service at once, on a device with its next profile', async () => {
  const world = await openWorld(service)
  const segment = await trials(world)
  const trigger = { type: 'segment_enter', segmentId: segment }
  await world.publish(serverDraft(trigger))
  const who = randomUUID()
  const phone = world.device(who)
  await world.send(who, 'opened')
  await world.synced(phone, ({ armedLegs }) => armedLegs.length === 0)
  await world.send(who, 'trial_started', { $set: { plan: 'trial' } })
  await runs(world, phone)

  const onDevice = await openWorld(service)
  const there = await trials(onDevice)
  await onDevice.publish(deviceDraft({ trigger: { type: 'segment_enter', segmentId: there } }))
  const tablet = onDevice.device(who)
  await onDevice.send(who, 'opened')
  await onDevice.synced(tablet, ({ armedLegs }) => armedLegs.length === 0)
  await onDevice.send(who, 'trial_started', { $set: { plan: 'trial' } })
  // The profile that arms it is the occasion: the leg has run when it is taken.
  await onDevice.synced(tablet, ({ armedLegs }) => armedLegs.length === 1)
  const [started] = reportsOf(tablet)
  await tablet.flush()
  await onDevice.journeyIs(String(started?.properties.journey_id), ({ status }) => status === 'waiting')
  await onDevice.synced(tablet, ({ armedLegs }) => armedLegs.length === 0)
})
