import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { Histogram } from './histogram.ts'
import { idPrefix } from './ids.ts'
import type { Job, Outcome, RequestSpec } from './job.ts'
import { measure } from './measure.ts'

/** What the server under test answers; null breaks the connection. */
type Reply = { status?: number; headers?: Record<string, string>; body?: object } | null
type Fields = { operationId?: string; distinct_id?: string }

test('right answers are acknowledged, each of another request', async () => {
  const seen = new Set<string | undefined>()
  const outcome = await outcomeOf(job({ requestsMax: 300 }), (sent) => {
    seen.add(sent.operationId)
    return accepted(sent)
  })
  assert.deepEqual([outcome.sent, outcome.acknowledged, outcome.wrong], [300, 300, 0])
  assert.equal(seen.size, 300)
})

test('a refusal, a denial in a 200 and the answer to another request are wrong answers', async () => {
  const wrong: ((sent: Fields) => Reply)[] = [
    () => ({ status: 503, body: { code: 'service_unavailable' } }),
    (sent) => ({ body: { ...sent, accepted: false } }),
    () => accepted({ operationId: 'another' }),
  ]
  for (const reply of wrong) {
    let count = 0
    const outcome = await outcomeOf(job({ requestsMax: 50 }), (sent) => (count++ === 20 ? reply(sent) : accepted(sent)))
    assert.deepEqual([outcome.acknowledged, outcome.wrong], [49, 1])
    assert.match(outcome.complaints[0] ?? '', /was answered (503|200)/)
  }
})

test('a connection that breaks under a request makes the round wrong', async () => {
  let count = 0
  const outcome = await outcomeOf(job({ requestsMax: 1000 }), (sent) => (count++ === 20 ? null : accepted(sent)))
  assert.ok(outcome.wrong > 0)
})

test('denials count apart where they are expected', async () => {
  let units = 10
  const outcome = await outcomeOf(job({ requestsMax: 30, denied: '"insufficient_balance"' }), (sent) =>
    units-- > 0 ? accepted(sent) : { body: { ...sent, accepted: false, code: 'insufficient_balance' } },
  )
  assert.deepEqual([outcome.acknowledged, outcome.denied, outcome.wrong], [10, 20, 0])
})

test('a profile is asked for with the ETag that was learnt for its customer', async () => {
  const request = { kind: 'profile', apiKey: 'pk', customers: 40, etag: 'learn' } as const
  const expect = { status: 304, markers: [], echoes: true, denied: null }
  const outcome = await outcomeOf({ ...job({ requestsMax: 200, request }), expect }, ({ distinct_id }, headers) => {
    const etag = `"${distinct_id}"`
    return { status: headers['if-none-match'] === etag ? 304 : 200, headers: { etag } }
  })
  assert.deepEqual([outcome.acknowledged, outcome.wrong], [200, 0])
})

test('a paced round keeps its rate', async () => {
  // Wide bounds: a busy machine may stall the generator at either end of the half second.
  const paced = { ...job({ requestsMax: 1_000_000 }), warmupS: 0.1, seconds: 0.5, ratePerS: 400 }
  const { measured, measuredS } = await outcomeOf(paced, accepted)
  assert.ok(Math.abs(measured / measuredS - 400) < 100, `${measured} in ${measuredS} s`)
})

test('quantiles are within two percent', () => {
  const histogram = new Histogram()
  for (let ms = 1; ms <= 1000; ms++) histogram.add(ms)
  assert.ok(Math.abs(histogram.quantile(0.5) - 500) < 10)
  assert.ok(Math.abs(histogram.quantile(0.99) - 990) < 20)
  assert.equal(new Histogram().quantile(0.5), 0)
})

function accepted(sent: Fields): Reply {
  return { body: { ...sent, accepted: true } }
}

interface JobParts {
  requestsMax: number
  request?: RequestSpec
  denied?: string
}

function job({ requestsMax, request, denied }: JobParts): Job {
  const consume = { apiKey: 'pk', featureId: 'f', idPrefix: idPrefix(0, 0), customers: 5, firstCustomer: 0 }
  return {
    port: 0,
    connections: 4,
    warmupS: 5,
    seconds: 5,
    requestsMax,
    ratePerS: null,
    request: request ?? { ...consume, kind: 'consume' },
    expect: { status: 200, markers: ['"accepted":true'], echoes: true, denied: denied ?? null },
  }
}

async function outcomeOf(
  job: Job,
  reply: (sent: Fields, headers: IncomingMessage['headers']) => Reply,
): Promise<Outcome> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const made = reply((await json(request)) as Fields, request.headers) // what our own generator sends
    if (made === null) {
      response.destroy()
      return
    }
    const text = made.status === 304 ? '' : JSON.stringify(made.body ?? {})
    response.writeHead(made.status ?? 200, { 'content-length': Buffer.byteLength(text), ...made.headers }).end(text)
  }
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  try {
    const { outcome } = await measure({ ...job, port })
    return outcome
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
