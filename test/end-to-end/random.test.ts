import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { anEvent } from '../app/project.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft } from '../journeys/stage.ts'
import type { Device } from '../reference-client/device.ts'
import { armsOf, lineTo, openWorld, type World } from './world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const often = ['sync', 'sign up', 'front', 'flush', 'advance'] as const
const seldom = ['publish', 'move', 'rollback', 'pause', 'resume', 'rotate', 'log in'] as const
type Act = (typeof often | typeof seldom)[number]

const act = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...often) },
  { weight: 1, arbitrary: fc.constantFrom(...seldom) },
)

const plays = fc.array(fc.record({ act, by: fc.nat(5), lost: fc.boolean() }), {
  minLength: 40,
  maxLength: 60,
})

/** Three customers with two devices each, whose lines are cut after any call that is to be lost. */
async function cast() {
  const world = await openWorld(service)
  const names = Array.from({ length: 3 }, () => randomUUID())
  let lost = false
  const transport = lineTo(service, () => lost)
  const devices = names.flatMap((name) => [world.device(name, { transport }), world.device(name, { transport })])
  for (const name of names) assert.equal((await world.app.post('/event', anEvent(name))).status, 200)
  const lose = (next: boolean) => {
    lost = next
  }
  return { world, names, devices, lose }
}

const syncs = async (device: Device) => {
  const synced = await device.sync().catch(() => undefined) // the answer was lost
  assert.notEqual(synced?.kind, 'refused', JSON.stringify(synced))
}

const drain = async (device: Device) => {
  for (let call = 0; device.outbox().length > 0 && call < 20; call += 1) await device.flush()
  assert.deepEqual(device.outbox(), [])
}

const advanceAll = async (world: World, names: string[]) => {
  for (const name of names) {
    const waiting = (await world.journeysOf(name)).filter(({ status }) => status === 'waiting')
    for (const { id } of waiting) await world.call('POST', `/journeys/${id}/advance`)
  }
}

let ended = 0

test('whatever happens in whatever order, every profile is taken, every journey ends, and no leg counts twice', async () => {
  await fc.assert(
    fc.asyncProperty(plays, async (play) => {
      const { world, names, devices, lose } = await cast()
      const { project } = world
      const draft = deviceDraft({ frequency: { type: 'every_match' } })
      let live = await world.publish(draft)
      const versions = [live.versionId]
      const publish = async (inFlight: string) => {
        live = await live.publish({ ...draft, priority: versions.length }, { in_flight: inFlight })
        versions.push(live.versionId)
      }
      const at = (verb: string) => `/experiences/${live.key}/${verb}?project_id=${project.id}`
      const run: Record<Act, (device: Device) => unknown> = {
        sync: syncs,
        'sign up': (device) => device.capture('signup_done', { source: 'x' }),
        front: (device) => device.foreground(),
        flush: (device) => device.flush(),
        advance: () => advanceAll(world, names),
        publish: () => publish('finish'),
        move: () => publish('move_armed'),
        'log in': () => world.send(names[0] ?? '', '$identify', { $anon_distinct_id: names[1] }),
        rollback: () => world.call('POST', at(`versions/${versions[0]}/activate`), { body: {} }),
        pause: () => world.call('POST', at('pause'), { body: { in_flight: 'hold' } }),
        resume: () => world.call('POST', at('resume'), { body: {} }),
        async rotate() {
          const { id } = await project.post('/signing_keys', { project_id: project.id })
          await world.shipKeys()
          await project.post(`/signing_keys/${id}/activate`, {})
        },
      }
      for (const device of devices) await syncs(device)
      for (const { act, by, lost } of play) {
        lose(lost)
        await run[act](devices[by] ?? assert.fail('there are six'))
      }

      // The end: everything is heard, and everybody comes to the front until nothing is left to go on with.
      lose(false)
      await run.resume(devices[0] ?? assert.fail('there are six'))
      for (let round = 0; round < 10; round += 1) {
        for (const device of devices) await drain(device)
        await world.quiet()
        await advanceAll(world, names)
        for (const device of devices) {
          await syncs(device)
          device.foreground()
        }
        if (devices.every((device) => device.outbox().length === 0 && armsOf(device).onward.length === 0)) break
      }
      for (const name of names) {
        for (const { id, status, end_reason: reason } of await world.journeysOf(name)) {
          assert.deepEqual([status, reason], ['ended', 'completed'], id)
          const legs = (await world.legs(id)).toSorted((a, b) => a.generation - b.generation)
          assert.deepEqual(
            legs.map(({ generation }) => generation),
            legs.map((_, index) => index),
          )
          // The first section and the second, whatever was offered in between and moved.
          const done = legs.filter(({ status }) => status === 'completed').map(({ section_key: key }) => key)
          assert.deepEqual(done, ['tell', 'again'], id)
          // A device may run an offer while it is moved: what was said of that is kept with it, as late.
          for (const { status, completed_at: at, dispositions } of legs)
            if (status !== 'completed')
              assert.deepEqual([status, at !== null], ['withdrawn', dispositions.length > 0], id)
          const told = (await world.transitions(id)).map(({ input }) => input.kind)
          assert.equal(told.filter((kind) => kind === 'enrol').length, 1, id)
          assert.equal(told.filter((kind) => kind === 'legCompleted').length, 2, id)
          ended += 1
        }
      }
    }),
    { numRuns: 3, endOnFailure: true },
  )
  assert.ok(ended > 3, `${ended} journeys have run`)
})
