import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from '../../src/db/pool.ts'
import { must } from '../../src/kernel/assert.ts'
import { eventually, fetchBytes } from '../app/project.ts'
import { aDraft } from '../harness/a-draft.ts'
import { receiver, says } from '../harness/receiver.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { freePort, postgresOf, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { type Device, openDevice } from '../reference-client/device.ts'
import { type Answer, type Body, caller } from '../workspace/api.ts'
import { assertWhole } from './published-whole.ts'

const rounds = Number(process.env.CRASH_ROUNDS ?? 3)
const seed = process.env.CRASH_SEED ?? 'what is published is published once'
const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')

/** What each round asks for: of each Experience one after the other, of all of them and of the keys at once. */
const verbs = ['version', 'rollback', 'pause', 'resume', 'version', 'unpublish', 'rollback'] as const
const experiences = ['one', 'two', 'three']
const rotations = 3
const changesEach = experiences.length * verbs.length + rotations

test('kill -9 while versions are published, rolled back, paused and taken back and keys change: each is done once and whole, devices take every profile, endpoints are told once', {
  timeout: 300_000,
}, async (t) => {
  const port = await freePort()
  const settings = { PORT: String(port), WEBHOOK_PRIVATE_ADDRESSES: '1', WORKSPACE_RATE_LIMIT: '0' }
  let turnpike = runTurnpike({ dataDir, settings })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => turnpike[Symbol.asyncDispose]())
  const over = new AbortController()
  stack.defer(() => over.abort())
  const url = await turnpike.url
  const { secret_key: secretKey, apps = [], project_id: projectId } = await readFirstRun(dataDir)
  const workspace = caller(url, secretKey)
  const keys = new Map<string, Uint8Array>()
  let broken = 0
  let answered = (): void => {}

  /** As a tool does: whatever is no verdict is asked again, under the same Idempotency-Key. */
  async function final(method: string, path: string, body?: object, headers = {}): Promise<Answer> {
    const options = { headers, ...(body && { body }), ...(method === 'POST' && { idempotencyKey: randomUUID() }) }
    for (const end = performance.now() + 60_000; performance.now() < end && !over.signal.aborted; await sleep(25)) {
      const answer = await workspace(method, path, options).catch((error: unknown) => {
        if (error instanceof assert.AssertionError) throw error
        broken++
      })
      if (answer && answer.status !== 503) return answer
    }
    assert.fail(`${path} was never answered`)
  }
  async function ok(method: string, path: string, body?: object): Promise<Body> {
    const answer = await final(method, path, body)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const post = (path: string, body: object = {}) => ok('POST', path, body)

  /** Told once: an answer that got lost says afterwards that somebody was faster. */
  async function save(key: string, priority: number): Promise<void> {
    const { draft_revision: revision } = await ok('GET', `/experiences/${key}`)
    const draft = { ...aDraft(), priority }
    const saved = await final('PUT', `/experiences/${key}/draft`, draft, { 'if-match': String(revision) })
    assert.ok(saved.status === 200 || saved.body.error.code === 'draft_conflict', JSON.stringify(saved.body))
  }

  let priorities = 0
  let isHearing = true
  const hear = (answer: ServerResponse) => isHearing && says(200)(answer)
  const shop = stack.use(await receiver(hear))
  const expectedTold: string[] = []
  const told: Record<(typeof verbs)[number], string> = {
    ...{ version: 'published', rollback: 'published', pause: 'paused', resume: 'resumed', unpublish: 'unpublished' },
  }
  async function change(key: string, verb: (typeof verbs)[number]): Promise<void> {
    if (verb === 'version') {
      await save(key, ++priorities)
      await post(`/experiences/${key}/versions`)
    } else if (verb === 'rollback') {
      const { data } = await ok('GET', `/experiences/${key}/versions`)
      await post(`/experiences/${key}/versions/${must(data.at(-1), 'it has one').id}/activate`)
    } else await post(`/experiences/${key}/${verb}`)
    expectedTold.push(`experience.${told[verb]}`)
    answered()
  }
  const changeAll = async (key: string) => {
    for (const verb of verbs) await change(key, verb)
  }

  let signer = must((await ok('GET', '/signing_keys')).data[0], 'the demo has one')
  keys.set(signer.key_id, Buffer.from(signer.public_key, 'base64'))
  async function rotate(): Promise<void> {
    const before = signer
    const key = await post('/signing_keys')
    keys.set(key.key_id, Buffer.from(key.public_key, 'base64'))
    signer = await post(`/signing_keys/${key.id}/activate`)
    await post(`/signing_keys/${before.id}/revoke`)
    answered()
  }
  const rotateAll = async () => {
    for (let n = 0; n < rotations; n++) await rotate()
  }

  /** A device of each app, until it is told to stop: it refuses what does not verify, and what is older than what it has seen. */
  const phoneOf = (apiKey: string, known: ReadonlyMap<string, Uint8Array> = keys) => {
    const as = { distinctId: 'demo-user', namespace: 'service', mode: 'clients', now: Date.now } as const
    return openDevice({ ...as, apiKey, keys: known, transport })
  }
  async function transport(path: string, body: string | Uint8Array, headers: Record<string, string>) {
    const answer = await fetchBytes(url, 'POST', path, Buffer.from(body), headers)
    if (answer.status === 503) throw new Error('nobody is served at the moment')
    return answer
  }
  const phones = apps.map(({ keys: own }) => phoneOf(own.test))
  let taken = 0
  async function watch(phone: Device, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const synced = await phone.sync().catch(() => ({ kind: 'lost' as const }))
      assert.notEqual(synced.kind, 'refused', JSON.stringify(synced))
      if (synced.kind === 'taken') taken++
      await sleep(synced.kind === 'lost' ? 25 : 2)
    }
  }

  for (const key of experiences) await post('/experiences', { key, name: key })
  const events = [...new Set(Object.values(told))].map((word) => `experience.${word}`)
  await post('/webhook_endpoints', { name: 'Shop', url: shop.url, events })
  // One is on its way to them when the process dies.
  isHearing = false
  await Promise.all(experiences.map((key) => change(key, 'version')))
  await eventually(async () => shop.heard.length > 0, 30_000)

  for (let round = 0; round < rounds; round++) {
    const random = createHash('sha256').update(`${seed} ${round}`).digest()
    const after = 1 + (random.readUInt16BE(0) % (changesEach - 6))
    const delayMs = random.readUInt16BE(2) % 30
    const withPostgres = round % 3 === 2
    await t.test(
      `${delayMs} ms after ${after} of ${changesEach} changes${withPostgres ? ', PostgreSQL too' : ''}`,
      async () => {
        const stop = new AbortController()
        const until = AbortSignal.any([stop.signal, over.signal])
        const watched = Promise.all(phones.map((phone) => watch(phone, until)))
        const { promise: isTime, resolve } = Promise.withResolvers<void>()
        let left = after
        answered = () => --left === 0 && resolve()
        // What they are told of before is left to the next process, sent or not.
        isHearing = false
        const calls = Promise.all([...experiences.map(changeAll), rotateAll()])
        await Promise.race([isTime, calls, watched])
        await sleep(delayMs)
        const { processId, url: database } = await postgresOf(dataDir)
        turnpike.process.kill('SIGKILL')
        if (withPostgres) process.kill(processId, 'SIGKILL')
        await turnpike.ended
        if (!withPostgres) await assertWhole(database)
        turnpike = runTurnpike({ dataDir, settings })
        await turnpike.url
        isHearing = true
        await Promise.race([calls, watched])
        stop.abort()
        await Promise.all([calls, watched])
        await assertWhole((await postgresOf(dataDir)).url)
      },
    )
  }
  assert.ok(broken > 0, 'nobody noticed')
  assert.ok(taken > rounds * phones.length, 'nobody saw anything')

  await using pool = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
  await t.test('every call was answered once, and is there once', async () => {
    const publishes = expectedTold.filter((type) => type === 'experience.published').length
    const made = await pool.query<{ count: number }>(
      `select count(*)::int as count
       from publication p
       join scope s on s.id = p.scope_id
       where p.published_by <> 'setup'
         and s.project_id = $1
       group by p.app_id`,
      [projectId],
    )
    assert.deepEqual(
      made,
      apps.map(() => ({ count: publishes })),
    )
    const audit = await pool.query<{ action: string; count: number }>(
      `select action, count(*)::int as count from audit_log where object = 'experience' group by 1`,
    )
    const count = (action: string) => audit.find((one) => one.action === action)?.count
    const each = experiences.length * rounds
    assert.deepEqual(['publish', 'activate', 'pause', 'resume', 'unpublish'].map(count), [
      publishes - 2 * each,
      2 * each,
      each,
      each,
      each,
    ])
  })

  await t.test('devices that know the last key alone take what is live in the end', async () => {
    const { key_id: keyId } = signer
    const known = new Map([[keyId, must(keys.get(keyId), 'it was shipped')]])
    for (const [n, { keys: own }] of apps.entries()) {
      const device = phoneOf(own.test, known)
      assert.deepEqual(await device.sync(), { kind: 'taken' })
      await must(phones[n], 'one of each app').sync()
      assert.deepEqual(device.profile()?.releases, phones[n]?.profile()?.releases)
      const seen = new Set(device.profile()?.releases.map(({ locator }) => locator.experienceId))
      assert.equal(seen.size, experiences.length + 1, 'and the demo')
    }
  })

  await t.test(
    'endpoints are told of each change under one key, also of those that the dead process had left',
    async () => {
      // What a dead process had taken is its own for twenty seconds: they have gone by.
      await pool.query('update announcement set due_at_ms = 0')
      await eventually(async () => (await pool.query('select from announcement')).length === 0, 30_000)
      const byId = Map.groupBy(shop.heard, ({ headers }) => String(headers['webhook-id']))
      assert.ok(
        [...byId.values()].some((same) => same.length > 1),
        'some was told by two processes',
      )
      const bodies = [...byId.values()].map((same) => {
        assert.equal(new Set(same.map(({ body }) => body)).size, 1)
        return JSON.parse(must(same[0], 'a group has one').body)
      })
      assert.deepEqual(bodies.map(({ type }) => String(type)).toSorted(), expectedTold.toSorted())
      const seqs = bodies.flatMap(({ data }) =>
        data.apps.flatMap((app: Body) =>
          app.published_at_seq === undefined ? [] : [`${app.app_id} ${app.published_at_seq}`],
        ),
      )
      assert.equal(new Set(seqs).size, seqs.length)
      assert.equal(seqs.length, apps.length * expectedTold.filter((type) => type === 'experience.published').length)
    },
  )
})
