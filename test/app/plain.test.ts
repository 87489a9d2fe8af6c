import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { anEvent, openProject } from './project.ts'

/**
 * Plain requests do not go through the framework (src/http/plain): whichever way a request goes, the answer is the same. A
 * field `Origin` makes a request the framework's without changing what it means.
 */
const service = await startService()
after(() => service[Symbol.asyncDispose]())
const { hostname, port } = new URL(service.url)
const project = await openProject(service)
const app = await project.app()
await project.feature('exports')
await project.customer('gone')
await project.tombstone('gone')
await project.grant('ada', { feature: 'exports', allowance: 5 })
const spent = { customerId: 'ada', featureId: 'exports', operationId: 'spent', quantity: 1 }
await app.post('/feature/consume', spent)
await app.post('/feature/consume', { ...spent, operationId: 'much', quantity: 50 })
const tag = (await app.post('/profile', { distinct_id: 'ada' })).headers.get('etag') ?? ''
const happened = anEvent('ada', { timestamp: '2026-11-20T12:00:00.000Z', properties: { name: 'Ren\u00e9e \u{1f600}' } })

interface Asked {
  path: string
  body: Record<string, unknown> | string | Buffer
  fields?: Record<string, string>
}

const signedOut = { type: 'appstore', signedTransaction: 'a.b.c' }
const cases: Record<string, Asked & { status: number }> = {
  'an event': { path: '/event', body: happened, status: 200 },
  'an event for somebody deleted': { path: '/event', body: { ...happened, distinct_id: 'gone' }, status: 410 },
  'an event with three faults': { path: '/event', body: { event: ' ', distinct_id: 'null' }, status: 400 },
  'an event for another endpoint': { path: '/event', body: anEvent('ada', { event: '$create_alias' }), status: 400 },
  'an event that is too large': {
    path: '/event',
    body: anEvent('ada', { properties: { a: 'x'.repeat(1_100_000) } }),
    status: 413,
  },
  'an access': { path: '/entitled', body: { customerId: 'ada', featureId: 'exports' }, status: 200 },
  'an access of nobody': { path: '/entitled', body: { customerId: 'ren\u00e9e', featureId: 'exports' }, status: 200 },
  'an access to no Feature': { path: '/entitled', body: { customerId: 'ada', featureId: 'none' }, status: 404 },
  'an access with a fault': {
    path: '/entitled',
    body: { customerId: 'ada', featureId: 'exports', requiredBalance: 0 },
    status: 400,
  },
  'an access with two opinions': {
    path: '/entitled',
    body: { customerId: 'ada', featureId: 'exports', requiredBalance: 1, requiredQuantity: 2 },
    status: 400,
  },
  'an access with a field too many': {
    path: '/entitled',
    body: { customerId: 'ada', featureId: 'exports', more: 1 },
    status: 400,
  },
  'a spend that was made': { path: '/feature/consume', body: spent, status: 200 },
  'a spend that was another': { path: '/feature/consume', body: { ...spent, quantity: 2 }, status: 409 },
  'a spend beyond the units': {
    path: '/feature/consume',
    body: { ...spent, operationId: 'much', quantity: 50 },
    status: 200,
  },
  'a spend of somebody deleted': { path: '/feature/consume', body: { ...spent, customerId: 'gone' }, status: 410 },
  'a spend with evidence that is none': {
    path: '/feature/consume',
    body: { ...spent, operationId: 'paid', purchase: signedOut },
    status: 503,
  },
  'a profile': { path: '/profile', body: { distinct_id: 'ada' }, status: 200 },
  'a profile that is known': {
    path: '/profile',
    body: { distinct_id: 'ada' },
    fields: { 'If-None-Match': tag },
    status: 304,
  },
  'a profile that is one of those known': {
    path: '/profile',
    body: { distinct_id: 'ada' },
    fields: { 'If-None-Match': `"x", W/${tag}` },
    status: 304,
  },
  'a profile of somebody deleted': { path: '/profile', body: { distinct_id: 'gone' }, status: 410 },
  'a profile with a fault': { path: '/profile', body: { distinct_id: 'ada', locale: 7 }, status: 400 },
  'no JSON': { path: '/profile', body: '{"apiKey":', status: 400 },
  'JSON that is no object': { path: '/profile', body: '[]', status: 400 },
  'no UTF-8': { path: '/profile', body: Buffer.from('{"apiKey":"\xff"}', 'latin1'), status: 400 },
  'no body': { path: '/profile', body: '', status: 400 },
  'JSON that is nested too deep': { path: '/event', body: `{"a":${'['.repeat(5000)}`, status: 400 },
  'no key': { path: '/event', body: JSON.stringify(happened), status: 401 },
  'a key that is unknown': {
    path: '/entitled',
    body: { apiKey: 'pk_test_none', customerId: 'ada', featureId: 'exports' },
    status: 401,
  },
  'a secret key': {
    path: '/entitled',
    body: { apiKey: service.secretKey, customerId: 'ada', featureId: 'exports' },
    status: 401,
  },
  'another app': { path: '/profile', body: { distinct_id: 'ada' }, fields: { 'Service-App-Id': 'other' }, status: 403 },
  'another environment': {
    path: '/profile',
    body: { distinct_id: 'ada' },
    fields: { 'X-Service-Env': 'live' },
    status: 403,
  },
  'the same environment': {
    path: '/profile',
    body: { distinct_id: 'ada' },
    fields: { 'Service-App-Environment': 'test' },
    status: 200,
  },
}

describe('the answer is that of the framework', () => {
  for (const [name, { status, ...asked }] of Object.entries(cases)) {
    test(name, async () => {
      const id = `same-${randomUUID()}`
      const plain = await say([bytesOf(asked, { 'X-Request-Id': id })])
      const framed = await say([bytesOf(asked, { 'X-Request-Id': id, Origin: 'https://app.example' })])
      assert.equal(plain[0]?.status, status, plain[0]?.body)
      assert.deepEqual(plain[0], framed[0])
      assert.equal(plain[0]?.fields['x-request-id'], id)
    })
  }

  test('a request without an id, or with one that is none, gets one of ours', async () => {
    const asked = { path: '/entitled', body: { customerId: 'ada', featureId: 'exports' } }
    for (const fields of [{}, { 'X-Request-Id': 'a b' }, { 'X-Request-Id': 'a'.repeat(129) }]) {
      const [answer] = await say([bytesOf(asked, fields)])
      assert.match(answer?.fields['x-request-id'] ?? '', /^req_[!-~]+$/)
    }
  })

  test('both are counted', async () => {
    const counted = async () => {
      const scrape = await (await fetch(`${service.url}/metrics`)).text()
      return Number(/turnpike_requests_total\{route="\/profile",status="200"\} (\d+)/.exec(scrape)?.[1] ?? 0)
    }
    const before = await counted()
    const asked = { path: '/profile', body: { distinct_id: 'ada' } }
    await say([bytesOf(asked)])
    await say([bytesOf(asked, { Origin: 'https://app.example' })])
    assert.equal((await counted()) - before, 2)
  })
})

describe('one connection', () => {
  /** Plain ones, and others that must be answered between them; some are followed by the next one too soon. */
  const requests: { name: string; bytes: Buffer; status: number }[] = [
    ...['an access', 'a profile', 'a spend that was made', 'an access with a fault', 'no key'].map((name) => {
      const asked = cases[name] ?? assert.fail()
      return { name, bytes: bytesOf(asked), status: asked.status }
    }),
    {
      name: 'a large event',
      bytes: bytesOf({ path: '/event', body: anEvent('ada', { properties: { text: 'x'.repeat(300_000) } }) }),
      status: 200,
    },
    { name: 'health', bytes: Buffer.from('GET /health HTTP/1.1\r\nHost: a\r\n\r\n'), status: 200 },
    {
      name: 'nothing',
      bytes: Buffer.from('POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}'),
      status: 404,
    },
    {
      name: 'in chunks',
      bytes: Buffer.from(
        'POST /entitled HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
      ),
      status: 401,
    },
  ]

  test('every request of a connection is answered, in order, however its bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...requests), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(2500), { maxLength: 6 }),
        async (sent, cuts) => {
          const bytes = Buffer.concat(sent.map((request) => request.bytes))
          const borders = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length]
          const pieces = borders.slice(1).map((end, i) => bytes.subarray(borders[i], end))
          const answers = await say(
            pieces.filter((piece) => piece.length > 0),
            sent.length,
          )
          assert.deepEqual(
            answers.map(({ status }) => status),
            sent.map(({ status }) => status),
          )
        },
      ),
      { numRuns: 150 },
    )
  })

  test('bytes that are no HTTP after a plain request are refused after its answer', async () => {
    const [first] = requests
    const answers = await say([Buffer.concat([first?.bytes ?? assert.fail(), Buffer.from('BAD\r\n\r\n')])], 2)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 400],
    )
  })

  test('a body that is announced longer than the operation takes is refused before it comes', async () => {
    const head =
      'POST /profile HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n{'
    assert.deepEqual(
      (await say([Buffer.from(head)])).map(({ status }) => status),
      [413],
    )
  })
})

function bytesOf({ path, body, fields }: Asked, more: Record<string, string> = {}): Buffer {
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const content = Buffer.from(isRaw ? body : JSON.stringify({ apiKey: app.key, ...body }))
  const all = {
    Host: 'turnpike',
    'Content-Type': 'application/json',
    ...fields,
    ...more,
    'Content-Length': content.length,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`), content])
}

interface Said {
  status: number
  /** By name as it is written, without the date, the seconds to wait and what browsers are told. */
  fields: Record<string, string>
  body: string
}

/** The first `count` answers to these pieces, sent one after the other over a connection of their own. */
async function say(pieces: Buffer[], count = 1): Promise<Said[]> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const answers = readAnswers(socket, count)
  for (const piece of pieces) {
    socket.write(piece)
    if (pieces.length > 1) await sleep(1)
  }
  try {
    return await answers
  } finally {
    socket.destroy()
  }
}

function readAnswers(socket: Socket, count: number): Promise<Said[]> {
  const answers: Said[] = []
  let rest = Buffer.alloc(0)
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`${answers.length} of ${count} answers, then the end`)))
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (let end = rest.indexOf('\r\n\r\n'); end >= 0; end = rest.indexOf('\r\n\r\n')) {
        const [first = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n')
        const fields = Object.fromEntries(
          lines.map((line): [string, string] => [
            line.slice(0, line.indexOf(':')),
            line.slice(line.indexOf(':') + 1).trim(),
          ]),
        )
        const length = Number(fields['content-length'] ?? 0)
        if (rest.length < end + 4 + length) break
        for (const name of ['Date', 'retry-after', 'access-control-allow-origin', 'access-control-expose-headers'])
          delete fields[name]
        answers.push({
          status: Number(first.split(' ')[1]),
          fields,
          body: rest.toString('utf8', end + 4, end + 4 + length),
        })
        rest = rest.subarray(end + 4 + length)
      }
      if (answers.length >= count) resolve(answers)
    })
  })
}
