import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { startService } from '../harness/service.ts'
import { assertError, type Body } from './answers.ts'
import { anEvent, assertRefused, fetchBytes, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('web')
await project.feature('exports')

const documents = Object.fromEntries(
  (['app', 'workspace'] as const).map((api) => [
    api,
    JSON.parse(readFileSync(new URL(`../../docs/openapi/${api}.json`, import.meta.url), 'utf8')).paths,
  ]),
) as Record<'app' | 'workspace', Record<string, Record<string, unknown>>>
const appPaths = Object.entries(documents.app).map(([path, methods]) => ({ path, methods: named(methods) }))

/** Those that are documented, and HEAD beside every GET. */
function named(operations: Record<string, unknown>): string[] {
  const methods = Object.keys(operations).map((method) => method.toUpperCase())
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

describe('404', () => {
  test('a path that is none, with any method and any body, before anything of it is looked at', async () => {
    const paths = [
      '/',
      '/nothing',
      '/profile/',
      '/Profile',
      '//profile',
      '/profile/x',
      '/event/1',
      '/feature',
      '/v1x',
      '/%00',
    ]
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const body = method === 'GET' ? undefined : '{'
        const answer = await fetchBytes(service.url, method, path, body, { 'content-type': 'text/x' })
        assertRefused(answer, 404, 'not_found')
        assertError(answer)
      }
    }
  })

  test('one that cannot be read is 400, and one that is too long 404 or 414', async () => {
    assertRefused(await fetchBytes(service.url, 'GET', '/%zz'), 400, 'invalid_request')
    const answer = await fetchBytes(service.url, 'GET', `/${'x'.repeat(8000)}`)
    assert.ok([404, 414].includes(answer.status))
    assertError(answer)
  })

  test('below /v1 in the words of the Workspace API', async () => {
    const { status, body } = await fetchBytes(service.url, 'POST', '/v1/nothing', '{')
    assert.deepEqual([status, body.error.code], [404, 'not_found'])
  })
})

describe('405 with Allow', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']

  for (const { path, methods: allowed } of [...appPaths, { path: '/metrics', methods: ['GET', 'HEAD'] }]) {
    test(`${path} knows ${allowed.join(', ')}`, async () => {
      for (const method of methods.filter((each) => !allowed.includes(each))) {
        const { status, allow, text } = await ask(method, path)
        assert.equal(status, 405, method)
        assert.deepEqual(new Set(allow?.split(', ')), new Set(allowed), method)
        if (method !== 'HEAD') assert.equal(JSON.parse(text).code, 'method_not_allowed')
      }
    })
  }

  test('every path of the Workspace API, without a key', async () => {
    const templates = Object.entries(documents.workspace)
    for (const [template] of templates) {
      const path = template.replaceAll(/\{\w+\}/g, 'x')
      // The word at the end of `/segments/preview` could be an id as well: other methods are those of `/segments/{id}`.
      const fitting = templates.filter(([other]) => new RegExp(`^${other.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path))
      const allowed = fitting.flatMap(([, operations]) => named(operations))
      for (const method of [...methods, 'OPTIONS'].filter((each) => !allowed.includes(each))) {
        const { status, allow } = await ask(method, `/v1${path}`)
        assert.equal(status, 405, `${method} ${path}`)
        assert.deepEqual(new Set(allow?.split(', ')), new Set(allowed), `${method} ${path}`)
      }
    }
  })

  test('whatever the body is', async () => {
    for (const [type, body] of [
      ['application/json', '{'],
      ['text/plain', 'x'],
      ['json', 'x'],
      ['application/json', '[]'],
    ] as const) {
      const answer = await fetchBytes(service.url, 'PUT', '/profile', body, { 'content-type': type })
      assertRefused(answer, 405, 'method_not_allowed')
      assertError(answer)
    }
  })
})

/** With methods that fetch does not send. */
function ask(method: string, path: string): Promise<{ status: number; allow: string | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${service.url}${path}`, { method }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, allow: response.headers.allow, text })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('X-Request-Id', () => {
  const idOf = async (sent?: string) => {
    const { headers } = await send(
      service.url,
      'GET',
      '/health',
      undefined,
      sent === undefined ? {} : { 'x-request-id': sent },
    )
    return headers.get('x-request-id') ?? ''
  }

  test('is kept when it is 1 to 128 visible ASCII characters', async () => {
    for (const id of ['a', '!', '~', '"quoted"', 'x'.repeat(128), '5f0c2f43-8a55-4d3e-8d3e-3a2f6f1f5a01']) {
      assert.equal(await idOf(id), id)
    }
  })

  test('is one of ours when it is missing, too long, or has anything else in it', async () => {
    const ids = [await idOf()]
    for (const id of ['x'.repeat(129), 'a b', 'a\tb', 'é', '\u00ff']) ids.push(await idOf(id))
    for (const id of ids) assert.match(id, /^req_[0-9a-z]+$/)
    assert.equal(new Set(ids).size, ids.length)
  })

  test('is on every kind of answer, and in the body of every error', async () => {
    const headers = { 'x-request-id': 'mine', 'content-type': 'application/json' }
    const asked: [method: string, path: string, body: string | undefined, status: number][] = [
      ['POST', '/profile', JSON.stringify({ apiKey: app.key, distinct_id: 'ada' }), 200],
      ['POST', '/profile', '{', 400],
      ['POST', '/profile', '{}', 401],
      ['POST', '/profile', ' '.repeat(2 ** 21), 413],
      ['GET', '/nothing', undefined, 404],
      ['GET', '/profile', undefined, 405],
      ['OPTIONS', '/profile', undefined, 204],
      ['GET', '/%zz', undefined, 400],
    ]
    for (const [method, path, body, status] of asked) {
      const answer = await fetchBytes(service.url, method, path, body, headers)
      assert.deepEqual([answer.status, answer.headers.get('x-request-id')], [status, 'mine'], path)
      if (answer.status >= 400) assert.equal(answer.body.request_id, 'mine')
    }
  })
})

describe('CORS', () => {
  const origin = { origin: 'https://app.example.test' }
  const allowances = (headers: globalThis.Headers) =>
    [...headers.keys()].filter((name) => name.startsWith('access-control-'))

  test('every answer of the App API may be read by a browser of any origin, without credentials', async () => {
    const answers = [
      await app.post('/profile', { distinct_id: 'ada' }, origin),
      await app.post('/event', anEvent('ada'), origin),
      await app.postGzip('/batch', { batch: [anEvent('ada')] }, origin),
      await app.post('/entitled', { customerId: 'ada', featureId: 'exports' }, origin),
      await app.post('/entitled', { customerId: '', featureId: 'exports' }, origin),
      await app.post('/profile', '{', origin),
      await app.post('/profile', ' '.repeat(2 ** 21), origin),
      await send(service.url, 'GET', `/status?apiKey=${app.key}`, undefined, origin),
      await send(service.url, 'GET', '/event', undefined, origin),
      await send(service.url, 'GET', '/health', undefined, origin),
    ]
    for (const { headers } of answers) {
      assert.equal(headers.get('access-control-allow-origin'), '*')
      assert.equal(headers.get('access-control-allow-credentials'), null)
      const exposed = (headers.get('access-control-expose-headers') ?? '').split(', ')
      for (const name of ['ETag', 'Service-App-Id', 'Service-App-Environment', 'X-Request-Id', 'Retry-After']) {
        assert.ok(exposed.includes(name), name)
      }
    }
  })

  test('a browser may ask beforehand for what it is about to send', async () => {
    for (const { path } of appPaths) {
      const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
      const { status, headers, bytes } = await fetchBytes(service.url, 'OPTIONS', path, undefined, {
        ...origin,
        ...asked,
      })
      assert.deepEqual([status, bytes.length, headers.get('access-control-allow-origin')], [204, 0, '*'], path)
      const methods = (headers.get('access-control-allow-methods') ?? '').split(', ')
      const names = (headers.get('access-control-allow-headers') ?? '').toLowerCase().split(', ')
      assert.ok(['GET', 'POST'].every((method) => methods.includes(method)))
      assert.ok(
        ['content-type', 'content-encoding', 'if-none-match', 'x-request-id'].every((name) => names.includes(name)),
      )
      assert.equal(headers.get('access-control-allow-credentials'), null)
    }
  })

  test('the Workspace API, the reference and metrics say nothing of it', async () => {
    const key = { authorization: `Bearer ${service.secretKey}` }
    for (const [method, path] of [
      ['GET', '/v1/projects'],
      ['OPTIONS', '/v1/projects'],
      ['POST', '/v1/nothing'],
      ['GET', '/docs'],
      ['GET', '/metrics'],
    ] as const) {
      const asked = { ...origin, ...key, 'access-control-request-method': 'GET' }
      const { headers } = await fetchBytes(service.url, method, path, undefined, asked)
      assert.deepEqual(allowances(headers), [], path)
    }
  })

  test('without an Origin nothing is said', async () => {
    assert.deepEqual(allowances((await app.post('/profile', { distinct_id: 'ada' })).headers), [])
  })
})

test('answers are never compressed, whatever the caller takes', async () => {
  for (let n = 0; n < 30; n++) {
    await project.feature(`feature-${n}`, { type: 'boolean' })
    await project.grant('many', { feature: `feature-${n}` })
  }
  for (const accepted of ['gzip', 'br', 'zstd, gzip', 'gzip;q=1, identity;q=0', '*']) {
    const { headers, bytes } = await app.post('/profile', { distinct_id: 'many' }, { 'accept-encoding': accepted })
    assert.equal(headers.get('content-encoding'), null)
    assert.ok(bytes.length > 2500 && bytes.toString().startsWith('{"schemaVersion"'))
  }
})

test('bytes that are no HTTP are answered once in words, and the connection ends', async () => {
  for (const [bytes, status] of [
    ['nonsense\r\n\r\n', 400],
    ['FETCH /profile HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['POST /profile HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    ['POST /profile HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400],
    ['POST /profile HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    [`GET /health HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
    ['GET /health HTTP/1.1\r\nHost: x\r\nBad\u0001: y\r\n\r\n', 400],
  ] as const) {
    const text = await raw(bytes)
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), bytes.slice(0, 60))
    const body: Body = JSON.parse(must(text.split('\r\n\r\n')[1], 'an answer has a body'))
    assert.deepEqual([body.code, typeof body.message, typeof body.request_id], ['invalid_request', 'string', 'string'])
  }
})

/** Everything that comes back until the connection ends. */
function raw(bytes: string): Promise<string> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.setTimeout(5000, () => socket.destroy(new Error('the connection stayed open')))
    socket.on('data', (chunk) => (text += chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
  })
}
