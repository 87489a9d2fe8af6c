import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { deviceDraft } from '../journeys/stage.ts'
import type { Device } from '../reference-client/device.ts'
import { armsOf, journeyOf, openWorld, reportsOf, type World } from './world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const named = (name: string) => {
  const draft = deviceDraft()
  return { ...draft, metadata: { ...draft.metadata, name } }
}

const at = (world: World, key: string, verb: string) => `/experiences/${key}/${verb}?project_id=${world.project.id}`

/** A device whose journey waits on the server, and its id. */
async function waiting(world: World, who: string = randomUUID()): Promise<{ phone: Device; journeyId: string }> {
  const phone = world.device(who)
  assert.deepEqual(await phone.sync(), { kind: 'taken' })
  phone.capture('signup_done')
  const journeyId = journeyOf(phone)
  await phone.flush()
  await world.journeyIs(journeyId, ({ status }) => status === 'waiting')
  return { phone, journeyId }
}

const advance = (world: World, journeyId: string) => world.project.post(`/journeys/${journeyId}/advance`, {})

/** Versions that the arms of a device are of, those of new journeys first. */
const versionsOf = (device: Device) =>
  [...(device.profile()?.armedLegs ?? [])]
    .toSorted((a, b) => (String(a.binding.type) < String(b.binding.type) ? 1 : -1))
    .map(({ reference }) => reference.versionId)

async function ends(world: World, phone: Device, journeyId: string): Promise<void> {
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  phone.foreground()
  await phone.flush()
  await world.journeyIs(journeyId, ({ status, end_reason: reason }) => status === 'ended' && reason === 'completed')
}

test('a journey ends on the version it began with, over a new version, a rollback and an unpublishing', async () => {
  const world = await openWorld(service)
  const one = await world.publish(named('One'))
  const { phone, journeyId } = await waiting(world)
  const two = await one.publish(named('Two'))
  const newcomer = world.device(randomUUID())
  await newcomer.sync()
  assert.deepEqual(versionsOf(newcomer), [two.versionId])
  await advance(world, journeyId)
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  assert.deepEqual(versionsOf(phone), [one.versionId])

  await world.project.post(at(world, one.key, `versions/${one.versionId}/activate`), {})
  await world.synced(newcomer, () => versionsOf(newcomer)[0] === one.versionId)
  await world.project.post(at(world, one.key, 'unpublish'), {})
  await world.synced(newcomer, ({ armedLegs }) => armedLegs.length === 0)
  assert.equal((await world.journey(journeyId)).version_id, one.versionId)
  await ends(world, phone, journeyId)
})

test('a device that fetched the older version before may still begin it after a new one: it runs on that', async () => {
  const world = await openWorld(service)
  const one = await world.publish(named('One'))
  const phone = world.device(randomUUID())
  assert.deepEqual(await phone.sync(), { kind: 'taken' })
  await one.publish(named('Two'))
  phone.capture('signup_done')
  const journeyId = journeyOf(phone)
  await phone.flush()
  const { version_id: versionId } = await world.journeyIs(journeyId, ({ status }) => status === 'waiting')
  assert.equal(versionId, one.versionId)
  await advance(world, journeyId)
  await ends(world, phone, journeyId)
})

test('a section that is moved while a device runs it: what the device says of it comes late, and the section counts once', async () => {
  const world = await openWorld(service)
  const one = await world.publish(named('One'))
  const { phone, journeyId } = await waiting(world)
  await advance(world, journeyId)
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  phone.foreground()
  assert.equal(reportsOf(phone).length, 2)
  const two = await one.publish(named('Two'), { in_flight: 'move_armed' })
  const moved = await world.journeyIs(journeyId, ({ generation }) => generation === 2)
  await phone.flush()
  await world.quiet()
  const { status, rev, version_id: versionId } = await world.journey(journeyId)
  assert.deepEqual([status, rev, versionId], ['armed', moved.rev, two.versionId])

  await world.synced(phone, () => armsOf(phone).onward[0]?.generation === 2)
  await ends(world, phone, journeyId)
  assert.deepEqual(
    (await world.legs(journeyId)).map(({ generation, status, outcome, dispositions }) => [
      ...[generation, status, outcome],
      ...dispositions,
    ]),
    [
      [2, 'completed', 'greeted'],
      [1, 'withdrawn', 'greeted', 'late', 'late'],
      [0, 'completed', 'later'],
    ],
  )
  const heard = (await world.transitions(journeyId)).filter(({ input }) => input.kind === 'legCompleted')
  assert.deepEqual(
    heard.map(({ input }) => input.generation),
    [2, 0],
  )
})

test('paused, nobody enters; held, nothing goes on; resumed, everything does', async () => {
  const world = await openWorld(service)
  const { key } = await world.publish(named('One'))
  const { phone, journeyId } = await waiting(world)
  await advance(world, journeyId)
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  await world.project.post(at(world, key, 'pause'), {})
  const newcomer = world.device(randomUUID())
  await newcomer.sync()
  assert.deepEqual(armsOf(newcomer), { fresh: 0, onward: [] })
  assert.deepEqual(await phone.sync(), { kind: 'unchanged' })
  assert.deepEqual(armsOf(phone).onward, [{ journeyId, generation: 1 }])

  await world.project.post(at(world, key, 'resume'), {})
  await world.project.post(at(world, key, 'pause'), { in_flight: 'hold' })
  await world.synced(phone, () => armsOf(phone).onward.length === 0)
  assert.equal((await world.journey(journeyId)).held, true)
  await world.project.post(at(world, key, 'resume'), {})
  await world.synced(newcomer, () => armsOf(newcomer).fresh === 1)
  await ends(world, phone, journeyId)
})

test('a key that takes over signs what is live and what goes on; a device with both keys takes every profile', async () => {
  const world = await openWorld(service)
  const one = await world.publish(named('One'))
  const { phone, journeyId } = await waiting(world, 'goes on')
  const two = await one.publish(named('Two'))
  await advance(world, journeyId)
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  const newcomer = world.device('is new')
  await newcomer.sync()
  const old = newcomer.profile()
  const key = await world.project.post('/signing_keys', { project_id: world.project.id })
  await world.shipKeys()
  await world.project.post(`/signing_keys/${key.id}/activate`, {})
  for (const [who, device] of [
    ['goes on', phone],
    ['is new', newcomer],
  ] as const) {
    // The old key is unknown from now on: what it signed would be refused.
    const later = world.device(who, { keys: new Map([...world.keys].filter(([id]) => id === key.key_id)) })
    await world.synced(later, ({ armedLegs }) => armedLegs.length > 0)
    assert.deepEqual(await device.sync(), { kind: 'taken' })
    assert.deepEqual(await device.sync(), { kind: 'unchanged' })
  }
  assert.deepEqual(versionsOf(newcomer), [two.versionId])
  assert.deepEqual(newcomer.profile()?.releases, old?.releases)
  await ends(world, phone, journeyId)
})

test('a device begins, after another key took over, what it had fetched before: its journey goes on when the old key is revoked', async () => {
  const world = await openWorld(service)
  const { project } = world
  const one = await world.publish(named('One'))
  const phone = world.device(randomUUID())
  assert.deepEqual(await phone.sync(), { kind: 'taken' })
  await one.publish(named('Two'))
  const [old] = (await project.get(`/signing_keys?project_id=${project.id}`)).data
  const key = await project.post('/signing_keys', { project_id: project.id })
  await world.shipKeys()
  await project.post(`/signing_keys/${key.id}/activate`, {})
  phone.capture('signup_done')
  const journeyId = journeyOf(phone)
  await phone.flush()
  await world.journeyIs(journeyId, ({ status }) => status === 'waiting')
  await project.post(`/signing_keys/${old.id}/revoke`, {})
  await advance(world, journeyId)
  await ends(world, phone, journeyId)
})
