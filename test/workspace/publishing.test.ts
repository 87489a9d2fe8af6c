import assert from 'node:assert/strict'
import { createPublicKey, hash, verify } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { draftStepsMax } from '../../src/kernel/limits.ts'
import { aDraft, device, server } from '../harness/a-draft.ts'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

interface Stage {
  ws: Workspace
  app: string
  key: Body
  save: (draft?: object) => Promise<void>
  publish: (body?: object) => ReturnType<Workspace['post']>
  publications: () => Promise<Body[]>
  /** Ids of the releases of a publication number. */
  releasesOf: (seq: number) => Promise<string[]>
}

/** A project with one app, a key that signs, and an Experience with a sound draft. */
async function aStage(): Promise<Stage> {
  const ws = await api.workspace()
  const { body: made } = await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })
  const { body: key } = await ws.post('/signing_keys', { key_id: 'first' })
  await ws.post(`/signing_keys/${key.id}/activate`, {})
  await ws.post('/experiences', { key: 'welcome', name: 'Welcome' })
  let revision = 0
  const stage: Stage = {
    ...{ ws, app: made.id, key },
    async save(draft = aDraft()) {
      const headers = { 'if-match': String(revision++) }
      assert.equal((await ws.call('PUT', '/experiences/welcome/draft', { body: draft, headers })).status, 200)
    },
    publish: (body = {}) => ws.post('/experiences/welcome/versions', body),
    publications: async () => (await ws.get('/publications')).body.data,
    releasesOf: async (seq) =>
      (
        await api.pool.query<{ id: string }>(
          'select distinct descriptor_sha256 as id from publication_leg where scope_id = $1 and seq = $2 order by 1',
          [ws.scopes.test.scopeId, seq],
        )
      ).map(({ id }) => id),
  }
  await stage.save()
  return stage
}

const look = ({ publications }: Stage) =>
  publications().then((all) =>
    all.map(({ version_number, published_at_seq, status }) => [version_number, published_at_seq, status]),
  )

/** As a tool of an app team would, from what it can fetch. */
function isSigned({ envelope }: Body, publicKey: string): boolean {
  const x = Buffer.from(publicKey, 'base64').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const bytes = Buffer.from(envelope.descriptorBytesBase64, 'base64')
  const message = Buffer.concat([Buffer.from('service.journey-release.v3\0'), bytes])
  return verify(null, message, key, Buffer.from(envelope.signature.signatureBase64, 'base64'))
}

describe('publishing', () => {
  test('a draft becomes a version, live in the app, with releases that the key verifies bit for bit', async () => {
    const stage = await aStage()
    const { ws, app, key } = stage
    const version = await stage.publish({ note: 'first' })
    assert.equal(version.status, 201, JSON.stringify(version.body))
    assert.deepEqual([version.body.version_number, version.body.note], [1, 'first'])
    const [publication] = await stage.publications()
    assert.match(publication.build_id, /^bld_[a-z2-7]{26}$/)
    assert.deepEqual(
      [publication.app_id, publication.version_id, publication.published_at_seq, publication.status],
      [app, version.body.id, 1, 'live'],
    )
    const experience = (await ws.get('/experiences/welcome')).body
    assert.equal(experience.status, 'published')
    const ids = await stage.releasesOf(1)
    assert.equal(ids.length, 2)
    for (const id of ids) {
      const { body: release } = await ws.get(`/releases/${id}`)
      const { locator, envelope, descriptor } = release
      const bytes = Buffer.from(envelope.descriptorBytesBase64, 'base64')
      assert.deepEqual([hash('sha256', bytes), bytes.length], [id, envelope.descriptorSizeBytes])
      assert.deepEqual(locator, {
        appId: app,
        environment: 'test',
        experienceId: experience.id,
        experienceVersionId: version.body.id,
        versionNumber: 1,
        buildId: publication.build_id,
        publishedAt: publication.published_at,
        publishedAtSeq: 1,
        legId: descriptor.leg.id,
      })
      assert.equal(envelope.signature.keyId, 'first')
      assert.ok(isSigned(release, key.public_key))
      for (const bit of [0, 7, bytes.length * 4, bytes.length * 8 - 1]) {
        const changed = Buffer.from(bytes)
        changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
        const forged = { envelope: { ...envelope, descriptorBytesBase64: changed.toString('base64') } }
        assert.ok(!isSigned(forged, key.public_key))
      }
    }
    assert.deepEqual(
      (await auditOf(api.pool, experience.id)).map(({ action }) => action),
      ['create', 'save_draft', 'publish'],
    )
  })

  test('the same draft again is the same version under the next number; another draft the next version', async () => {
    const stage = await aStage()
    const { body: first } = await stage.publish()
    const again = await stage.publish()
    assert.deepEqual([again.status, again.body.id], [200, first.id])
    await stage.save({ ...aDraft(), priority: 7 })
    assert.equal((await stage.publish()).body.version_number, 2)
    assert.deepEqual(await look(stage), [
      [2, 3, 'live'],
      [1, 2, 'superseded'],
      [1, 1, 'superseded'],
    ])
    const { data } = (await stage.ws.get('/experiences/welcome/versions')).body
    assert.deepEqual(
      data.map(({ version_number }: Body) => version_number),
      [2, 1],
    )
  })

  test('a rollback is the same build with other bytes, under a higher number', async () => {
    const stage = await aStage()
    const { body: first } = await stage.publish()
    await stage.save({ ...aDraft(), priority: 7, metadata: { ...aDraft().metadata, name: 'Other' } })
    await stage.publish()
    const back = await stage.ws.post(`/experiences/welcome/versions/${first.id}/activate`, {})
    assert.equal(back.status, 200, JSON.stringify(back.body))
    const [now, other, before] = await stage.publications()
    assert.deepEqual([now.version_number, now.published_at_seq], [1, 3])
    assert.deepEqual([now.build_id === before.build_id, now.build_id === other.build_id], [true, false])
    const [old, renewed] = [new Set(await stage.releasesOf(1)), await stage.releasesOf(3)]
    assert.ok(renewed.every((id) => !old.has(id)))
  })

  test('a version may be frozen without making it live, and made live in one app only', async () => {
    const stage = await aStage()
    const { body: other } = await stage.ws.post('/apps', {
      ...{ project_id: stage.ws.projectId, platform: 'android', name: 'B' },
    })
    const { body: version } = await stage.publish({ activate: false })
    assert.deepEqual(await stage.publications(), [])
    await stage.ws.post(`/experiences/welcome/versions/${version.id}/activate`, { app_ids: [other.id] })
    assert.deepEqual(
      (await stage.publications()).map(({ app_id }) => app_id),
      [other.id],
    )
    await stage.publish()
    assert.equal((await stage.publications()).length, 3)
  })

  test('pause, resume and take back change what is live, and no number', async () => {
    const stage = await aStage()
    await stage.publish()
    const after = async (verb: string) => {
      const { body } = await stage.ws.post(`/experiences/welcome/${verb}`, {})
      return [body.status, ...(await look(stage)).flat()]
    }
    assert.deepEqual(await after('pause'), ['paused', 1, 1, 'paused'])
    assert.deepEqual(await after('resume'), ['published', 1, 1, 'live'])
    assert.deepEqual(await after('unpublish'), ['draft', 1, 1, 'unpublished'])
    assert.deepEqual(await after('resume'), ['draft', 1, 1, 'unpublished'])
    await stage.publish()
    assert.deepEqual(await after('archive'), ['archived', 1, 2, 'unpublished', 1, 1, 'superseded'])
    assert.deepEqual((await stage.ws.get('/experiences')).body.data, [])
    assertRefused(await stage.publish(), 409, 'conflict')
  })

  test('parallel publications of several Experiences take numbers without a gap or a double', async () => {
    const stage = await aStage()
    const keys = ['a', 'b', 'c', 'd']
    for (const key of keys) {
      await stage.ws.post('/experiences', { key, name: key })
      const headers = { 'if-match': '0' }
      await stage.ws.call('PUT', `/experiences/${key}/draft`, { body: aDraft(), headers })
    }
    const all = await Promise.all([...keys, ...keys].map((key) => stage.ws.post(`/experiences/${key}/versions`, {})))
    assert.ok(
      all.every(({ status }) => status < 300),
      JSON.stringify(all.map(({ body }) => body)),
    )
    const seqs = (await stage.publications()).map(({ published_at_seq }) => published_at_seq)
    assert.deepEqual(seqs, [8, 7, 6, 5, 4, 3, 2, 1])
  })

  test('200 steps are published at once, and it is told how long they took', async (t) => {
    const stage = await aStage()
    const draft = aDraft()
    const each = Array.from({ length: 200 }, (_, n) => n)
    draft.graph.entry = 's0'
    draft.graph.steps = each.map((n) => {
      const next = n === 199 ? null : `s${n + 1}`
      return n % 4 === 3
        ? server(`s${n}`, { type: 'delay', durationMs: 1000 }, { next })
        : device(`s${n}`, { type: 'send_event', eventName: 'step' }, { next })
    })
    await stage.save(draft)
    const start = performance.now()
    const { status, body } = await stage.publish()
    const took = performance.now() - start
    assert.equal(status, 201, JSON.stringify(body))
    // 100 to 240 ms on a quiet machine; a busy one may take ten times as long.
    t.diagnostic(`${took.toFixed(0)} ms`)
    assert.equal((await stage.releasesOf(1)).length, 50)
    assert.ok(draft.graph.steps.length < draftStepsMax)
  })
})

describe('keys of what is published', () => {
  test('another key signs the same bytes when it takes over: same hashes and numbers, no old signature is lost', async () => {
    const stage = await aStage()
    await stage.publish()
    const [id = ''] = await stage.releasesOf(1)
    const { body: before } = await stage.ws.get(`/releases/${id}`)
    const { body: next } = await stage.ws.post('/signing_keys', { key_id: 'next' })
    await stage.ws.post(`/signing_keys/${next.id}/activate`, { app_ids: [stage.app] })
    const { body: after } = await stage.ws.get(`/releases/${id}`)
    assert.equal(after.envelope.signature.keyId, 'next')
    assert.equal(after.envelope.descriptorBytesBase64, before.envelope.descriptorBytesBase64)
    assert.ok(isSigned(after, next.public_key))
    assert.ok(!isSigned(after, stage.key.public_key))
    await stage.ws.post(`/signing_keys/${stage.key.id}/activate`, {})
    assert.equal((await stage.ws.get(`/releases/${id}`)).body.envelope.signature.keyId, 'first')
  })
})

test('what is published while another key takes over is signed by that key too', async () => {
  const stage = await aStage()
  for (let round = 1; round <= 4; round++) {
    const { body: next } = await stage.ws.post('/signing_keys', { key_id: `round-${round}` })
    const activated = () => stage.ws.post(`/signing_keys/${next.id}/activate`, {})
    const both = await Promise.all(round % 2 ? [stage.publish(), activated()] : [activated(), stage.publish()])
    assert.ok(both.every(({ status }) => status < 300))
    for (const id of await stage.releasesOf(round)) {
      const { body: release } = await stage.ws.get(`/releases/${id}`)
      assert.equal(release.envelope.signature.keyId, `round-${round}`)
      assert.ok(isSigned(release, next.public_key))
    }
  }
})

describe('refusals', () => {
  test('400: a draft that is not valid is not published, and every reason is told', async () => {
    const stage = await aStage()
    await stage.save({ ...aDraft(), extra: 1 })
    const refused = await stage.publish()
    assertRefused(refused, 400, 'draft_invalid')
    assert.deepEqual(refused.body.error.issues, [
      { path: '/extra', message: 'Key "extra" is not part of the draft format here.', code: 'unknown_key' },
    ])
    assert.deepEqual(await stage.publications(), [])
  })

  test('409: without a key that signs, or an app to publish in, nothing is made', async () => {
    const ws = await api.workspace()
    await ws.post('/experiences', { key: 'welcome', name: 'Welcome' })
    const publish = () => ws.post('/experiences/welcome/versions', {})
    assertRefused(await publish(), 400, 'draft_invalid')
    await ws.call('PUT', '/experiences/welcome/draft', { body: aDraft(), headers: { 'if-match': '0' } })
    assertRefused(await publish(), 409, 'conflict')
    await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })
    assertRefused(await publish(), 409, 'signing_key_missing')
    assert.deepEqual((await ws.get('/experiences/welcome/versions')).body.data, [])
  })

  test('400 and 404: apps of other platforms, versions, apps and releases of others', async () => {
    const [stage, other] = [await aStage(), await aStage()]
    const { body: web } = await stage.ws.post('/apps', { project_id: stage.ws.projectId, platform: 'web', name: 'W' })
    assertRefused(await stage.publish({ app_ids: [web.id] }), 400, 'invalid_request', 'app_ids')
    assertRefused(await stage.publish({ app_ids: [other.app] }), 404, 'not_found', 'app_ids')
    const { body: version } = await other.publish()
    assertRefused(await stage.ws.post(`/experiences/welcome/versions/${version.id}/activate`, {}), 404, 'not_found')
    const [id] = await other.releasesOf(1)
    assertRefused(await stage.ws.get(`/releases/${must(id, 'it was published')}`), 404, 'not_found')
    assertRefused(await stage.ws.post('/experiences/welcome/pause', { app_ids: [other.app] }), 404, 'not_found')
  })
})
