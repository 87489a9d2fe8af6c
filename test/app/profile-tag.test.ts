import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { eventually, openProject } from './project.ts'

/** For a machine that does much else: what is awaited comes within a second on one that does not. */
const patienceMs = 30_000

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

  test('is that of other bytes as soon as they are others, as many as they may be', async () => {
    await grant('spent', 'exports', { allowance: 9 })
    const tags = new Set<string>()
    const sizes = new Set<number>()
    for (let left = 9; left > 4; left--) {
      for (let times = 0; times < 2; times++) {
        const { bytes, tag } = await fetchProfile('spent')
        assert.equal(tag, `"${hash('sha256', bytes, 'base64url')}"`)
        tags.add(tag)
        sizes.add(bytes.length)
      }
      await consume('spent', 'exports', 1)
    }
    assert.deepEqual([tags.size, sizes.size], [5, 1])
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
  /** Sends the newest tag until the Features are these: how long that takes is the machine's matter, that it never answers an old profile with 304 is ours. */
  async function becomes(distinctId: string, { tag, body }: { tag: string; body: Body }, features: Body[]) {
    let [sent, now] = [tag, body.features]
    await eventually(async () => {
      const answer = await ask(distinctId, sent)
      if (answer.status === 200) {
        sent = answer.headers.get('etag') ?? ''
        now = answer.body.features
      }
      return isDeepStrictEqual(now, features)
    }, patienceMs)
    assert.deepEqual(await featuresOf(distinctId), features)
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
    const endsAt = Date.now() + 1500
    // Begun before: it may be made on a machine so slow that it has ended by then.
    const starts_at = new Date(endsAt - 3600_000).toISOString()
    await grant('ends', 'exports', { allowance: 3, starts_at, expires_at: new Date(endsAt).toISOString() })
    const before = await fetchProfile('ends')
    if (Date.now() < endsAt) assert.equal(before.body.features.length, 1)
    await becomes('ends', before, [])
    assert.ok(Date.now() >= endsAt)
  })

  test('when a grant begins, at that time', async () => {
    const startsAt = Date.now() + 500
    await grant('begins', 'exports', { allowance: 3, starts_at: new Date(startsAt).toISOString() })
    await becomes('begins', await fetchProfile('begins'), [entry('exports', 'metered', 3)])
    assert.ok(Date.now() >= startsAt)
  })

  test('when units are reset, at that time', async () => {
    const resetsAt = Date.now() + 1500
    const starts_at = new Date(resetsAt - 3600_000).toISOString()
    await grant('resets', 'exports', { allowance: 3, interval: 'hour', starts_at })
    await consume('resets', 'exports', 2)
    const before = await fetchProfile('resets')
    // On a machine so slow that the units came from the new hour, they return in the next one only.
    if (Date.now() >= resetsAt) return
    assert.deepEqual(before.body.features, [entry('exports', 'metered', 1)])
    await becomes('resets', before, [entry('exports', 'metered', 3)])
    assert.ok(Date.now() >= resetsAt)
  })

  test('when the catalogue changes: a Feature leaves the platform, is archived, or returns', async () => {
    const at = (verb: string) => project.post(`/features/seen/${verb}?project_id=${project.id}`)
    await project.feature('seen')
    await grant('viewer', 'seen', { allowance: 3 })
    const listed = [entry('seen', 'metered', 3)]
    const next = async (features: Body[], change: () => Promise<unknown>) => {
      const before = await fetchProfile('viewer')
      await change()
      await becomes('viewer', before, features)
    }
    const platforms = (list: string[] | null) => () =>
      project.patch(`/features/seen?project_id=${project.id}`, { platforms: list })
    await next([], platforms(['web']))
    await next(listed, platforms(null))
    await next([], () => at('archive'))
    await next(listed, () => at('publish'))
  })

  test('also in another process', async () => {
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
    await eventually(async () => (await features()).length === 0, patienceMs)
  })
})
