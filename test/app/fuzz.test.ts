import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { startCardStore } from '../harness/stripe.ts'
import { assertError } from './answers.ts'
import { anEvent, eventually, fetchBytes, type Headers, openProject, send } from './project.ts'

/** Whatever is sent, the answer is a documented one; disposing the service fails if it logged a failure. */
const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
await project.patch(`/apps/${app.id}`, { bundle_id: 'com.example.app' })
await project.feature('exports')
await project.grant('ada', { feature: 'exports', unlimited: true })
const cards = await startCardStore()
after(() => cards[Symbol.asyncDispose]())
for (const body of [
  { kind: 'endpoints', stripe_api: cards.url },
  { kind: 'stripe', secret_key: cards.secretKey, webhook_secret: cards.webhookSecret },
]) {
  await service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
}
const returnTo = 'https://shop.example.com/paid'
await project.patch(`/apps/${app.id}/store_settings`, {
  checkout_return_urls: [returnTo, 'https://shop.example.com/b/'],
})
await project.post('/products', {
  ...{ project_id: project.id, key: 'pack', name: 'Pack', type: 'one_time' },
  ...{ grants: [{ feature: 'exports', allowance: 1 }], stores: [{ store: 'stripe', product_id: 'price_1' }] },
})
let payers = 0

const purchase = { type: 'appstore', signedTransaction: 'a.b.c', productType: 'one_time' }
const operations = {
  '/profile': () => ({ distinct_id: 'ada', locale: 'de', version: 1, groups: {} }),
  '/event': () => ({
    ...anEvent('ada', { timestamp: '2026-01-01T00:00:00Z', value: 1, entityId: 'seat', $anon_distinct_id: 'device' }),
    properties: { $set: { plan: 'pro' }, $set_once: {}, $unset: ['x'], $increment: { n: 1 } },
    journeyOrigin: {},
  }),
  '/batch': () => ({ batch: [anEvent('ada'), anEvent('bob')], historical_migration: false }),
  '/entitled': () => ({
    customerId: 'ada',
    featureId: 'exports',
    requiredBalance: 1,
    requiredQuantity: 1,
    entityId: 'seat',
  }),
  '/feature/consume': () => {
    const usage = { customerId: 'ada', featureId: 'exports', operationId: randomUUID(), quantity: 1 }
    return { ...usage, mode: 'consume', entityId: 'seat', purchase }
  },
  '/purchase': () => ({
    ...{ type: 'appstore', distinct_id: 'ada', transaction_jwt: 'eyJ9.eyJ9.c', product_type: 'one_time' },
    ...{ package_name: 'p', consume_purchase: false },
  }),
  // The other form of it; nobody reads the query.
  '/purchase?card': () => ({
    ...{ type: 'stripe', customerId: `payer-${++payers}`, productIds: ['pack'], idempotencyKey: 'k' },
    ...{ successUrl: returnTo, cancelUrl: 'https://shop.example.com/b/c?d=1' },
  }),
} satisfies Record<string, () => Record<string, unknown>>
const path = fc.constantFrom(...(Object.keys(operations) as (keyof typeof operations)[])) // the keys of a literal

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', ' ', 'null', '\0', '\ud800', '__proto__'),
)
const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(-0, 0, 1, 2 ** 53, 2 ** 53 - 1, 1e308, 5e-324))
const json: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.oneof(text, number, fc.boolean(), fc.constant(null), fc.uuid()),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom('$set', '$increment', '$unset', 'type', 'batch')), tie('value'), {
      maxKeys: 5,
    }),
  ),
})).value

/** Header values that fetch is willing to send. */
const headerText = fc
  .string({ unit: fc.constantFrom(...Array.from(' !"#%&*,/;=<>?[]{}azAZ09-_~\u00e9')), maxLength: 60 })
  .map((value) => value.trim())
const headers: fc.Arbitrary<Headers> = fc.record(
  {
    'content-type': fc.oneof(
      headerText,
      fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain'),
    ),
    'content-encoding': fc.oneof(headerText, fc.constantFrom('gzip', 'identity', 'br', 'GZIP', 'gzip, gzip')),
    'if-none-match': fc.oneof(headerText, fc.constantFrom('*', 'W/"x"', '"a", "b"', '"'.repeat(50))),
    'x-request-id': headerText,
    'service-app-id': fc.oneof(headerText, fc.constant(app.id)),
    'service-app-environment': fc.oneof(headerText, fc.constantFrom('test', 'live')),
    'x-service-env': fc.oneof(headerText, fc.constantFrom('test', 'live')),
    'accept-encoding': headerText,
    accept: headerText,
    origin: headerText,
    authorization: headerText,
    'x-forwarded-for': headerText,
    'user-agent': headerText,
  },
  { requiredKeys: [] },
)

function sendBody(to: keyof typeof operations, body: string | Buffer, more: Headers = {}) {
  const gzip = to === '/batch' && more['content-encoding'] === undefined
  const given = { 'content-type': 'application/json', ...(gzip ? { 'content-encoding': 'gzip' } : {}), ...more }
  return send(service.url, 'POST', to, gzip ? gzipSync(body) : body, given)
}

/** On a machine that does much else a property is tried less often: all of them stay well within the minute. */
const propertyMsMax = 4000

async function holds(property: fc.IAsyncPropertyWithHooks<unknown[]>, numRuns: number): Promise<void> {
  await fc.assert(property as fc.IAsyncProperty<unknown[]>, { numRuns, interruptAfterTimeLimit: propertyMsMax })
}

describe('never a failure, never silence, and every refusal in its documented form', { timeout: 60_000 }, () => {
  test('a good body with some fields replaced, left out or added', async () => {
    const change = fc.record({
      replace: fc.array(fc.tuple(fc.nat(), json), { maxLength: 3 }),
      drop: fc.nat(30),
      add: fc.dictionary(text, json, { maxKeys: 2 }),
    })
    await holds(
      fc.asyncProperty(path, change, async (to, { replace, drop, add }) => {
        const body: [string, unknown][] = Object.entries(operations[to]())
        for (const [at, value] of replace) body[at % body.length] = [body[at % body.length]?.[0] ?? '', value]
        body.splice(drop, 1)
        const entries = [['apiKey', app.key] as const, ...body, ...Object.entries(add)]
        const written = entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
        await sendBody(to, `{${written.join()}}`)
      }),
      600,
    )
  })

  test('batches of any items', async () => {
    const item = fc.oneof(
      json,
      fc
        .tuple(fc.constantFrom('event', 'distinct_id', 'uuid', 'properties', 'timestamp', 'value'), json)
        .map(([key, value]) => ({ ...anEvent('ada'), [key]: value })),
    )
    await holds(
      fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 20 }), async (batch) => {
        const { status, body } = await sendBody('/batch', JSON.stringify({ apiKey: app.key, batch }))
        assert.equal(status, 200)
        assert.equal(body.processed + body.failed, batch.length)
      }),
      150,
    )
  })

  test('any JSON at all, with and without a key', async () => {
    await holds(
      fc.asyncProperty(path, json, fc.boolean(), async (to, value, withKey) => {
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
        await sendBody(to, JSON.stringify(withKey && isObject ? { ...value, apiKey: app.key } : value))
      }),
      300,
    )
  })

  test('any bytes, plain and compressed, and good bodies with some bytes changed', async () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
    const harm = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 })
    await holds(
      fc.asyncProperty(path, bytes, harm, fc.nat(3), async (to, noise, changes, how) => {
        const good = Buffer.from(JSON.stringify({ apiKey: app.key, ...operations[to]() }))
        const whole = to === '/batch' ? gzipSync(good) : good
        for (const [at, value] of changes) whole[at % whole.length] = value
        if (how === 0) await sendBody(to, noise, { 'content-encoding': '' })
        else if (how === 1) await sendBody(to, noise, { 'content-encoding': 'gzip' })
        else if (how === 2) await sendBody(to, gzipSync(noise), { 'content-encoding': 'gzip' })
        else await sendBody(to, whole, { 'content-encoding': to === '/batch' ? 'gzip' : '' })
      }),
      400,
    )
  })

  test('any headers', async () => {
    await holds(
      fc.asyncProperty(path, headers, async (to, given) => {
        await sendBody(to, JSON.stringify({ apiKey: app.key, ...operations[to]() }), given)
      }),
      400,
    )
  })

  test('any query of the operations that take one', async () => {
    const query = fc.oneof(
      fc.webQueryParameters(),
      fc.string({ unit: fc.constantFrom(...Array.from('%&=?+/[].aZ09')), maxLength: 40 }),
    )
    await holds(
      fc.asyncProperty(
        fc.constantFrom('/status', '/event', '/health', '/ready'),
        query,
        headers,
        async (at, sent, given) => {
          const { 'content-type': _, ...rest } = given
          await send(service.url, 'GET', `${at}?${sent}`, undefined, rest)
        },
      ),
      200,
    )
  })

  test('any path and method', async () => {
    const part = fc.oneof(
      fc.webSegment(),
      fc.constantFrom('profile', 'v1', 'event', '..', '.', '%2e', '%', '*', ':id', 'docs'),
    )
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD')
    await holds(
      fc.asyncProperty(method, fc.array(part, { maxLength: 4 }), headers, async (verb, parts, given) => {
        const answer = await fetchBytes(service.url, verb, `/${parts.join('/')}`, undefined, given)
        assert.ok(answer.status < 500, `${verb} ${parts.join('/')} answered ${answer.status}`)
        if (answer.status >= 400 && verb !== 'HEAD') {
          if (answer.body.error === undefined) assertError(answer)
          else assert.equal(typeof answer.body.error.code, 'string')
        }
      }),
      300,
    )
  })

  test('bytes that are hardly HTTP: an answer or the end of the connection, and the service lives', async () => {
    const good = `POST /event HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{"apiKey":1}`
    const harm = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 })
    await holds(
      fc.asyncProperty(harm, fc.nat(good.length), async (changes, cut) => {
        const bytes = Buffer.from(good, 'latin1')
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        const said = await answerTo(bytes.subarray(0, cut % 3 === 0 ? cut : bytes.length))
        assert.match(said, /^$|^HTTP\/1\.1 [1234]\d\d /)
      }),
      200,
    )
    assert.equal((await send(service.url, 'GET', '/health', undefined)).status, 200)
  })

  test('and every event that was accepted on the way is applied', async () => {
    const scopeId = await project.scopeId()
    const count = async (query: string) => Number((await service.pool.query<{ n: bigint }>(query, [scopeId]))[0]?.n)
    const accepted = await count('select count(distinct uuid) as n from event_log where lane = $1')
    assert.ok(accepted > 0)
    await eventually(async () => (await count('select count(*) as n from event where scope_id = $1')) === accepted)
  })
})

/** What comes back for the bytes when nothing follows them. */
function answerTo(bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve) => {
    let said = ''
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => socket.end(bytes))
    socket.on('data', (chunk) => (said += chunk.toString('latin1')))
    socket.on('error', () => resolve(said))
    socket.on('end', () => resolve(said))
  })
}
