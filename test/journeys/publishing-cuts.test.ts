import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Pool } from '../../src/db/pool.ts'
import { must } from '../../src/kernel/assert.ts'
import { eventually } from '../app/project.ts'
import { lineTo, openWorld } from '../end-to-end/world.ts'
import { aDraft } from '../harness/a-draft.ts'
import { cutProxy } from '../harness/cut-proxy.ts'
import { receiver, says } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { openDevice } from '../reference-client/device.ts'
import { type Answer, assertRefused, type Body, caller, startApi } from '../workspace/api.ts'

/**
 * Publishing by a Workspace API that loses its database at any statement, and two phones of a customer, one of each app, that
 * fetch from a service which does not. Lost before a statement is, for the database, lost after the one in front of it; after
 * the last one, which commits, it is looked at by itself.
 */
await using stack = new AsyncDisposableStack()
const service = stack.use(await startService({ WEBHOOK_PRIVATE_ADDRESSES: '1' }))
const shop = stack.use(await receiver(says(200)))
const proxy = stack.use(await cutProxy(service.databaseUrl))
const by = stack.use(new Pool(proxy.url, { name: 'cut', max: 1 }))
const api = stack.use(await startApi({ ...service, by }))
const everything = stack.move()
after(() => everything.disposeAsync())

const { pool } = service
const world = await openWorld(service)
const { project, keys } = world
const android = await project.app('android')
const scopeId = await project.scopeId()
const distinctId = 'ada'
await project.customer(distinctId)

const phoneOf = (apiKey: string, known: ReadonlyMap<string, Uint8Array> = keys) => {
  const as = { distinctId, namespace: 'service', mode: 'clients', transport: lineTo(service), now: Date.now } as const
  return openDevice({ ...as, apiKey, keys: known })
}
const phones = [world.app, android].map(({ key }) => phoneOf(key))

const place = `?project_id=${project.id}`
const at = (path: string) => `/experiences/welcome${path}${place}`
const throughCuts = caller(api.url, service.secretKey)

type Status = 'live' | 'paused' | 'unpublished'

/** What a version becomes, or stays, in both apps. */
interface Change {
  /** Makes it possible. */
  prepare: () => Promise<Call>
  status: Status
  /** Numbers that it takes in each app, each time that it is asked for. */
  takes: 0 | 1
  /** As endpoints hear of it, where they do. */
  told?: 'published' | 'paused' | 'resumed' | 'unpublished'
  /** What else is so once it is done. */
  also?: (call: Call) => Promise<void>
}

interface Call {
  path: string
  /** Number of the version that stands there afterwards. */
  version: number
}

const expectedTold: string[] = []
let drafts = 0

/** Over a connection that holds. */
async function directly(path: string, told?: Change['told']): Promise<Body> {
  if (told) expectedTold.push(told)
  return project.post(path, {})
}

async function saveDraft(): Promise<void> {
  const options = { body: { ...aDraft(), priority: ++drafts }, headers: { 'if-match': String(drafts - 1) } }
  assert.equal((await service.workspace('PUT', at('/draft'), options)).status, 200)
}

/** The row of each app: they never differ. */
async function standing(): Promise<{ status: Status; version: number; seq: number }> {
  const rows = await pool.query<{ status: Status; version: number; seq: number; count: number; last: number }>(
    `select pp.status, p.version_number as version, pp.seq::int as seq, s.last::int as last,
       (select count(*)::int from publication a where a.scope_id = pp.scope_id and a.app_id = pp.app_id) as count
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     join publish_seq s on s.scope_id = pp.scope_id and s.app_id = pp.app_id
     where pp.scope_id = $1`,
    [scopeId],
  )
  const [one, other] = rows
  assert.ok(one && rows.length === 2)
  assert.deepEqual(one, other, 'both apps are at the same')
  assert.deepEqual([one.last, one.count], [one.seq, one.seq], 'numbers have no gap, and the newest holds')
  return { status: one.status, version: one.version, seq: one.seq }
}

async function be(wanted: 'live' | 'paused'): Promise<number> {
  const { status, version } = await standing()
  if (status === 'unpublished') await directly(at(`/versions/${await versionId(version)}/activate`), 'published')
  if (status === 'paused' && wanted === 'live') await directly(at('/resume'), 'resumed')
  if (status !== 'paused' && wanted === 'paused') await directly(at('/pause'), 'paused')
  return version
}

async function versionId(version: number): Promise<string> {
  const { data } = await project.get(at('/versions'))
  return must(
    data.find((one: Body) => one.version_number === version),
    'it was frozen',
  ).id
}

async function newKey(): Promise<Body> {
  const key = await project.post('/signing_keys', { project_id: project.id })
  keys.set(key.key_id, Buffer.from(key.public_key, 'base64'))
  return key
}

const [first] = (await project.get(`/signing_keys${place}`)).data
const signers: Body[] = [first, await newKey()]
const signer = () => must(signers[0], 'there are two')

await project.post('/experiences', { project_id: project.id, key: 'welcome', name: 'Welcome' })
const events = ['published', 'paused', 'resumed', 'unpublished'].map((verb) => `experience.${verb}`)
await project.post('/webhook_endpoints', { project_id: project.id, name: 'Shop', url: shop.url, events })
for (const _ of [1, 2]) {
  await saveDraft()
  await directly(at('/versions'), 'published')
}

const changes: Record<string, Change> = {
  'a new version': {
    async prepare() {
      const { version } = await standing()
      await saveDraft()
      return { path: at('/versions'), version: version + 1 }
    },
    ...{ status: 'live', takes: 1, told: 'published' },
  },
  'a rollback': {
    async prepare() {
      const version = (await standing()).version === 1 ? 2 : 1
      return { path: at(`/versions/${await versionId(version)}/activate`), version }
    },
    ...{ status: 'live', takes: 1, told: 'published' },
  },
  'a pause': {
    prepare: async () => ({ path: at('/pause'), version: await be('live') }),
    ...{ status: 'paused', takes: 0, told: 'paused' },
  },
  'a resumption': {
    prepare: async () => ({ path: at('/resume'), version: await be('paused') }),
    ...{ status: 'live', takes: 0, told: 'resumed' },
  },
  'an unpublishing': {
    prepare: async () => ({ path: at('/unpublish'), version: await be('live') }),
    ...{ status: 'unpublished', takes: 0, told: 'unpublished' },
  },
  'a key that takes over': {
    async prepare() {
      const version = await be('live')
      signers.reverse()
      return { path: `/signing_keys/${signer().id}/activate`, version }
    },
    ...{ status: 'live', takes: 0 },
    async also() {
      const { key_id: keyId } = signer()
      const known = new Map([[keyId, must(keys.get(keyId), 'it was shipped')]])
      for (const app of [world.app, android]) {
        assert.deepEqual(await phoneOf(app.key, known).sync(), { kind: 'taken' }, 'all is signed with it')
      }
    },
  },
  'a key that is revoked': {
    async prepare() {
      const version = await be('live')
      const { id } = await newKey()
      await directly(`/signing_keys/${id}/activate`)
      await directly(`/signing_keys/${signer().id}/activate`)
      return { path: `/signing_keys/${id}/revoke`, version }
    },
    ...{ status: 'live', takes: 0 },
    async also({ path }) {
      assert.equal((await project.get(path.replace('/revoke', ''))).status, 'revoked')
      const valid = `select from signing_key_use u join signing_key k on k.id = u.signing_key_id and k.status = 'active'`
      assert.equal((await pool.query(`${valid} where u.scope_id = $1`, [scopeId])).length, 1)
    },
  },
}

/** All that the changes write, but for what endpoints are to hear, which goes away by itself. */
const tables = `audit_log experience experience_build experience_build_leg experience_version idempotency publication
  publication_leg publication_pointer publish_seq release release_signature scope signing_key signing_key_use`
const allRows = tables
  .split(/\s+/)
  .map((table) => `select '${table}' as of, md5(string_agg(t::text, ' ' order by t::text)) as rows from ${table} t`)
  .join(' union all ')

const stored = () => pool.query(allRows)

async function fetchAll(expected: 'taken' | 'unchanged'): Promise<void> {
  for (const phone of phones) assert.deepEqual(await phone.sync(), { kind: expected })
}

/** All of it: the rows, and what the phones take for it. Their memory refuses a number that went back. */
async function assertDone(change: Change, call: Call, seq: number): Promise<void> {
  assert.deepEqual(await standing(), { status: change.status, version: call.version, seq })
  for (const phone of phones) {
    const { kind } = await phone.sync()
    assert.notEqual(kind, 'refused')
    const { armedLegs = [], releases = [] } = phone.profile() ?? {}
    const offered = releases.map(({ locator }) => [locator.versionNumber, locator.publishedAtSeq])
    assert.deepEqual(offered, change.status === 'live' ? [[call.version, seq]] : [])
    assert.equal(armedLegs.length, offered.length)
  }
  await change.also?.(call)
}

/** By the API that loses its database, under a name of its own where it has one. */
const ask = ({ path }: Call, idempotencyKey?: string): Promise<Answer> =>
  throughCuts('POST', path, { body: {}, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) })

/** How many statements it takes when nothing is lost. */
async function wholly(change: Change, idempotencyKey?: string): Promise<number> {
  const call = await change.prepare()
  const { seq } = await standing()
  const before = proxy.statements
  const { status, body } = await ask(call, idempotencyKey)
  assert.ok(status < 300, JSON.stringify(body))
  const statements = proxy.statements - before
  if (change.told) expectedTold.push(change.told)
  await assertDone(change, call, seq + change.takes)
  return statements
}

let named = 0
const newName = () => `cut-${++named}`

for (const [name, change] of Object.entries(changes)) {
  const loses = async (call: Call, place: { n: number; when: 'before' | 'after' }, idempotencyKey?: string) => {
    proxy.cut(place.n, place.when)
    assertRefused(await ask(call, idempotencyKey), 503, 'service_unavailable')
  }

  test(`${name}, asked for until it is answered, each time with the connection lost one statement later: none of it, and then all of it, once`, async (t) => {
    const statements = await wholly(change, newName())
    assert.ok(statements >= 10, `only ${statements} statements`)
    t.diagnostic(`${statements} statements`)
    const [call, idempotencyKey] = [await change.prepare(), newName()]
    const { seq } = await standing()
    await Promise.all(phones.map((phone) => phone.sync()))
    const before = await stored()
    for (let n = 1; n <= statements; n++) {
      await loses(call, { n, when: 'before' }, idempotencyKey)
      assert.deepEqual(await stored(), before, `statement ${n} of ${statements}`)
      await fetchAll('unchanged')
    }
    // What the commit has answered is lost.
    await loses(call, { n: statements, when: 'after' }, idempotencyKey)
    if (change.told) expectedTold.push(change.told)
    await assertDone(change, call, seq + change.takes)
    const done = await stored()
    const again = await ask(call, idempotencyKey)
    assert.ok(again.status < 300, JSON.stringify(again.body))
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(await stored(), done)
    await fetchAll('unchanged')
  })

  test(`${name}, asked for again without an Idempotency-Key when the answer of its commit was lost: one version, under ${change.takes === 0 ? 'the same' : 'the next'} number`, async () => {
    const statements = await wholly(change)
    const call = await change.prepare()
    const { seq } = await standing()
    await loses(call, { n: statements, when: 'after' })
    await assertDone(change, call, seq + change.takes)
    const { status, body } = await ask(call)
    assert.ok(status < 300, JSON.stringify(body))
    await assertDone(change, call, seq + 2 * change.takes)
    if (change.told) expectedTold.push(...(change.takes === 0 ? [change.told] : [change.told, change.told]))
  })
}

test('endpoints are told of each of these changes once, of what was lost never', async () => {
  await eventually(async () => (await pool.query('select from announcement')).length === 0, 20_000)
  const heard = shop.heard.map(({ body }) => JSON.parse(body))
  assert.deepEqual(
    heard.map(({ type }) => String(type)).toSorted(),
    expectedTold.map((verb) => `experience.${verb}`).toSorted(),
  )
  assert.equal(new Set(shop.heard.map(({ headers }) => headers['webhook-id'])).size, heard.length)
  const seqs = heard.flatMap(({ data }) => data.apps.flatMap((app: Body) => app.published_at_seq ?? []))
  const { seq } = await standing()
  const each = Array.from({ length: seq }, (_, i) => i + 1)
  assert.deepEqual(
    seqs.toSorted((a, b) => a - b),
    each.flatMap((one) => [one, one]),
  )
})
