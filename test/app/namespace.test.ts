import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { assertRefused, clientOf, fetchBytes, openProject, send } from './project.ts'

const service = await startService({ NAMESPACE: 'acme', PUBLIC_URL: 'http://api.example.test:8080/turnpike' })
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
const profile = (headers = {}) => app.post('/profile', { distinct_id: 'ada' }, headers)

test('another NAMESPACE is in the schema and the headers of a profile, and service is nowhere', async () => {
  const { body, headers, bytes } = await profile({ origin: 'https://app.example.test' })
  assert.equal(body.schemaVersion, 'acme.journey-plane-profile.v2')
  assert.equal(headers.get('acme-app-id'), app.id)
  assert.equal(headers.get('acme-app-environment'), 'test')
  assert.match(headers.get('access-control-expose-headers') ?? '', /Acme-App-Id, Acme-App-Environment/)
  const told = `${[...headers].join()}${bytes.toString()}`
  assert.doesNotMatch(told, /service/i)
})

test('its headers say which app and environment a request is for, and those of service say nothing', async () => {
  assertRefused(await profile({ 'acme-app-environment': 'live' }), 403, 'scope_mismatch')
  assertRefused(await profile({ 'acme-app-id': 'x' }), 403, 'scope_mismatch')
  assertRefused(await profile({ 'x-acme-env': 'live' }), 403, 'scope_mismatch')
  const ofService = { 'service-app-environment': 'live', 'service-app-id': 'x', 'x-service-env': 'live' }
  assert.equal((await profile(ofService)).status, 200)
})

test('its header selects the environment of the Workspace API', async () => {
  await project.customer('only-live', { environment: 'live', headers: { 'x-service-env': 'test' } })
  const find = (environment: string) =>
    fetchBytes(service.url, 'GET', `/v1/customers/by_distinct_id/only-live?project_id=${project.id}`, undefined, {
      authorization: `Bearer ${service.secretKey}`,
      'x-acme-env': environment,
    })
  assert.equal((await find('live')).status, 200)
  assert.equal((await find('test')).status, 404)
})

test('delivery addresses are derived from PUBLIC_URL as https folders', async () => {
  const { delivery } = (await profile()).body
  assert.deepEqual(delivery, {
    renderBaseUrl: 'https://api.example.test:8080/turnpike/r/',
    assetBaseUrl: 'https://api.example.test:8080/turnpike/a/',
  })
})

test('without settings they are https folders of the address that is listened on', async () => {
  await using node = await service.another({ ROLE: 'api' })
  const { delivery } = (await clientOf(node.url, app.key).post('/profile', { distinct_id: 'ada' })).body
  for (const [name, folder] of [
    ['renderBaseUrl', 'r'],
    ['assetBaseUrl', 'a'],
  ] as const) {
    assert.equal(delivery[name], `${node.url.replace('http:', 'https:')}/${folder}/`)
  }
  assert.equal((await send(node.url, 'GET', '/health', undefined)).status, 200)
})
