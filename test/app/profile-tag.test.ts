import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { aSecondMs, eventually, openProject } from './project.ts'

const settings = { RENDER_BASE_URL: 'https://cdn.example.test/r/', ASSET_BASE_URL: 'https://cdn.example.test/a/' }
const service = await startService(settings)
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')
await project.feature('exports')

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

describe('the ETag of a profile', () => {
  test('is the SHA-256 of its bytes in base64url, in quotes', async () => {
    await grant('tag', 'exports', { allowance: 3 })
    for (const id of ['tag', 'stranger']) {
      const { bytes, tag } = await fetchProfile(id)
      assert.equal(tag, `"${hash('sha256', bytes, 'base64url')}"`)
    }
  })

  test('is equal for equal content, over time and by way of another process', async () => {
    await using node = await service.another({ ...settings, ROLE: 'api' })
    await grant('twin', 'exports', { allowance: 3 })
    const { tag, bytes } = await fetchProfile('twin')
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ apiKey: app.key, distinct_id: 'twin' })
    const there = await fetch(`${node.url}/profile`, { method: 'POST', headers, body })
    assert.equal(there.headers.get('etag'), tag)
    assert.deepEqual(Buffer.from(await there.arrayBuffer()), bytes)
    const again = await fetch(`${node.url}/profile`, {
      method: 'POST',
      headers: { ...headers, 'if-none-match': tag },
      body,
    })
    assert.equal(again.status, 304)
    assert.deepEqual((await fetchProfile('twin')).bytes, bytes)
  })
})

describe('POST /profile, 304', () => {
  test('has the very tag that was sent, the headers of the 200, and no body', async () => {
    await grant('same', 'exports', { allowance: 3 })
    const { tag } = await fetchProfile('same')
    const spellings = {
      [tag]: tag,
      [`W/${tag}`]: `W/${tag}`,
      [`"other", ${tag}`]: tag,
      [`W/"other" , W/${tag},"x"`]: `W/${tag}`,
      '*': tag,
    }
    for (const [sent, expected] of Object.entries(spellings)) {
      for (let times = 0; times < 2; times++) {
        const { status, headers, bytes } = await ask('same', sent)
        assert.deepEqual([status, bytes.length, headers.get('etag')], [304, 0, expected])
        assert.equal(headers.get('service-app-id'), app.id)
        assert.equal(headers.get('service-app-environment'), 'test')
        assert.equal(headers.get('cache-control'), 'private, no-cache')
        assert.equal(headers.get('content-type'), null)
      }
    }
    assert.equal((await ask('stranger', (await fetchProfile('stranger')).tag)).status, 304)
  })

  test('only for the tag of this very profile', async () => {
    await grant('mine', 'exports', { allowance: 3 })
    await grant('other', 'exports', { allowance: 4 })
    const { tag } = await fetchProfile('mine')
    const { tag: another } = await fetchProfile('other')
    for (const sent of [
      '""',
      '"x"',
      another,
      tag.slice(1, -1),
      tag.slice(0, -1),
      tag.toLowerCase(),
      `w/${tag}`,
      `${tag}x`,
      `x${tag}`,
      'W/',
    ]) {
      const { status, headers } = await ask('mine', sent)
      assert.deepEqual([status, headers.get('etag')], [200, tag], sent)
    }
  })

  test('also records the connection', async () => {
    const other = await project.app('ios')
    const { tag } = await fetchProfile('stranger')
    assert.equal((await ask('stranger', tag, other)).status, 304)
    await eventually(async () => (await project.get(`/apps/${other.id}`)).last_connected_at)
  })
})

describe('a profile that was fetched does not hold any more', { concurrency: true }, () => {
  /** Sends the tag until it is refused, and gives the Features of the new profile. */
  async function outdated(distinctId: string, tag: string, withinMs: number): Promise<Body[]> {
    const { body } = await eventually(async () => {
      const answer = await ask(distinctId, tag)
      return answer.status === 200 && answer
    }, withinMs)
    assert.deepEqual(body.features, await featuresOf(distinctId))
    return body.features
  }

  test('after a consume, at once', async () => {
    await grant('spender', 'exports', { allowance: 3 })
    const { tag } = await fetchProfile('spender')
    assert.equal((await ask('spender', tag)).status, 304)
    await consume('spender', 'exports', 1)
    assert.deepEqual((await ask('spender', tag)).body.features, [entry('exports', 'metered', 2)])
    await consume('spender', 'exports', 5)
    assert.deepEqual(await featuresOf('spender'), [entry('exports', 'metered', 2)])
  })

  test('after a grant, at once', async () => {
    await project.customer('winner')
    const { tag } = await fetchProfile('winner')
    await grant('winner', 'exports', { allowance: 3 })
    assert.deepEqual((await ask('winner', tag)).body.features, [entry('exports', 'metered', 3)])
  })

  test('when a grant ends, at that time', async () => {
    const expires_at = new Date(Date.now() + 1500).toISOString()
    await grant('ends', 'exports', { allowance: 3, expires_at })
    const { body, tag } = await fetchProfile('ends')
    assert.equal(body.features.length, 1)
    assert.deepEqual(await outdated('ends', tag, 3000), [])
    assert.ok(Date.now() >= Date.parse(expires_at))
  })

  test('when a grant begins, at that time', async () => {
    await grant('begins', 'exports', { allowance: 3, starts_at: new Date(Date.now() + 500).toISOString() })
    const { tag } = await fetchProfile('begins')
    assert.deepEqual(await outdated('begins', tag, 3000), [entry('exports', 'metered', 3)])
  })

  test('when units are reset, at that time', async () => {
    const starts_at = new Date(Date.now() - 3600_000 + 1500).toISOString()
    await grant('resets', 'exports', { allowance: 3, interval: 'hour', starts_at })
    await consume('resets', 'exports', 2)
    const { body, tag } = await fetchProfile('resets')
    assert.deepEqual(body.features, [entry('exports', 'metered', 1)])
    assert.deepEqual(await outdated('resets', tag, 3000), [entry('exports', 'metered', 3)])
  })

  test('when the catalogue changes: a Feature leaves the platform, is archived, or returns', async () => {
    const at = (verb: string) => project.post(`/features/seen/${verb}?project_id=${project.id}`)
    await project.feature('seen')
    await grant('viewer', 'seen', { allowance: 3 })
    const listed = [entry('seen', 'metered', 3)]
    let { tag } = await fetchProfile('viewer')
    const next = async () => {
      const features = await outdated('viewer', tag, aSecondMs)
      tag = (await fetchProfile('viewer')).tag
      return features
    }
    await project.patch(`/features/seen?project_id=${project.id}`, { platforms: ['web'] })
    assert.deepEqual(await next(), [])
    await project.patch(`/features/seen?project_id=${project.id}`, { platforms: null })
    assert.deepEqual(await next(), listed)
    await at('archive')
    assert.deepEqual(await next(), [])
    await at('publish')
    assert.deepEqual(await next(), listed)
  })

  test('also in another process, within a second', async () => {
    await using node = await service.another({ ...settings, ROLE: 'api' })
    await project.feature('far')
    await grant('far', 'far', { allowance: 3 })
    const features = async (): Promise<Body[]> => {
      const response = await fetch(`${node.url}/profile`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ apiKey: app.key, distinct_id: 'far' }),
      })
      return ((await response.json()) as Body).features
    }
    assert.equal((await features()).length, 1)
    await consume('far', 'far', 1)
    assert.deepEqual(await features(), [entry('far', 'metered', 2)])
    await project.post(`/features/far/archive?project_id=${project.id}`)
    await eventually(async () => (await features()).length === 0, aSecondMs)
  })
})
