import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { bodyBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { anEvent, assertRefused, eventually, openProject } from './project.ts'

const settings = { RENDER_BASE_URL: 'https://cdn.example.test/r/', ASSET_BASE_URL: 'https://cdn.example.test/a/' }
const service = await startService(settings)
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')
await project.feature('pro', { type: 'boolean' })
await project.feature('exports')
await project.feature('chat')
await project.feature('credits', { type: 'creditSystem', credit_costs: [{ feature: 'chat', cost: '0.3' }] })

const grant = (distinctId: string, feature: string, more: object = {}) =>
  project.grant(distinctId, { feature, ...more })

const ask = (distinctId: string, tag = '', by = app): Promise<Answer> =>
  by.post('/profile', { distinct_id: distinctId }, { 'if-none-match': tag })

async function fetchProfile(distinctId: string): Promise<{ body: Body; tag: string; bytes: Buffer }> {
  const { status, body, bytes, headers } = await ask(distinctId)
  assert.equal(status, 200, JSON.stringify(body))
  return { body, bytes, tag: headers.get('etag') ?? '' }
}

const featuresOf = async (distinctId: string): Promise<Body[]> => (await fetchProfile(distinctId)).body.features

const entry = (id: string, type: string, balance: number | null, unlimited = false) => {
  return { id, type, balance, unlimited, nextResetAt: null, interval: null }
}

const consume = (customerId: string, featureId: string, quantity: number) =>
  app.post('/feature/consume', { customerId, featureId, operationId: randomUUID(), quantity })

describe('POST /profile, 200', () => {
  test('of somebody unknown is whole and empty', async () => {
    const { body } = await fetchProfile('stranger')
    assert.deepEqual(body, {
      schemaVersion: 'service.journey-plane-profile.v2',
      status: 'ok',
      delivery: { renderBaseUrl: 'https://cdn.example.test/r/', assetBaseUrl: 'https://cdn.example.test/a/' },
      features: [],
      facts: { properties: {}, memberships: {}, assignments: {} },
      armedLegs: [],
      releases: [],
    })
  })

  test('names the app and environment of the key, and is private and to be asked about again', async () => {
    const live = await project.app('android', 'live')
    for (const by of [app, live]) {
      const { headers } = await ask('stranger', '', by)
      assert.equal(headers.get('service-app-id'), by.id)
      assert.equal(headers.get('service-app-environment'), by.environment)
      assert.equal(headers.get('cache-control'), 'private, no-cache')
    }
  })

  test('lists what the customer has access to, by key in the order of code units', async () => {
    for (const key of ['b', 'B', 'ab', 'a', '😀', '\uffee', 'é', '1']) {
      await project.feature(key, { type: 'boolean' })
      await grant('sorted', key)
    }
    const listed = (await featuresOf('sorted')).map(({ id }) => id)
    assert.deepEqual(listed, ['1', 'B', 'a', 'ab', 'b', 'é', '😀', '\uffee'])
  })

  test('of a boolean Feature being listed is the access, without a balance', async () => {
    await grant('b', 'pro')
    assert.deepEqual(await featuresOf('b'), [entry('pro', 'boolean', null)])
  })

  test('shows balances in units of the Feature, credits also as units of what they pay for', async () => {
    await grant('m', 'exports', { allowance: 5 })
    await grant('m', 'credits', { allowance: 10 })
    assert.deepEqual(await featuresOf('m'), [
      entry('chat', 'metered', 33),
      entry('credits', 'creditSystem', 10),
      entry('exports', 'metered', 5),
    ])
  })

  test('lists a Feature with nothing left while its grant is live, and an unlimited one without balance', async () => {
    await grant('zero', 'exports', { allowance: 1 })
    await consume('zero', 'exports', 1)
    await grant('zero', 'credits', { unlimited: true })
    assert.deepEqual(await featuresOf('zero'), [
      entry('chat', 'metered', null, true),
      entry('credits', 'creditSystem', null, true),
      entry('exports', 'metered', 0),
    ])
  })

  test('leaves out what is not live, not published, for other platforms, or an entity’s alone', async () => {
    await project.feature('camera', { platforms: ['web'] })
    await project.feature('archived')
    await grant('few', 'camera', { allowance: 1 })
    await grant('few', 'archived', { allowance: 1 })
    await grant('few', 'exports', { allowance: 1, entity_id: 'seat' })
    await grant('few', 'pro', { starts_at: '2100-01-01T00:00:00.000Z' })
    await project.post(`/features/archived/archive?project_id=${project.id}`)
    assert.deepEqual(await featuresOf('few'), [])
    const web = await project.app('web')
    assert.deepEqual((await ask('few', '', web)).body.features, [entry('camera', 'metered', 1)])
  })

  test('agrees with /entitled about every Feature', async () => {
    await grant('agree', 'exports', { allowance: 7 })
    await grant('agree', 'chat', { allowance: 2 })
    await grant('agree', 'credits', { allowance: 3 })
    await grant('agree', 'pro')
    await consume('agree', 'chat', 4)
    const listed = await featuresOf('agree')
    for (const featureId of ['pro', 'exports', 'chat', 'credits']) {
      const { body } = await app.post('/entitled', { customerId: 'agree', featureId })
      const shown = listed.find(({ id }) => id === featureId)
      assert.deepEqual([shown.type, shown.balance, shown.unlimited], [body.type, body.balance, body.unlimited])
    }
  })

  test('is the same for every id of the customer, and another one in the other environment', async () => {
    await grant('device', 'exports', { allowance: 3 })
    await project.customer('person')
    await app.post('/event', anEvent('person', { event: '$identify', $anon_distinct_id: 'device' }))
    await eventually(async () => (await featuresOf('person')).length === 1)
    assert.deepEqual((await fetchProfile('device')).bytes, (await fetchProfile('person')).bytes)
    assert.deepEqual((await ask('device', '', await project.app('ios', 'live'))).body.features, [])
  })

  test('is taken as evidence that the app connected, in its environment; nothing else is', async () => {
    const other = await project.app('ios')
    const connected = async (environment: string) =>
      (await project.get(`/apps/${other.id}`, { environment })).last_connected_at
    await other.post('/event', anEvent('ada'))
    await other.post('/entitled', { customerId: 'ada', featureId: 'exports' })
    await other.post('/profile', { distinct_id: 'null' })
    assert.equal(await connected('test'), null)
    const before = Date.now()
    await ask('ada', '', other)
    const at = await eventually(() => connected('test'))
    assert.ok(Date.parse(at) >= before - 1000 && Date.parse(at) <= Date.now() + 1000)
    assert.equal(await connected('live'), null)
  })
})

describe('POST /profile, 400', () => {
  test('a distinct_id that is none', async () => {
    const refused = [
      undefined,
      null,
      7,
      true,
      [],
      ['ada'],
      {},
      '',
      ' ',
      '\t\u00a0',
      '\u0085',
      'a\0',
      '\ud800',
      'x'.repeat(257),
    ]
    const placeholders = ['anonymous', 'Guest', ' NULL ', 'undefined\n', `null${' '.repeat(100)}`]
    for (const distinct_id of [...refused, '😀'.repeat(257), ...placeholders]) {
      assertRefused(await app.post('/profile', { distinct_id }), 400, 'invalid_request', 'distinct_id')
    }
    for (const distinct_id of ['x'.repeat(256), '😀'.repeat(256), ' ada ', 'nulls', '0']) {
      assert.equal((await app.post('/profile', { distinct_id })).status, 200)
    }
  })

  test('a locale that is no text', async () => {
    for (const locale of [7, true, [], {}]) {
      assertRefused(await app.post('/profile', { distinct_id: 'ada', locale }), 400, 'invalid_request', 'locale')
    }
    for (const locale of ['', 'de', 'zh-Hant-TW', null, undefined]) {
      assert.equal((await app.post('/profile', { distinct_id: 'ada', locale })).status, 200)
    }
  })

  test('but not fields that it does not know', async () => {
    const body = { distinct_id: 'ada', version: 1, groups: { team: 'x' }, customerId: 'null', anything: [{}] }
    assert.equal((await app.post('/profile', body)).status, 200)
  })
})

test('POST /profile, 410: the customer was deleted, whatever tag is sent', async () => {
  await grant('gone', 'exports', { allowance: 3 })
  const { tag } = await fetchProfile('gone')
  await project.tombstone('gone')
  for (const sent of ['', tag, '*']) assertRefused(await ask('gone', sent), 410, 'customer_deleted')
})

test('POST /profile, 413: a body of more than 1 MiB', async () => {
  const padded = (bytes: number) => JSON.stringify({ apiKey: app.key, distinct_id: 'ada' }).padEnd(bytes)
  assert.equal((await app.post('/profile', padded(bodyBytesMax))).status, 200)
  assertRefused(await app.post('/profile', padded(bodyBytesMax + 1)), 413, 'payload_too_large')
})
