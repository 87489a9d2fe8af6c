import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService, type TestService } from '../harness/service.ts'
import { caller } from '../workspace/api.ts'
import type { Answer } from './answers.ts'
import {
  type App,
  anEvent,
  aSecondMs,
  assertRefused,
  clientOf,
  eventually,
  type Headers,
  openProject,
  send,
} from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')
await project.feature('exports')

/** Every operation that takes a key, with everything else as it should be. */
const operations: Record<string, (url: string, apiKey: unknown, headers?: Headers) => Promise<Answer>> = {
  'POST /profile': (url, apiKey, headers) =>
    clientOf(url, '').post('/profile', { distinct_id: 'ada', apiKey }, headers),
  'POST /event': (url, apiKey, headers) => clientOf(url, '').post('/event', { ...anEvent('ada'), apiKey }, headers),
  'POST /batch': (url, apiKey, headers) =>
    clientOf(url, '').postGzip('/batch', { batch: [anEvent('ada')], apiKey }, headers),
  'POST /entitled': (url, apiKey, headers) =>
    clientOf(url, '').post('/entitled', { customerId: 'ada', featureId: 'exports', apiKey }, headers),
  'POST /feature/consume': (url, apiKey, headers) => {
    const command = { customerId: 'ada', featureId: 'exports', operationId: randomUUID(), quantity: 1 }
    return clientOf(url, '').post('/feature/consume', { ...command, apiKey }, headers)
  },
  'GET /status': (url, apiKey, headers) => send(url, 'GET', `/status${queryOf(apiKey)}`, undefined, headers),
  'GET /event': (url, apiKey, headers) => send(url, 'GET', `/event${queryOf(apiKey)}`, undefined, headers),
}

function queryOf(apiKey: unknown): string {
  if (apiKey === undefined) return ''
  return `?apiKey=${encodeURIComponent(typeof apiKey === 'string' ? apiKey : JSON.stringify(apiKey))}`
}

for (const [operation, ask] of Object.entries(operations)) {
  describe(`${operation}: the key`, () => {
    test('200: is taken', async () => {
      assert.equal((await ask(service.url, app.key)).status, 200)
    })

    test('401 invalid_api_key: is missing, unknown or no text', async () => {
      const keys = [undefined, null, '', ' ', 0, 7, true, [], [app.key], {}, 'pk', 'pk_test_', 'pk_live_', 'nothing']
      const nearly = [
        `${app.key} `,
        ` ${app.key}`,
        app.key.toUpperCase(),
        app.key.slice(0, -1),
        `${app.key}x`,
        `${app.key}\0`,
      ]
      const others = [app.key.replace('pk_test_', 'pk_live_'), app.key.replace('pk_test_', ''), app.keyId, app.id]
      for (const key of [...keys, ...nearly, ...others]) {
        assertRefused(await ask(service.url, key), 401, 'invalid_api_key')
      }
    })

    test('401 key_kind_invalid: is a secret key, whether there is one like it or not', async () => {
      for (const key of [service.secretKey, 'sk_nobody', 'sk_', `${service.secretKey} `]) {
        assertRefused(await ask(service.url, key), 401, 'key_kind_invalid')
      }
    })

    test('403 scope_mismatch: is of another app or environment than a header names', async () => {
      const other = await project.app('ios')
      for (const headers of [
        { 'Service-App-Id': other.id },
        { 'Service-App-Id': 'nothing' },
        { 'Service-App-Id': project.id },
        { 'Service-App-Environment': 'live' },
        { 'Service-App-Environment': 'Test' },
        { 'X-Service-Env': 'live' },
        { 'Service-App-Id': app.id, 'Service-App-Environment': 'live' },
        { 'Service-App-Id': other.id, 'Service-App-Environment': 'test' },
      ]) {
        assertRefused(await ask(service.url, app.key, headers), 403, 'scope_mismatch')
      }
      const right = { 'Service-App-Id': app.id, 'Service-App-Environment': 'test', 'X-Service-Env': 'test' }
      assert.equal((await ask(service.url, app.key, right)).status, 200)
    })
  })
}

const status = (url: string, key: string) => send(url, 'GET', `/status?apiKey=${key}`, undefined)

test('keys of one project select its apps and environments, and never another project’s data', async () => {
  const live = await project.app('android', 'live')
  const other = await openProject(service)
  const stranger = await other.app('ios')
  for (const [each, parent] of [
    [app, project],
    [live, project],
    [stranger, other],
  ] as const) {
    const { body } = await status(service.url, each.key)
    const { appId, appPlatformId, environment } = body.app
    assert.deepEqual([appId, appPlatformId, environment], [parent.id, each.id, each.environment])
  }
  await project.customer('same-id')
  await other.feature('exports')
  const { body } = await stranger.post('/entitled', { customerId: 'same-id', featureId: 'exports' })
  assert.equal(body.code, 'customer_missing')
})

test('a publishable key on the Workspace API is key_kind_invalid, whether there is one like it or not', async () => {
  for (const key of [app.key, 'pk_test_nobody', 'pk_']) {
    const { status: code, body } = await caller(service.url, key)('GET', '/projects')
    assert.deepEqual([code, body.error.code], [401, 'key_kind_invalid'])
  }
})

describe('a key that is revoked', () => {
  const revoke = (of: App) => project.delete(`/apps/${of.id}/publishable_keys/${of.keyId}`)

  async function refusedWithinASecond(at: TestService, of: App, take: () => Promise<unknown>): Promise<void> {
    await eventually(async () => (await status(at.url, of.key)).status === 200, aSecondMs)
    await take()
    const answer = await eventually(async () => {
      const asked = await status(at.url, of.key)
      return asked.status === 401 && asked
    }, aSecondMs)
    assertRefused(answer, 401, 'invalid_api_key')
    for (const ask of Object.values(operations)) assertRefused(await ask(at.url, of.key), 401, 'invalid_api_key')
  }

  test('is refused, and other keys of the app are not', async () => {
    const revoked = await project.app('ios')
    const { key } = await project.post(`/apps/${revoked.id}/publishable_keys`, {})
    await refusedWithinASecond(service, revoked, () => revoke(revoked))
    assert.equal((await status(service.url, key)).status, 200)
  })

  test('is refused when its app is deleted, or the whole project', async () => {
    const deleted = await project.app('ios')
    await refusedWithinASecond(service, deleted, () => project.delete(`/apps/${deleted.id}`))
    const closed = await openProject(service)
    const closedApp = await closed.app('ios')
    await refusedWithinASecond(service, closedApp, () => closed.delete(`/projects/${closed.id}`))
  })

  test('is refused by another process too, even when no notification reaches it', async () => {
    await using node = await service.another({ ROLE: 'api' })
    const told = await project.app('ios')
    await refusedWithinASecond(node, told, () => revoke(told))
    const untold = await project.app('ios')
    await service.pool.query(
      `select pg_terminate_backend(pid)
       from pg_stat_activity
       where datname = current_database()
         and application_name = 'turnpike listen'`,
    )
    await refusedWithinASecond(node, untold, () => revoke(untold))
  })

  test('that is new is taken by every process within a second', async () => {
    await using node = await service.another({ ROLE: 'api' })
    const created = await project.app('web', 'live')
    await eventually(async () => (await status(node.url, created.key)).status === 200, aSecondMs)
  })
})
