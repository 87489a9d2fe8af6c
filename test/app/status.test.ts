import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { assertRefused, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)

test('GET /status, 200: tells which app and environment the key selects', async () => {
  for (const environment of ['test', 'live'] as const) {
    const app = await project.app('android', environment)
    const { status, body } = await send(service.url, 'GET', `/status?apiKey=${app.key}`, undefined)
    assert.equal(status, 200)
    const { timestamp, ...rest } = body
    assert.deepEqual(rest, {
      status: 'ok',
      app: { id: app.id, name: app.name, appId: project.id, appPlatformId: app.id, environment },
    })
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 5000)
  }
})

test('GET /status, 200: the name is the app’s, as it is now', async () => {
  const app = await project.app()
  await project.patch(`/apps/${app.id}`, { name: 'Küche 🍲' })
  const { body } = await send(service.url, 'GET', `/status?apiKey=${app.key}`, undefined)
  assert.equal(body.app.name, 'Küche 🍲')
})

test('GET /status, 401: no key, an unknown one, two, one in a header or in a body', async () => {
  const { key } = await project.app()
  for (const query of [
    '',
    '?apiKey=',
    '?apiKey',
    '?apiKey=pk_test_nobody',
    `?apikey=${key}`,
    `?apiKey=${key}&apiKey=${key}`,
  ]) {
    assertRefused(await send(service.url, 'GET', `/status${query}`, undefined), 401, 'invalid_api_key')
  }
  const headers = { authorization: `Bearer ${key}`, 'x-api-key': key }
  assertRefused(await send(service.url, 'GET', '/status', undefined, headers), 401, 'invalid_api_key')
})
