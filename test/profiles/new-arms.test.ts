import assert from 'node:assert/strict'
import { createPublicKey, hash, verify } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { Body } from '../app/answers.ts'
import { clientOf, eventually } from '../app/project.ts'
import { aDraft, server } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

/** A draft whose steps and entry ask for nothing else. */
function askingFor(condition: object) {
  const draft = aDraft()
  const { entry } = draft.policy as { entry: { trigger: object } }
  entry.trigger = { type: 'event', eventName: 'signup_done', condition: { ir_version: 1, expr: condition } }
  return draft
}

const user = (key: string) => ({ type: 'User', op: 'is_set', key })
const named = ({ armedLegs }: Body): string[] => armedLegs.map(({ reference }: Body) => reference.experienceId)

describe('a published Experience', () => {
  test('is armed as new for its first leg alone, with the one release that the arm names', async () => {
    const { publish, profile, app, project } = await openStage(service)
    const version = await publish()
    const { body } = await profile('ada')
    assert.equal(body.armedLegs.length, 1)
    assert.equal(body.releases.length, 1)
    const [arm] = body.armedLegs
    const [{ locator, envelope }] = body.releases
    const { id } = await project.get(`/experiences/welcome?project_id=${project.id}`)
    assert.deepEqual(arm.binding, { type: 'new' })
    assert.deepEqual(arm.context, { event: {}, responses: {} })
    assert.deepEqual(arm.entryCondition, { type: 'event', eventName: 'signup_done' })
    assert.equal('conversion' in arm, false)
    assert.deepEqual(arm.reference, {
      ...{ experienceId: id, versionId: version.id, legId: locator.legId },
      descriptorSha256: envelope.descriptorSha256,
    })
    assert.deepEqual([locator.appId, locator.environment, locator.publishedAtSeq], [app.id, 'test', 1])
    const descriptor = JSON.parse(Buffer.from(envelope.descriptorBytesBase64, 'base64').toString())
    assert.equal(descriptor.leg.entryStepId, 'tell')
    assert.deepEqual(body.facts, { properties: {}, memberships: {}, assignments: {} })
  })

  test('is signed so that the discovered key verifies it, and nothing else does', async () => {
    const { publish, profile, project } = await openStage(service)
    await publish()
    const { body } = await profile('ada')
    const [{ envelope }] = body.releases
    const keys: Body = await (await fetch(`${service.url}/.well-known/release-keys`)).json()
    const jwk = keys.keys.find((one: Body) => one.project_id === project.id)
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
    const bytes = Buffer.from(envelope.descriptorBytesBase64, 'base64')
    const signature = Buffer.from(envelope.signature.signatureBase64, 'base64')
    const isSigned = (of: Buffer, domain = 'service.journey-release.v3') =>
      verify(null, Buffer.concat([Buffer.from(`${domain}\0`), of]), publicKey, signature)
    assert.equal(jwk.kid, envelope.signature.keyId)
    assert.equal(hash('sha256', bytes), envelope.descriptorSha256)
    assert.ok(isSigned(bytes))
    assert.ok(!isSigned(bytes, 'service.journey-release.v2'))
    assert.ok(!isSigned(Buffer.concat([bytes, Buffer.from(' ')])))
  })

  test('reaches somebody nobody has heard of, and whoever has a record, at once', async () => {
    const { publish, profile, project } = await openStage(service)
    await project.customer('known')
    assert.deepEqual((await profile('known')).body.armedLegs, [])
    await publish()
    for (const id of ['known', 'stranger']) assert.equal((await profile(id)).body.armedLegs.length, 1)
  })

  test('stays in its environment, app and platform', async () => {
    const { publish, profile, project } = await openStage(service)
    await publish('welcome', { ...aDraft(), platforms: ['ios'] })
    const [live, android] = [await project.app('ios', 'live'), await project.app('android')]
    for (const by of [live, android]) assert.deepEqual((await profile('ada', {}, by)).body.releases, [])
  })

  test('is armed while it is live, not while it is paused, nor once it is taken back', async () => {
    const { publish, profile, change } = await openStage(service)
    const arms = async () => (await profile('ada')).body.armedLegs.length
    await publish()
    const seen = [await arms()]
    for (const verb of ['pause', 'resume', 'unpublish']) {
      await change('welcome', verb)
      seen.push(await arms())
    }
    await publish('welcome', { ...aDraft(), priority: 3 })
    seen.push(await arms())
    await change('welcome', 'archive')
    seen.push(await arms())
    assert.deepEqual(seen, [1, 0, 1, 0, 1, 0])
  })

  test('that the server enrols is never armed as new', async () => {
    const { publish, profile, explain } = await openStage(service)
    const draft = aDraft()
    draft.policy = { ...draft.policy, entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } } }
    await publish('by-api', draft)
    const first = aDraft()
    first.graph.entry = 'wait'
    first.graph.steps.unshift(server('wait', { type: 'delay', durationMs: 1000 }, { next: 'tell' }))
    await publish('delayed', first)
    assert.deepEqual((await profile('ada')).body.armedLegs, [])
    const { experiences } = await explain('ada')
    assert.deepEqual(
      experiences.map(({ reason }: Body) => reason),
      ['server_enrolled', 'server_enrolled'],
    )
  })
})

describe('several Experiences', () => {
  test('are armed by priority, then by id; releases stand by Experience', async () => {
    const { publish, profile, project } = await openStage(service)
    const priorities = [5, -1, 100, 5, 5]
    for (const [i, priority] of priorities.entries()) await publish(`e${i}`, { ...aDraft(), priority })
    const { data } = await project.get(`/experiences?project_id=${project.id}`)
    const expected = data
      .map(({ id, key }: Body) => ({ id, priority: priorities[Number(key.slice(1))] ?? 0 }))
      .toSorted((a: Body, b: Body) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
      .map(({ id }: Body) => id)
    const { body } = await profile('ada')
    assert.deepEqual(named(body), expected)
    assert.deepEqual(
      body.releases.map(({ locator }: Body) => locator.experienceId),
      expected.toSorted(),
    )
  })

  test('give the facts that their releases declare together, and no other', async () => {
    const { publish, profile, project } = await openStage(service)
    await publish('a', askingFor({ type: 'And', args: [user('plan'), user('both')] }))
    await publish('b', askingFor({ type: 'Or', args: [user('both'), user('nothing'), user('seats')] }))
    const properties = { plan: 'pro', both: null, seats: [1, { deep: true }], other: 'never told' }
    await project.post('/customers', { project_id: project.id, distinct_id: 'ada', properties })
    assert.deepEqual((await profile('ada')).body.facts.properties, {
      both: { present: true, value: null },
      nothing: { present: false },
      plan: { present: true, value: 'pro' },
      seats: { present: true, value: [1, { deep: true }] },
    })
    assert.deepEqual((await profile('stranger')).body.facts.properties.plan, { present: false })
  })
})

describe('another publication', () => {
  test('takes the place of the one before with a higher number, a rollback too', async () => {
    const { publish, profile, project } = await openStage(service)
    const first = await publish()
    await publish('welcome', { ...aDraft(), metadata: { ...aDraft().metadata, name: 'Other' } })
    const path = `/experiences/welcome/versions/${first.id}/activate?project_id=${project.id}`
    await project.post(path, {})
    const { body } = await profile('ada')
    const [{ locator }] = body.releases
    assert.deepEqual([locator.versionNumber, locator.publishedAtSeq, body.releases.length], [1, 3, 1])
  })

  test('is what every process tells from then on, with and without a tag', async () => {
    await using node = await service.another({ ROLE: 'api' })
    const { publish, profile, app, project } = await openStage(service)
    const there = { ...app, ...clientOf(node.url, app.key) }
    await project.customer('ada')
    let tag = ''
    for (let seq = 1; seq <= 6; seq++) {
      await publish('welcome', { ...aDraft(), priority: seq % 2 })
      if (tag !== '') {
        const known = await there.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })
        assert.equal(known.status, 200)
      }
      const { body, tag: next } = await profile('ada', {}, there)
      assert.equal(body.releases[0].locator.publishedAtSeq, seq)
      tag = next
    }
  })

  test('of a key that takes over keeps the bytes and changes signature and tag', async () => {
    const { publish, profile, rotate } = await openStage(service)
    await publish()
    const before = await profile('ada')
    const { key_id: second } = await rotate()
    const now = await profile('ada')
    const [{ envelope }] = now.body.releases
    assert.equal(envelope.signature.keyId, second)
    assert.equal(envelope.descriptorBytesBase64, before.body.releases[0].envelope.descriptorBytesBase64)
    assert.notEqual(now.tag, before.tag)
  })
})

describe('the locale', () => {
  test('may be any: a version without it gives its default', async () => {
    const { publish, profile } = await openStage(service)
    await publish('welcome', { ...aDraft(), locales: { default: 'en', others: ['de', 'pt-BR'] } })
    for (const locale of ['de', 'de-AT', 'DE_at', 'pt-BR', 'pt', 'xx', '', null]) {
      assert.equal((await profile('ada', { locale })).body.armedLegs.length, 1)
    }
  })
})

describe('explaining', () => {
  test('tells the same profile, and of each Experience the first reason against it', async () => {
    const { publish, profile, explain, change, project } = await openStage(service)
    await publish('shown')
    await publish('resting')
    await change('resting', 'pause')
    await publish('gone')
    await change('gone', 'unpublish')
    await publish('elsewhere', { ...aDraft(), platforms: ['ios'] })
    await project.post('/experiences', { project_id: project.id, key: 'draft', name: 'Draft' })
    await project.customer('ada')
    const android = await project.app('android')
    const ids = new Map<string, string>(
      (await project.get(`/experiences?project_id=${project.id}`)).data.map(({ id, key }: Body) => [key, id]),
    )
    const reasons = async (by?: Parameters<typeof explain>[2]) => {
      const told = await explain('ada', '', by)
      const { body, tag } = await profile('ada', {}, by)
      assert.deepEqual([told.profile, told.etag], [body, tag])
      const armed = told.experiences.filter((one: Body) => one.armed).map((one: Body) => one.experience_id)
      assert.deepEqual(armed.toSorted(), named(body).toSorted())
      const of = (key: string) => told.experiences.find((one: Body) => one.experience_id === ids.get(key))?.reason
      return Object.fromEntries(['shown', 'resting', 'gone', 'elsewhere', 'draft'].map((key) => [key, of(key)]))
    }
    assert.deepEqual(await reasons(), {
      ...{ shown: null, resting: 'experience_paused', gone: 'not_published', elsewhere: null, draft: 'not_published' },
    })
    assert.equal((await reasons(android)).elsewhere, 'platform_not_built')
    const only = await explain('ada', `&experience_id=${ids.get('resting')}`)
    assert.deepEqual(
      only.experiences.map(({ checks }: Body) => checks.at(-1).check),
      ['experience_paused'],
    )
  })

  test('404 for an app or Experience that is not there', async () => {
    const { project, app } = await openStage(service)
    const id = await project.customer('ada')
    for (const query of [`app_id=none`, `app_id=${app.id}&experience_id=none`]) {
      assert.equal((await service.workspace('GET', `/customers/${id}/profile?${query}`)).status, 404)
    }
    const unnamed = () => service.workspace('GET', `/customers/${id}/profile`)
    assert.equal((await unnamed()).status, 200)
    await project.app('android')
    assert.equal((await unnamed()).status, 400)
  })
})

describe('an unchanged profile', () => {
  test('is a 304 until something in it changes', async () => {
    const { publish, profile, app, project } = await openStage(service)
    await publish('asking', askingFor(user('plan')))
    await project.customer('ada')
    const ask = async (tag: string) =>
      (await app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })).status
    let { tag } = await profile('ada')
    assert.deepEqual([await ask(tag), await ask(tag)], [304, 304])
    const id = await project.customer('ada')
    const changes: [string, () => Promise<unknown>][] = [
      ['a property', () => project.patch(`/customers/${id}`, { properties: { set: { plan: 'pro' } } })],
      ['a publication', () => publish('asking', askingFor(user('other')))],
      ['a further Experience', () => publish('further')],
    ]
    for (const [what, change] of changes) {
      await change()
      assert.equal(await ask(tag), 200, what)
      const after = await profile('ada')
      assert.notEqual(after.tag, tag)
      tag = after.tag
      assert.equal(await ask(tag), 304, what)
    }
  })

  test('follows the customer through a merge', async () => {
    const { publish, app, profile, project } = await openStage(service)
    await publish('asking', askingFor(user('plan')))
    await project.post('/customers', { project_id: project.id, distinct_id: 'anon', properties: { plan: 'old' } })
    const person = { project_id: project.id, distinct_id: 'person', properties: { plan: 'new' } }
    await project.post('/customers', person)
    const { tag } = await profile('anon')
    const event = { event: '$identify', distinct_id: 'person', $anon_distinct_id: 'anon', uuid: crypto.randomUUID() }
    await app.post('/event', event)
    await eventually(async () => (await profile('anon')).body.facts.properties.plan.value === 'new')
    const again = await app.post('/profile', { distinct_id: 'anon' }, { 'if-none-match': tag })
    assert.equal(again.status, 200)
    assert.equal((await profile('anon')).tag, (await profile('person')).tag)
  })

  test('holds until time changes it, also where a test clock runs ahead', async () => {
    const { project, app, profile } = await openStage(service)
    await project.feature('exports')
    const ahead = 40 * 24 * 3600_000
    const clock = { body: { offset_ms: ahead }, environment: 'test' }
    assert.equal((await service.workspace('PUT', `/projects/${project.id}/test_clock`, clock)).status, 200)
    const expires = Date.now() + ahead + 4000
    await project.grant('ada', { feature: 'exports', allowance: 3, expires_at: new Date(expires).toISOString() })
    const { tag, body } = await profile('ada')
    assert.equal(body.features.length, 1)
    const ask = async () => (await app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': tag })).status
    assert.equal(await ask(), 304)
    await eventually(async () => (await ask()) === 200, 20_000)
    assert.ok(Date.now() + ahead >= expires)
    assert.deepEqual((await profile('ada')).body.features, [])
  })
})
