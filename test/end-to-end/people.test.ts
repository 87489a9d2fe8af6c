import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { anEvent, eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft } from '../journeys/stage.ts'
import type { Device } from '../reference-client/device.ts'
import { armsOf, journeyOf, openWorld, reportsOf, type World } from './world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const world = await openWorld(service)
const { project, app } = world
await world.publish(deviceDraft())

async function waiting(phone: Device, in_: World = world): Promise<string> {
  await phone.sync()
  phone.capture('signup_done')
  const journeyId = journeyOf(phone)
  await phone.flush()
  await in_.journeyIs(journeyId, ({ status }) => status === 'waiting')
  return journeyId
}

test('who logs in on the way finds the journey under the new id, and reports of the old one still count', async () => {
  const [anonymous, identified] = [randomUUID(), `${randomUUID()}@example.com`]
  const before = world.device(anonymous)
  const journeyId = await waiting(before)
  const login = { event: '$identify', $anon_distinct_id: anonymous }
  assert.equal((await app.post('/event', anEvent(identified, login))).status, 200)
  const { id } = await eventually(async () => {
    const customer = await world.customerOf(anonymous)
    return customer.distinct_ids.length === 2 && customer
  })
  assert.equal((await world.journey(journeyId)).customer_id, id)
  await project.post(`/journeys/${journeyId}/advance`, {})
  const after = world.device(identified)
  for (const device of [before, after]) {
    await world.synced(device, () => armsOf(device).onward.length === 1)
    assert.deepEqual(armsOf(device), { fresh: 0, onward: [{ journeyId, generation: 1 }] })
  }
  before.foreground()
  await before.flush()
  await world.journeyIs(journeyId, ({ status }) => status === 'ended')
  await world.synced(after, ({ armedLegs }) => armedLegs.length === 0)
})

test('a customer who is deleted on the way gets nothing more, and reports of theirs begin nothing', async () => {
  const who = randomUUID()
  const phone = world.device(who)
  const journeyId = await waiting(phone)
  await project.post(`/journeys/${journeyId}/advance`, {})
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  phone.foreground()
  const { id } = await world.customerOf(who)
  await project.delete(`/customers/${id}`)
  const { status, body } = await app.post('/profile', { distinct_id: who })
  assert.deepEqual([status, body.code], [410, 'customer_deleted'])
  await phone.flush()
  await eventually(async () => (await world.call('GET', `/journeys/${journeyId}`)).status === 404, 20_000)
  await world.quiet()
  assert.equal((await world.call('GET', `/journeys/${journeyId}`)).status, 404)
})

test('who is held out runs nothing from the very first profile on, is counted once, and is offered nothing again', async () => {
  const there = await openWorld(service)
  const variants = [
    { id: 'in', weight: 0.5, is_holdout: false },
    { id: 'out', weight: 0.5, is_holdout: true },
  ]
  const body = { project_id: there.project.id, key: 'held', kind: 'holdout', variants }
  const { id } = await there.project.post('/experiments', body)
  await there.project.post(`/experiments/${id}/start`, {})
  await there.publish(deviceDraft({}, { holdout: id }))
  const seen = { in: 0, out: 0 }
  for (let n = 0; n < 30 && (seen.in === 0 || seen.out === 0); n += 1) {
    const who = `u${n}`
    const phone = there.device(who)
    // The first that anybody hears of them.
    await phone.sync()
    const given = phone.profile()?.facts.assignments[id] as { variantId: string; isHoldout: boolean }
    phone.capture('signup_done')
    const journeyId = journeyOf(phone)
    assert.equal(reportsOf(phone)[1]?.properties.outcome, given.isHoldout ? 'holdout' : 'later')
    assert.equal(phone.outbox().filter(({ event }) => event === 'welcome_offered').length, given.isHoldout ? 0 : 1)
    await phone.flush()
    const status = given.isHoldout ? 'ended' : 'waiting'
    const journey = await there.journeyIs(journeyId, (one) => one.status === status)
    const [row] = (await there.project.get(`/experiments/${id}/assignments?customer_id=${journey.customer_id}`)).data
    assert.deepEqual([row.variant_id, row.is_holdout], [given.variantId, given.isHoldout])
    await there.synced(phone, ({ armedLegs }) => armedLegs.length === 0)
    seen[given.isHoldout ? 'out' : 'in'] += 1
  }
  await eventually(async () => {
    const { variants: results } = await there.project.get(`/experiments/${id}/results`)
    const units = Object.fromEntries(results.map((one: { id: string; units: number }) => [one.id, one.units]))
    return units.in === seen.in && units.out === seen.out
  }, 20_000)
})
