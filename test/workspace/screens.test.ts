import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { type Reader, verifyRelease } from '../conformance/release.ts'
import { aDraft, device, server } from '../harness/a-draft.ts'
import { aScreenDraft, runtime } from '../harness/a-screen-draft.ts'
import { upload, uploadedDraft } from '../harness/upload.ts'
import { type Api, assertRefused, auditOf, type Body, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

interface Stage {
  ws: Workspace
  /** By platform. */
  apps: Record<string, string>
  save: (draft: object) => Promise<Body>
  publish: (body?: object) => ReturnType<Workspace['post']>
  reader: Reader
}

/** A project that can publish screens: two apps, a key, a client runtime, a Product. */
async function aStage(): Promise<Stage> {
  const ws = await api.workspace()
  const apps: Record<string, string> = {}
  for (const platform of ['ios', 'android']) {
    apps[platform] = (await ws.post('/apps', { platform, name: platform })).body.id
  }
  const { body: key } = await ws.post('/signing_keys', { key_id: 'first' })
  await ws.post(`/signing_keys/${key.id}/activate`, {})
  assert.equal((await ws.patch(`/projects/${ws.projectId}`, { client_runtime: runtime })).status, 200)
  await ws.post('/features', { key: 'pro', name: 'Pro', type: 'boolean' })
  const stores = [
    { store: 'appstore', product_id: 'pro.yearly' },
    { store: 'playstore', product_id: 'pro', base_plan_id: 'yearly' },
  ]
  const preview = { price: '9.99', period: 'year', has_trial: true }
  const product = { key: 'pro', name: 'Pro', type: 'subscription', grants: [{ feature: 'pro' }], stores, preview }
  assert.equal((await ws.post('/products', product)).status, 201)
  await ws.post('/experiences', { key: 'offer', name: 'Offer' })
  let revision = 0
  return {
    ...{ ws, apps },
    async save(draft) {
      const headers = { 'if-match': String(revision++) }
      const { status, body } = await ws.call('PUT', '/experiences/offer/draft', { body: draft, headers })
      assert.equal(status, 200, JSON.stringify(body))
      return (await ws.post('/experiences/offer/draft/validate', {})).body
    },
    publish: (body = {}) => ws.post('/experiences/offer/versions', body),
    reader: { namespace: 'service', mode: 'spec', keys: new Map([['first', Buffer.from(key.public_key, 'base64')]]) },
  }
}

const uploaded = ({ ws }: Stage, locales?: string[]) => uploadedDraft({ url: api.url, key: ws.key }, locales)

/** Releases of a publication with their locales. */
async function releasesOf({ ws }: Stage, appId: string) {
  const rows = await api.pool.query<{ sha256: string; locale: string }>(
    `select l.descriptor_sha256 as sha256, l.locale
     from publication_pointer pp
     join publication_leg l on l.scope_id = pp.scope_id and l.app_id = pp.app_id and l.seq = pp.seq
     where pp.scope_id = $1 and pp.app_id = $2
     order by l.leg_id, l.locale`,
    [ws.scopes.test.scopeId, appId],
  )
  return Promise.all(
    rows.map(async ({ sha256, locale }) => ({ locale, release: (await ws.get(`/releases/${sha256}`)).body })),
  )
}

describe('publishing screens', () => {
  test('uploaded screens become releases for each locale and platform that the strict validator takes', async () => {
    const stage = await aStage()
    const judged = await stage.save(await uploaded(stage))
    assert.deepEqual([judged.valid, judged.issues], [true, []])
    const { status, body: version } = await stage.publish()
    assert.equal(status, 201, JSON.stringify(version))
    for (const [platform, appId] of Object.entries(stage.apps)) {
      const releases = await releasesOf(stage, appId)
      assert.equal(releases.length, 4)
      const hashes = new Set<string>()
      for (const { locale, release } of releases) {
        const { locator, envelope, descriptor } = release
        const outcome = verifyRelease({ locator, envelope }, stage.reader)
        assert.deepEqual('refused' in outcome ? outcome.refused : undefined, undefined)
        hashes.add(`${locator.legId} ${descriptor.render === null ? '' : locale} ${envelope.descriptorSha256}`)
        if (descriptor.render === null) continue
        const store = platform === 'ios' ? 'apple_app_store' : 'google_play'
        assert.equal(descriptor.products[0].store.platform, store)
        const { name, price, period, hasTrial, trialLabel } = descriptor.products[0].preview
        assert.deepEqual([name, price, period, hasTrial, trialLabel], ['Pro', '9.99', 'year', true, '—'])
      }
      // One for each locale of what shows, one for all of what does not.
      assert.equal(hashes.size, 3)
    }
  })

  test('what screens need and is not there is told, and nothing is published', async () => {
    const stage = await aStage()
    await stage.ws.patch(`/projects/${stage.ws.projectId}`, { client_runtime: null })
    const draft = aScreenDraft()
    const codes = ({ issues }: Body) => [...new Set<string>(issues.map(({ code }: Body) => code))].toSorted()
    assert.deepEqual(codes(await stage.save(draft)), ['artefact_missing', 'requirements_missing'])
    const refused = await stage.publish()
    assertRefused(refused, 400, 'draft_invalid')
    assert.deepEqual(codes(refused.body.error), ['artefact_missing', 'requirements_missing'])
    assert.deepEqual((await stage.ws.get('/publications')).body.data, [])
  })

  test('a manifest of any bytes is judged, and no answer is a 500', async () => {
    const stage = await aStage()
    const to = { url: api.url, key: stage.ws.key }
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    for (const text of ['', '[]', '{}', 'null', '{"screens":', deep, `{"assets":${deep}}`, '\u00ff'].slice(1)) {
      const { body } = await upload(to, Buffer.from(text), 'application/json')
      const draft = aScreenDraft()
      draft.render = { en: { manifest: `sha256:${body.sha256}` }, de: { manifest: `sha256:${body.sha256}` } }
      const judged = await stage.save(draft)
      assert.equal(judged.valid, false)
      assert.ok(
        judged.issues.some(({ path }: Body) => path === '/render/en/manifest'),
        text.slice(0, 20),
      )
    }
  })

  test('store texts are those of the day: publishing again renews them, a rollback brings the old build back', async () => {
    const stage = await aStage()
    await stage.save(await uploaded(stage))
    const { body: first } = await stage.publish()
    const priceNow = async () => {
      const all = await releasesOf(stage, must(stage.apps.ios, 'there is one'))
      return all.flatMap(({ release }) => release.descriptor.products.map(({ preview }: Body) => preview.price))
    }
    const buildNow = async () => (await stage.ws.get('/publications')).body.data[0].build_id
    const before = await buildNow()
    assert.deepEqual(await priceNow(), ['9.99', '9.99'])
    await stage.ws.patch('/products/pro', { preview: { price: '8.99' } })
    const { warnings } = (await stage.ws.post('/experiences/offer/draft/validate', {})).body
    assert.deepEqual(
      warnings.map(({ code, path }: Body) => `${code} ${path}`),
      ['W_preview_outdated /placements/0/productId'],
    )
    // As it was: the version's build, under a higher number.
    await stage.ws.post(`/experiences/offer/versions/${first.id}/activate`, {})
    assert.deepEqual([await priceNow(), await buildNow()], [['9.99', '9.99'], before])
    const again = await stage.publish()
    assert.deepEqual([again.status, again.body.id], [200, first.id])
    assert.deepEqual(await priceNow(), ['8.99', '8.99'])
    assert.notEqual(await buildNow(), before)
    assert.deepEqual((await stage.ws.post('/experiences/offer/draft/validate', {})).body.warnings, [])
    await stage.ws.post(`/experiences/offer/versions/${first.id}/activate`, {})
    assert.deepEqual(await priceNow(), ['8.99', '8.99'])
  })

  test('a file that is gone or cut stops the publication: every device would refuse everything', async () => {
    const stage = await aStage()
    const draft = await uploaded(stage)
    await stage.save(draft)
    const { body: version } = await stage.publish({ activate: false })
    await api.pool.query(
      `delete from artefact_piece p using artefact a
       where a.blob_id = p.blob_id and a.project_id = $1 and a.content_type = 'image/png'`,
      [stage.ws.projectId],
    )
    const refused = await stage.ws.post(`/experiences/offer/versions/${version.id}/activate`, {})
    assertRefused(refused, 500, 'release_self_check_failed')
    assert.match(refused.body.error.details.rule, /^sha256:[0-9a-f]{64} is not stored, or can't be read$/)
    assert.deepEqual((await stage.ws.get('/publications')).body.data, [])
  })

  test('ten legs in three locales are published with all checks, and it is told how long they took', async (t) => {
    const stage = await aStage()
    const draft = await uploaded(stage, ['en', 'de', 'fr'])
    const each = Array.from({ length: 10 }, (_, n) => n)
    draft.graph.entry = 'd0'
    draft.graph.routes = []
    draft.graph.steps = each.flatMap((n) => [
      device(`d${n}`, { type: 'navigate', screenId: n % 2 ? 'thanks' : 'offer' }),
      server(`s${n}`, { type: 'delay', durationMs: 1000 }, { next: n === 9 ? 'bye' : `d${n + 1}` }),
    ])
    draft.graph.steps.push(device('bye', { type: 'exit', reason: 'seen' }))
    const tapped = (n: number) => ({ host: { kind: 'journey' }, eventName: `next${n}`, to: `s${n}` })
    draft.graph.routes = each.map(tapped)
    draft.screens[0] = {
      ...must(draft.screens[0], 'there is one'),
      offer: { placementIds: ['main'], onAlreadyEntitled: 's0', onAccessUnknown: 's0' },
    }
    const judged = await stage.save(draft)
    assert.deepEqual(judged.issues, [])
    const start = performance.now()
    const { status, body } = await stage.publish({ app_ids: [stage.apps.ios] })
    const took = performance.now() - start
    assert.equal(status, 201, JSON.stringify(body))
    t.diagnostic(`${took.toFixed(0)} ms`)
    assert.equal((await releasesOf(stage, must(stage.apps.ios, 'there is one'))).length, 33)
  })
})

describe('builds and versions', () => {
  test('a build tells its legs in each locale, and its plan where journeys go on', async () => {
    const stage = await aStage()
    await stage.save(await uploaded(stage))
    const { body: version } = await stage.publish()
    assert.deepEqual(version.issues, [])
    assert.deepEqual(new Set(version.builds.map(({ app_id }: Body) => app_id)), new Set(Object.values(stage.apps)))
    const [{ id: buildId }] = version.builds
    const { body: build } = await stage.ws.get(`/builds/${buildId}`)
    assert.deepEqual([build.id, build.version_id, build.status], [buildId, version.id, 'ready'])
    assert.deepEqual(build.locales, ['en', 'de'])
    const legs = build.legs.map(({ section_key, locale }: Body) => `${section_key} ${locale}`)
    assert.deepEqual(legs.toSorted(), ['again de', 'again en', 'show de', 'show en'])
    const show = build.legs.find(({ section_key }: Body) => section_key === 'show')
    assert.deepEqual(show.outcomes.toSorted(), ['completed', 'later', 'seen'])
    assert.deepEqual(show.facts, { propertyKeys: [], segmentIds: [], experimentIds: [] })
    assert.ok(show.size_bytes > 1000)
    const { body: plan } = await stage.ws.get(`/builds/${buildId}/plan`)
    assert.equal(plan.object, 'build_plan')
    assert.equal(plan.plan.entry, 'show')
    assert.equal(plan.plan.sections.show.outcomes.later, 'later')
  })

  test('a build is found in its own environment and workspace only', async () => {
    const stage = await aStage()
    await stage.save(aDraft())
    const [{ id }] = (await stage.publish()).body.builds
    assert.equal((await stage.ws.get(`/builds/${id}`)).status, 200)
    assertRefused(await stage.ws.get(`/builds/${id}`, { environment: 'live' }), 404, 'not_found')
    assertRefused(await (await api.workspace()).get(`/builds/${id}/plan`), 404, 'not_found')
  })

  test('a version that is only frozen is built too, for the apps that there are', async () => {
    const stage = await aStage()
    await stage.save(aDraft())
    const { body: version } = await stage.publish({ activate: false })
    assert.equal(version.builds.length, 2)
    const { body: same } = await stage.ws.get(`/experiences/offer/versions/${version.id}`)
    assert.deepEqual(same, version)
    const { body: list } = await stage.ws.get('/experiences/offer/versions')
    assert.deepEqual(list.data, [version])
    assertRefused(await stage.ws.get('/experiences/offer/versions/ver_none'), 404, 'not_found')
    const { body: bare } = await (async () => {
      const ws = await api.workspace()
      await ws.post('/experiences', { key: 'x', name: 'X' })
      await ws.call('PUT', '/experiences/x/draft', { body: aDraft(), headers: { 'if-match': '0' } })
      return ws.post('/experiences/x/versions', { activate: false })
    })()
    assert.deepEqual(bare.builds, [])
  })

  test('an Experience tells its newest version and what holds in each app', async () => {
    const stage = await aStage()
    const look = async () => (await stage.ws.get('/experiences/offer')).body
    assert.deepEqual([(await look()).latest_version_id, (await look()).publications], [null, []])
    await stage.save(aDraft())
    const { body: version } = await stage.publish({ app_ids: [stage.apps.ios] })
    const { latest_version_id, publications } = await look()
    assert.equal(latest_version_id, version.id)
    assert.deepEqual(
      publications.map(({ app_id, status, version_id }: Body) => [app_id, status, version_id]),
      [[stage.apps.ios, 'live', version.id]],
    )
    const [listed] = (await stage.ws.get('/experiences')).body.data
    assert.deepEqual(listed, await look())
  })
})

describe('copying', () => {
  test('the draft goes to the other environment, where the Experience is made or keeps all but its draft', async () => {
    const stage = await aStage()
    const { ws } = stage
    const copy = (body: object = { to_environment: 'live' }, environment = 'test') =>
      ws.post('/experiences/offer/copy', body, { environment })
    const bare = await copy()
    assert.deepEqual([bare.status, bare.body.environment, bare.body.draft_revision], [201, 'live', 0])
    await stage.save(aDraft())
    await stage.publish()
    const full = await copy()
    assert.deepEqual([full.status, full.body.id, full.body.draft_revision], [200, bare.body.id, 1])
    assert.deepEqual([full.body.publications, full.body.latest_version_id], [[], null])
    const { draft } = (await ws.get('/experiences/offer/draft', { environment: 'live' })).body
    assert.deepEqual(draft, aDraft())
    assert.deepEqual(
      (await auditOf(api.pool, bare.body.id)).map(({ action }) => action),
      ['copy', 'copy'],
    )
    assertRefused(await copy({ to_environment: 'test' }), 400, 'invalid_request', 'to_environment')
    assertRefused(await copy({}), 400, 'invalid_request')
    await ws.post('/experiences/offer/archive', {}, { environment: 'live' })
    assertRefused(await copy(), 409, 'conflict')
    assert.equal((await copy({ to_environment: 'test' }, 'live')).status, 200)
  })

  test('an Experience of another workspace can not be copied', async () => {
    await aStage()
    const stranger = await api.workspace()
    assertRefused(await stranger.post('/experiences/offer/copy', { to_environment: 'live' }), 404, 'not_found')
  })
})

describe('settings of a project', () => {
  test('the client runtime and deliver_always are kept as they are set, and change nothing else', async () => {
    const ws = await api.workspace()
    const path = `/projects/${ws.projectId}`
    const { body: before } = await ws.get(path)
    assert.deepEqual([before.deliver_always, before.client_runtime], [null, null])
    await ws.patch(path, { client_runtime: runtime })
    await ws.patch(path, { deliver_always: false })
    await ws.patch(path, { name: 'Renamed' })
    const { body: after } = await ws.get(path)
    assert.deepEqual(after, { ...before, name: 'Renamed', deliver_always: false, client_runtime: runtime })
    await ws.patch(path, { deliver_always: null, client_runtime: null })
    assert.deepEqual((await ws.get(path)).body, { ...before, name: 'Renamed' })
  })

  test('a runtime that clients could not read is refused', async () => {
    const ws = await api.workspace()
    const wrong = [
      { minimum_sdk_version: '2.1' },
      { minimum_sdk_version: '2.1.0+build' },
      { luau: { revision: 'l1', bytecode_versions: [6, 5] } },
      { luau: { revision: 'l1', bytecode_versions: [] } },
      { scene_format: { major: 1, minor: 65_536 } },
      { timezone_data: { ...runtime.timezone_data, format: 'other' } },
      { capabilities: ['ser', 'ser'] },
      { extra: 1 },
    ]
    for (const change of wrong) {
      const answer = await ws.patch(`/projects/${ws.projectId}`, { client_runtime: { ...runtime, ...change } })
      assert.equal(answer.status, 400, JSON.stringify(change))
    }
  })

  test('always is sent as written where the project says so, and lowered where it says not', async () => {
    const stage = await aStage()
    const draft = aDraft()
    draft.graph.sections = { again: { entry: { type: 'always' } } }
    const entries = async (deliver_always: boolean | null) => {
      await stage.ws.patch(`/projects/${stage.ws.projectId}`, { deliver_always })
      const { warnings } = await stage.save(draft)
      await stage.publish()
      const releases = await releasesOf(stage, must(stage.apps.ios, 'there is one'))
      const types = releases.map(({ release }) => release.descriptor.leg.entryCondition.type)
      return [types.includes('always'), types.includes('app_foregrounded'), warnings.length]
    }
    assert.deepEqual(await entries(true), [true, false, 0])
    assert.deepEqual(await entries(false), [false, true, 1])
    assert.deepEqual(await entries(null), [true, false, 0])
  })
})

test('the preview of a Product is kept, replaced whole, and refused where clients would refuse it', async () => {
  const ws = await api.workspace()
  const preview = { name: 'Pro', price: '9.99', period_count: 1, has_trial: false }
  const { body } = await ws.post('/products', { key: 'p', name: 'P', type: 'one_time', grants: [], preview })
  assert.deepEqual(body.preview, preview)
  assert.deepEqual((await ws.patch('/products/p', { name: 'Q' })).body.preview, preview)
  assert.deepEqual((await ws.patch('/products/p', { preview: { price: '1' } })).body.preview, { price: '1' })
  assert.equal((await ws.patch('/products/p', { preview: null })).body.preview, null)
  for (const wrong of [
    { price: '' },
    { price: 'x'.repeat(129) },
    { name: 'ß'.repeat(257) },
    { period_count: -1 },
    { more: 1 },
  ]) {
    assert.equal((await ws.patch('/products/p', { preview: wrong })).status, 400, JSON.stringify(wrong))
  }
  assert.equal((await ws.patch('/products/p', { preview: { price: 'x'.repeat(128) } })).status, 200)
})
