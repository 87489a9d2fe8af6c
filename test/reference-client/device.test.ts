import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { emptyProfile, profileOf, type Sample, sha256, trusted } from '../conformance/samples/publish.ts'
import { farewell, welcome } from '../conformance/samples/welcome.ts'
import { type Device, openDevice } from './device.ts'
import type { Reply, Transport } from './outbox.ts'

/** A line to nobody: what it answers is set by the test, what was asked is kept. */
function line() {
  const asked: { path: string; body: Sample; headers: Record<string, string> }[] = []
  let next: Sample = emptyProfile()
  let authority = { appId: 'app_demo_ios', environment: 'test' }
  const answer = (status: number, body: Sample, headers: Record<string, string> = {}): Reply => {
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
    return { status, headers: new Headers(headers), bytes }
  }
  const transport: Transport = async (path, sent, headers) => {
    const body = JSON.parse(typeof sent === 'string' ? sent : gunzipSync(sent).toString())
    asked.push({ path, body, headers })
    if (path === '/batch')
      return answer(200, { status: 'ok', total: body.batch.length, processed: body.batch.length, failed: 0 })
    const tag = `"${sha256(JSON.stringify(next))}"`
    const named = { etag: tag, 'service-app-id': authority.appId, 'service-app-environment': authority.environment }
    return headers['if-none-match'] === tag ? answer(304, undefined, named) : answer(200, next, named)
  }
  return {
    asked,
    transport,
    deliver: (profile: Sample) => {
      next = profile
    },
    move: (appId: string) => {
      authority = { ...authority, appId }
    },
  }
}

const clock = { nowMs: Date.parse('2026-11-20T10:00:00.000Z') }
const deviceOn = (transport: Transport): Device =>
  openDevice({
    ...{ apiKey: 'pk', distinctId: 'ada', namespace: 'service', mode: 'clients', keys: trusted, transport },
    now: () => clock.nowMs,
  })
const namesOf = (device: Device) => device.outbox().map(({ event }) => event)

describe('a device', () => {
  test('runs a new leg when its event happens, and reports the start, the events and the end', async () => {
    const { transport, deliver, asked } = line()
    deliver(profileOf([welcome()], { facts: factsWith(null) }))
    const device = deviceOn(transport)
    assert.deepEqual(await device.sync(), { kind: 'taken' })
    device.capture('something_else')
    device.capture('signup_done', { source: 'mail', other: 1 })
    const [, , started, offered, completed] = device.outbox()
    assert.deepEqual(namesOf(device).slice(2), ['$journey_leg_started', 'welcome_offered', '$journey_leg_completed'])
    assert.deepEqual([started?.properties.leg_generation, completed?.properties.outcome], [0, 'continue'])
    assert.deepEqual(completed?.properties.outputs, { event: { source: 'mail' }, responses: {} })
    assert.equal(offered?.journeyOrigin?.occurrenceId, offered?.idempotency_key)
    assert.match(
      String(started?.properties.journey_id),
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    await device.flush()
    assert.deepEqual(device.outbox(), [])
    assert.equal(asked.at(-1)?.body.batch.length, 5)
  })

  test('enrols once where it may enrol once, however often the event comes', async () => {
    const { transport, deliver } = line()
    deliver(profileOf([welcome()], { facts: factsWith(null) }))
    const device = deviceOn(transport)
    await device.sync()
    for (let count = 0; count < 3; count += 1) device.capture('signup_done')
    assert.equal(namesOf(device).filter((event) => event === '$journey_leg_started').length, 1)
  })

  test('does not start where the condition is false', async () => {
    const { transport, deliver } = line()
    deliver(profileOf([welcome()], { facts: factsWith('pro') }))
    const device = deviceOn(transport)
    await device.sync()
    device.capture('signup_done')
    assert.deepEqual(namesOf(device), ['signup_done'])
  })

  test('goes on with a journey under its id and generation, once', async () => {
    const { transport, deliver } = line()
    const journeyId = '01936f3a-0000-7000-8000-000000000001'
    deliver(profileOf([farewell()], { arms: [{ binding: { type: 'continue', journeyId, generation: 3 } }] }))
    const device = deviceOn(transport)
    await device.sync()
    device.foreground()
    device.foreground()
    const started = device.outbox().filter(({ event }) => event === '$journey_leg_started')
    assert.deepEqual(
      started.map(({ properties }) => [properties.journey_id, properties.leg_generation]),
      [[journeyId, 3]],
    )
  })

  test('asks with its tag, and keeps what it has when nothing changed', async () => {
    const { transport, asked } = line()
    const device = deviceOn(transport)
    await device.sync()
    assert.deepEqual(await device.sync(), { kind: 'unchanged' })
    assert.equal(asked[0]?.headers['if-none-match'], undefined)
    assert.ok(asked[1]?.headers['if-none-match'])
  })

  test('keeps its profile, Features included, when one thing in a new one is wrong', async () => {
    const { transport, deliver, move } = line()
    deliver(profileOf([welcome()]))
    const device = deviceOn(transport)
    await device.sync()
    const before = device.profile()
    const older = welcome()
    older.identity.publishedAtSeq = 41
    for (const wrong of [{ ...emptyProfile(), more: 1 }, profileOf([older]), 7]) {
      deliver(wrong)
      assert.equal((await device.sync()).kind, 'refused')
    }
    deliver(emptyProfile())
    move('another')
    assert.equal((await device.sync()).kind, 'refused')
    assert.equal(device.profile(), before)
  })
})

function factsWith(plan: string | null): Sample {
  const value = plan === null ? { present: false } : { present: true, value: plan }
  return { properties: { plan: value }, memberships: {}, assignments: { xp_hello: null } }
}
