import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { eventually, openProject, send } from '../app/project.ts'
import { readProfile } from '../conformance/profile.ts'
import { verifyRelease } from '../conformance/release.ts'
import { armOf, bytesOf, emptyProfile, type Sample, sha256 } from '../conformance/samples/publish.ts'
import { aDraft } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage as openJourneyStage } from '../journeys/stage.ts'
import { openStage } from '../profiles/stage.ts'
import { type Device, openDevice } from './device.ts'
import type { Transport } from './outbox.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')
await project.feature('exports')

/** The real way to the service; what `losing` says of the n-th call is not heard although it was answered. */
function lineTo(losing: (call: number) => boolean = () => false): Transport {
  let calls = 0
  return async (path, body, headers) => {
    const answer = await send(service.url, 'POST', path, typeof body === 'string' ? body : Buffer.from(body), headers)
    calls += 1
    if (losing(calls)) throw new Error('the line was cut before the answer came')
    return answer
  }
}

const deviceOf = (distinctId: string, transport = lineTo(), keys = new Map<string, Uint8Array>()): Device =>
  openDevice({
    ...{ apiKey: app.key, distinctId, namespace: 'service', mode: 'clients', keys, transport },
    now: () => Date.now(),
  })

const storedCount = async (distinctId: string, event: string | null = null): Promise<number> => {
  const [row] = await service.pool.query<{ count: number }>(
    `select count(*)::int as count from event
     where scope_id = $1 and distinct_id = $2 and ($3::text is null or event = $3)`,
    [await project.scopeId(), distinctId, event],
  )
  return row?.count ?? 0
}

test('a device takes its profile, is told that nothing changed, and then of a grant', async () => {
  const device = deviceOf('ada')
  assert.deepEqual(await device.sync(), { kind: 'taken' })
  assert.deepEqual(await device.sync(), { kind: 'unchanged' })
  await project.grant('ada', { feature: 'exports', allowance: 3 })
  assert.deepEqual(await device.sync(), { kind: 'taken' })
  assert.deepEqual(
    device.profile()?.features.map(({ id, balance }) => [id, balance]),
    [['exports', 3]],
  )
})

test('events whose answers are lost are sent again and stored once', async () => {
  const distinctId = randomUUID()
  const device = deviceOf(
    distinctId,
    lineTo((call) => call % 2 === 1),
  )
  for (let count = 0; count < 120; count += 1) device.capture('tapped', { count })
  for (let call = 0; device.outbox().length > 0; call += 1) {
    assert.ok(call < 10, 'each call that is heard empties what it carried')
    await device.flush()
  }
  device.capture('last')
  await device.flush()
  await device.flush()
  // In one lane nothing that was sent before is stored after it.
  await eventually(async () => (await storedCount(distinctId, 'last')) === 1)
  assert.equal(await storedCount(distinctId), 121)
})

test('uses whose answers are lost are decided once, over two devices of one customer', async () => {
  const distinctId = randomUUID()
  await project.grant(distinctId, { feature: 'exports', allowance: 5 })
  const devices = [
    deviceOf(
      distinctId,
      lineTo((call) => call <= 3),
    ),
    deviceOf(
      distinctId,
      lineTo((call) => call === 2),
    ),
  ]
  for (const device of devices) for (let count = 0; count < 4; count += 1) device.consume('exports', 1)
  const decided: boolean[] = []
  for (let round = 0; round < 5; round += 1) {
    const settled = await Promise.all(devices.map((device) => device.settle()))
    decided.push(...settled.flat().flatMap((each) => (each.kind === 'decided' ? [each.accepted] : [])))
  }
  assert.deepEqual([decided.filter(Boolean).length, decided.length], [5, 8])
  assert.deepEqual(
    devices.map((device) => device.journal()),
    [[], []],
  )
  await devices[0]?.sync()
  assert.deepEqual(
    devices[0]?.profile()?.features.map(({ id, balance }) => [id, balance]),
    [['exports', 0]],
  )
})

test('an Experience published by the server runs on a device from leg to leg, every report taken', async () => {
  const distinctId = randomUUID()
  const releases = await publishedReleases()
  const keys = await discoveredKeys(releases)
  const [first, second] = releases.toSorted((a) => (a.descriptor.leg.entryCondition.type === 'event' ? -1 : 1))
  let profile = armed(first, { type: 'new' })
  const toService = lineTo()
  const transport: Transport = async (path, body, headers) => {
    if (path !== '/profile') return toService(path, body, headers)
    const bytes = bytesOf(profile)
    const authority = { 'service-app-id': app.id, 'service-app-environment': 'test' }
    return { status: 200, bytes, headers: new Headers({ ...authority, etag: `"${sha256(bytes)}"` }) }
  }
  const device = deviceOf(distinctId, transport, keys)
  assert.deepEqual(await device.sync(), { kind: 'taken' })
  device.capture('signup_done', { source: 'mail' })
  const [started, , completed] = reportsOf(device)
  assert.deepEqual([started?.leg_generation, completed?.outputs], [0, { event: { source: 'mail' }, responses: {} }])
  await device.flush()

  profile = armed(second, { type: 'continue', journeyId: String(started?.journey_id), generation: 1 })
  assert.deepEqual(await device.sync(), { kind: 'taken' })
  device.foreground()
  const again = reportsOf(device)
  assert.deepEqual([again[0]?.journey_id, again[0]?.leg_generation], [started?.journey_id, 1])
  assert.equal(again.at(-1)?.leg_generation, 1)
  await device.flush()
  assert.deepEqual(device.outbox(), [])
  await eventually(async () => (await storedCount(distinctId, '$journey_leg_completed')) === 2)
})

test('a release that was delivered is refused once any single bit of it is another', async () => {
  const { publish, profile } = await openStage(service)
  await publish()
  const [release] = (await profile('ada')).body.releases
  const reader = { namespace: 'service', mode: 'clients' as const, keys: await discoveredKeys([release]) }
  assert.ok('verified' in verifyRelease(release, reader))
  const bytes = Buffer.from(JSON.stringify(release))
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    const read = parsed(changed.toString('latin1'))
    assert.ok(
      read === undefined || 'refused' in verifyRelease(read, reader),
      `bit ${bit}: ${changed.toString('latin1')}`,
    )
  }
})

test('a release of another app, environment or key is refused, under its own name and under a borrowed one', async () => {
  const { publish, profile, project: ours, app: here, rotate } = await openStage(service)
  const [sibling, live] = [await ours.app('ios'), await ours.app('ios', 'live')]
  await publish()
  const inLive = await openJourneyStage(service, { environment: 'live', of: { project: ours, app: live } })
  await inLive.publish(aDraft())
  const strangers = await openStage(service)
  await strangers.publish()
  const own = (await profile('ada')).body.releases[0]
  const others = [await profile('ada', {}, live), await strangers.profile('ada')]
  const all = await discoveredKeys([own, ...others.map(({ body }) => body.releases[0])])
  const shipped = new Map([...all].filter(([id]) => id === own.envelope.signature.keyId))
  const read = (bytes: Uint8Array, keys: ReadonlyMap<string, Uint8Array>) => {
    const authority = { appId: here.id, environment: 'test' }
    const judged = readProfile(bytes, { namespace: 'service', mode: 'clients', keys, authority, highest: new Map() })
    return 'problems' in judged ? judged.problems.map(({ rule }) => rule) : []
  }
  const [unknownKey, otherPlace] = [
    'is a key that the reader holds',
    'is of the app and environment that the headers name',
  ]
  const profiles = {
    own: (await profile('ada')).bytes,
    sibling: (await profile('ada', {}, sibling)).bytes,
    live: (await profile('ada', {}, live)).bytes,
    stranger: (await strangers.profile('ada')).bytes,
  }
  assert.deepEqual(read(profiles.own, shipped), [])
  assert.deepEqual(read(profiles.sibling, shipped), [otherPlace])
  for (const bytes of [profiles.live, profiles.stranger]) {
    assert.deepEqual(read(bytes, shipped), [unknownKey])
    assert.deepEqual(read(bytes, all), [otherPlace])
  }

  const stepOf = ({ locator, envelope }: Sample) => {
    const outcome = verifyRelease({ locator, envelope }, { namespace: 'service', mode: 'clients', keys: shipped })
    return 'refused' in outcome ? outcome.refused.step : 'verified'
  }
  const releaseIn = (bytes: Uint8Array): Sample => JSON.parse(Buffer.from(bytes).toString()).releases[0]
  const { keyId } = own.envelope.signature
  assert.equal(stepOf({ ...releaseIn(profiles.sibling), locator: own.locator }), 'identity')
  for (const bytes of [profiles.live, profiles.stranger]) {
    const { envelope } = releaseIn(bytes)
    const borrowed = { ...envelope, signature: { ...envelope.signature, keyId } }
    assert.equal(stepOf({ locator: own.locator, envelope: borrowed }), 'ed25519')
    assert.equal(
      stepOf({ locator: own.locator, envelope: { ...borrowed, signature: own.envelope.signature } }),
      'ed25519',
    )
  }
  await rotate()
  const [successor] = (await profile('ada')).body.releases
  assert.equal(stepOf(successor), 'keyId')
})

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // nobody reads that at all
  }
}

const reportsOf = (device: Device) =>
  device.outbox().flatMap(({ properties }) => ('journey_id' in properties ? [properties] : []))

/** Armed by hand: what the server published, as the server will arm it. */
function armed({ descriptor, locator, envelope }: Sample, binding: Sample): Sample {
  const release = { locator, envelope }
  return { ...emptyProfile(), armedLegs: [armOf(descriptor, release, { binding })], releases: [release] }
}

async function publishedReleases(): Promise<Sample[]> {
  const place = { project_id: project.id }
  const { id } = await project.post('/signing_keys', place)
  await project.post(`/signing_keys/${id}/activate`, {})
  await project.post('/experiences', { ...place, key: 'welcome', name: 'Welcome' })
  const at = (path: string) => `/experiences/welcome/${path}?project_id=${project.id}`
  const saved = await service.workspace('PUT', at('draft'), { body: aDraft(), headers: { 'if-match': '0' } })
  assert.equal(saved.status, 200)
  await project.post(at('versions'), {})
  const legs = await service.pool.query<{ id: string }>(
    'select distinct descriptor_sha256 as id from publication_leg where scope_id = $1',
    [await project.scopeId()],
  )
  assert.equal(legs.length, 2)
  return Promise.all(legs.map((leg) => project.get(`/releases/${leg.id}`)))
}

/** Of all that is published; those of these releases may be seconds late. */
async function discoveredKeys(releases: Sample[] = []): Promise<Map<string, Uint8Array>> {
  const wanted = releases.map(({ envelope }) => envelope.signature.keyId)
  const keys = new Map<string, Uint8Array>()
  await eventually(async () => {
    const { body } = await send(service.url, 'GET', '/.well-known/release-keys', undefined)
    for (const { kid, x } of body.keys) keys.set(kid, Buffer.from(x, 'base64url'))
    return wanted.every((id) => keys.has(id))
  }, 20_000)
  return keys
}
