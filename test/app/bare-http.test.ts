import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { fetchBytes } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const { hostname, port } = new URL(service.url)

test('methods that no route knows are 405 with Allow where there is a path, and 404 elsewhere', async () => {
  for (const method of ['PROPFIND', 'MKCOL', 'LOCK', 'QUERY', 'REPORT']) {
    const known = await say(`${method} /profile HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(known, /^HTTP\/1\.1 405 /, method)
    assert.match(known, /\r\nallow: POST\r\n/i)
    const workspace = await say(`${method} /v1/features/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(workspace, /^HTTP\/1\.1 405 /, method)
    assert.match(workspace, /"error":\{"code":"method_not_allowed"/)
    assert.match(await say(`${method} /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`), /^HTTP\/1\.1 404 /)
  }
})

test('a request without Host, and an expectation that cannot be met, are refused in our words', async () => {
  const noHost = await say('GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')
  assert.match(noHost, /^HTTP\/1\.1 400 /)
  assert.match(noHost, /"code":"invalid_request","message":"The header Host is missing\.","request_id":"/)
  const expecting = await say('GET /health HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n')
  assert.match(expecting, /^HTTP\/1\.1 417 /)
  assert.match(expecting, /"code":"invalid_request".*"request_id":"/)
  assert.match(await say('GET /health HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /, 'HTTP/1.0 has no Host')
})

test('a request that bytes of another kind follow gets its own answer before they are refused', async () => {
  const whole = `GET /v1/projects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.secretKey}\r\n\r\n`
  const cut = `POST /event HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`
  for (const bad of ['BAD\r\n\r\n', cut]) {
    const answers = await say(whole + whole + bad)
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
    assert.deepEqual(statuses, ['200', '200', '400'])
    assert.match(answers, /"message":"The request is not valid HTTP\."[^}]*\}$/)
  }
})

describe('security headers', () => {
  const expected = {
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  }

  test('are on every answer of the Workspace API, whatever its status', async () => {
    const key = { authorization: `Bearer ${service.secretKey}` }
    const asked: [string, string, string | undefined, Record<string, string>, number][] = [
      ['GET', '/v1/features?project_id=none', undefined, key, 404],
      ['GET', '/v1/projects', undefined, key, 200],
      ['POST', '/v1/projects', '{"name":"Kitchen"}', { ...key, 'content-type': 'application/json' }, 201],
      ['POST', '/v1/projects', '{', { ...key, 'content-type': 'application/json' }, 400],
      ['GET', '/v1/projects', undefined, {}, 401],
      ['GET', '/v1/nothing', undefined, key, 404],
      ['PUT', '/v1/projects', undefined, key, 405],
      ['GET', '/v1/%zz', undefined, key, 400],
    ]
    for (const [method, path, body, headers, status] of asked) {
      const answer = await fetchBytes(service.url, method, path, body, headers)
      assert.equal(answer.status, status, `${method} ${path}`)
      for (const [name, value] of Object.entries(expected)) {
        assert.equal(answer.headers.get(name), value, `${name} of ${method} ${path}`)
      }
    }
  })

  test('of the pages let nothing in from elsewhere, and no answer names the software or its version', async () => {
    for (const path of ['/docs', '/docs/page.js', '/docs/workspace.json', '/health', '/nothing', '/v1/projects']) {
      const { headers } = await fetchBytes(service.url, 'GET', path)
      if (path.startsWith('/docs')) {
        assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
        assert.equal(headers.get('x-content-type-options'), 'nosniff')
      }
      for (const name of ['server', 'x-powered-by', 'via']) assert.equal(headers.get(name), null, `${name} of ${path}`)
    }
  })
})

test('a preflight lets web apps name their app and environment, as any request may', async () => {
  const answer = await fetchBytes(service.url, 'OPTIONS', '/event', undefined, { origin: 'https://app.example' })
  const allowed = (answer.headers.get('access-control-allow-headers') ?? '').split(', ')
  for (const name of ['Content-Type', 'Service-App-Id', 'Service-App-Environment', 'X-Service-Env']) {
    assert.ok(allowed.includes(name), name)
  }
})

/** Everything that comes back for these bytes. */
async function say(request: string): Promise<string> {
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  socket.write(request)
  return text(socket)
}
