import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { anEvent, eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft } from '../journeys/stage.ts'
import type { Device } from '../reference-client/device.ts'
import { armsOf, journeyOf, lineTo, openWorld, reportsOf } from './world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const world = await openWorld(service)
const { project, app } = world
await world.publish(deviceDraft())

const hourMs = 3_600_000

/** A device that ran the first section, and has said nothing yet. */
async function ran(device: Device): Promise<string> {
  assert.deepEqual(await device.sync(), { kind: 'taken' })
  device.capture('signup_done', { source: 'mail' })
  return journeyOf(device)
}

async function said(device: Device): Promise<void> {
  for (let call = 0; device.outbox().length > 0; call += 1) {
    assert.ok(call < 10, 'each call that is heard empties what it carried')
    await device.flush()
  }
}

const advance = (journeyId: string) => project.post(`/journeys/${journeyId}/advance`, {})
const isWaiting = (journeyId: string) => world.journeyIs(journeyId, ({ status }) => status === 'waiting')

test('answers that are lost double nothing: one journey, each leg once', async () => {
  const who = randomUUID()
  const phone = world.device(who, { transport: lineTo(service, (call, path) => path === '/batch' && call % 2 === 0) })
  const journeyId = await ran(phone)
  await said(phone)
  await isWaiting(journeyId)
  await advance(journeyId)
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  phone.foreground()
  await said(phone)
  await world.journeyIs(journeyId, ({ status }) => status === 'ended')
  assert.equal((await world.journeysOf(who)).length, 1)
  const legs = await world.legs(journeyId)
  assert.deepEqual(
    legs.map(({ generation, status }) => [generation, status]).toSorted(([a], [b]) => a - b),
    [
      [0, 'completed'],
      [1, 'completed'],
    ],
  )
  await eventually(async () => (await world.countOf(who, '$journey_leg_completed')) === 2)
})

test('reports in any order, twice, and under other event ids do what they do in order', async () => {
  const before = await world.dispositions()
  const who = randomUUID()
  const phone = world.device(who)
  const journeyId = await ran(phone)
  const [started, completed] = reportsOf(phone)
  const post = async (report: typeof started, uuid: string = randomUUID()) => {
    const { idempotency_key: _, ...item } = report ?? assert.fail('it was reported')
    assert.equal((await app.post('/event', anEvent(who, { ...item, uuid }))).status, 200)
  }
  const uuid = randomUUID()
  for (const again of [uuid, uuid, randomUUID()]) await post(completed, again)
  for (const again of [randomUUID(), randomUUID()]) await post(started, again)
  await isWaiting(journeyId)
  await world.quiet()
  const { status, started_at: startedAt, rev } = await world.journey(journeyId)
  assert.deepEqual([status, startedAt, rev], ['waiting', started?.properties.started_at, 2])
  const counted = await world.dispositions()
  // One event id is one event. Of two starts the first fills the time in.
  assert.equal((counted.late_start ?? 0) - (before.late_start ?? 0), 1)
  assert.equal((counted.duplicate ?? 0) - (before.duplicate ?? 0), 2)
})

test('a device that was away for nine hours begins and ends the leg at the times it says', async () => {
  const who = randomUUID()
  const phone = world.device(who, { behindMs: 9 * hourMs })
  const journeyId = await ran(phone)
  await said(phone)
  const { started_at: startedAt, next_timer: timer } = await isWaiting(journeyId)
  assert.ok(Date.now() - Date.parse(startedAt) >= 9 * hourMs)
  // The day is counted from when the service learns of it.
  assert.ok(Date.parse(timer.due_at) > Date.now() + 23 * hourMs)
  await world.synced(phone, () => armsOf(phone).fresh === 0)
})

test('a leg that the service gave up on is late when it comes in after all: nothing runs twice', async () => {
  const who = randomUUID()
  const phone = world.device(who)
  const journeyId = await ran(phone)
  const late = world.device(who)
  await said(phone)
  await isWaiting(journeyId)
  await advance(journeyId)
  await late.sync()
  late.foreground()
  assert.equal(reportsOf(late).length, 2)
  // Nobody comes to the front for as long as the section is offered.
  await advance(journeyId)
  assert.equal((await world.journey(journeyId)).status, 'ended')
  const before = await world.dispositions()
  await said(late)
  await eventually(async () => ((await world.dispositions()).late ?? 0) === (before.late ?? 0) + 2)
  const after = await world.journey(journeyId)
  assert.deepEqual([after.status, after.end_reason], ['ended', 'completed'])
})

test('two devices that go on with one leg: the first that ends it counts, and both learn of it', async () => {
  const who = randomUUID()
  const [phone, tablet] = [world.device(who), world.device(who)]
  const journeyId = await ran(phone)
  await said(phone)
  await isWaiting(journeyId)
  await advance(journeyId)
  for (const device of [phone, tablet]) {
    await world.synced(device, () => armsOf(device).onward.length === 1)
    device.foreground()
    assert.deepEqual(reportsOf(device)[0]?.properties.leg_generation, 1)
  }
  const before = await world.dispositions()
  await said(tablet)
  await said(phone)
  await world.journeyIs(journeyId, ({ status }) => status === 'ended')
  await world.quiet()
  const after = await world.dispositions()
  const inert = (all: Record<string, number>) => (all.duplicate ?? 0) + (all.late ?? 0) + (all.late_start ?? 0)
  assert.equal(inert(after) - inert(before), 2)
  for (const device of [phone, tablet]) {
    await world.synced(device, ({ armedLegs }) => armedLegs.length === 0)
    assert.deepEqual(await device.sync(), { kind: 'unchanged' })
  }
})

test('two devices that begin a one_time Experience offline: one journey runs, the other is refused', async () => {
  const who = randomUUID()
  const [phone, tablet] = [world.device(who), world.device(who)]
  const first = await ran(phone)
  const second = await ran(tablet)
  await said(phone)
  await isWaiting(first)
  await said(tablet)
  const refused = await world.journeyIs(second, ({ status }) => status === 'ended')
  assert.equal(refused.end_reason, 'refused')
  await advance(first)
  await world.synced(tablet, () => armsOf(tablet).onward.length === 1)
  assert.deepEqual(armsOf(tablet).onward, [{ journeyId: first, generation: 1 }])
})
