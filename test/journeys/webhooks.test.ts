import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { isPrivateAddress } from '../../src/experiences/endpoints/address.ts'
import { createEndpoint, deleteEndpoint } from '../../src/experiences/index.ts'
import { dayMs, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { sendWebhooks } from '../../src/journeys/outbox/send.ts'
import { webhookAnswerBytesMax } from '../../src/kernel/limits.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { eventually } from '../app/project.ts'
import { receiver, says } from '../harness/receiver.ts'
import { openJourneys, services } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool } = world
const sealingKey = Buffer.alloc(32, 3)

/** A journey that stands in a webhook step to the address. */
async function calling(url: string, action: object = {}) {
  const scope = await world.scope()
  const { endpoint, secret } = await pool.transaction((tx) =>
    createEndpoint(tx, scope, { name: 'Shop', url }, sealingKey),
  )
  const hook = {
    type: 'webhook',
    endpointId: endpoint.publicId,
    body: { who: { type: 'Event.Field', key: 'who' } },
    timeoutMs: 1000,
    attempts: 3,
  }
  const plan = await world.plan(scope, {
    entry: 'h',
    fields: { event: { who: { type: 'string', required: false }, order: { type: 'number', required: false } } },
    steps: {
      h: step({ ...hook, ...action }, { success: 'won', failure: 'lost' }),
      won: step({ type: 'exit', reason: 'won' }),
      lost: step({ type: 'exit', reason: 'lost' }),
    },
  })
  const context = { event: { who: 'Ä' }, responses: {} }
  const id = await world.start(scope, plan, await world.customer(scope), t0, { context })
  return { scope, id, secret, endpoint }
}

/** Sends until nothing of the scope is left, as time goes on. */
async function deliver(scope: Scope, { allowPrivate = true } = {}): Promise<void> {
  for (let round = 0; round < 10; round++) {
    await pool.query('update journey_outbox set due_at_ms = 0 where scope_id = $1', [scope.scopeId])
    await sendWebhooks({ pool, services, sealingKey, allowPrivate })
    if ((await world.rows(scope)).outbox.length === 0) return
  }
  assert.fail('it never ends')
}

test('a webhook arrives signed, under one key for all its tries, and its answer goes on', async () => {
  await using shop = await receiver(says(500), (answer) => answer.destroy(), says(200, '{"order":{"n":7}}'))
  const { scope, id, secret } = await calling(shop.url, { save: { 'event.order': '/order/n' }, gate: true })
  await deliver(scope)
  const journey = await world.journey(scope, id)
  assert.deepEqual([journey.endDetail, journey.context.event.order, journey.trust], ['won', 7, 'server'])
  assert.equal(shop.heard.length, 3)
  for (const { headers, body } of shop.heard) {
    assert.equal(body, '{"who":"Ä"}')
    assert.deepEqual([headers['idempotency-key'], headers['webhook-id']], [`${id}:1:0`, `${id}:1:0`])
    const seed = Buffer.from(secret.replace('whsec_', ''), 'base64')
    const signed = createHmac('sha256', seed)
      .update(`${id}:1:0.${String(headers['webhook-timestamp'])}.${body}`)
      .digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${signed}`)
  }
})

test('a receiver that says when it is asked again is not asked before, nor after more than an hour', async () => {
  const away = (header: string) => (answer: ServerResponse) => {
    answer.writeHead(503, { 'retry-after': header })
    answer.end()
  }
  const inHalfAnHour = new Date(Math.floor(Date.now() / 1000) * 1000 + 1_800_000).toUTCString()
  await using shop = await receiver(...['120', '86400', inHalfAnHour, 'soon', '0', '-5'].map(away), says(200))
  const { scope, id } = await calling(shop.url, { attempts: 8 })
  const clock = async () => {
    const [row] = await pool.query<{ ms: number }>(`select date_part('epoch', clock_timestamp()) * 1000 as ms`)
    return row?.ms ?? 0
  }
  // What it asked for, or nothing: then the pauses of its own, of seconds.
  for (const [least, most] of [
    [120, 120],
    [3600, 3600],
    [1200, 1800],
    [0, 20],
    [0, 40],
    [0, 80],
  ] as const) {
    const before = await clock()
    await pool.query('update journey_outbox set due_at_ms = 0 where scope_id = $1', [scope.scopeId])
    await sendWebhooks({ pool, services, sealingKey, allowPrivate: true })
    const after = await clock()
    const due = Number((await world.rows(scope)).outbox[0]?.due_at_ms)
    assert.ok(due >= before + least * 1000 && due <= after + most * 1000 + 1, `${due - before} ms`)
  }
  await deliver(scope)
  assert.equal((await world.journey(scope, id)).endDetail, 'won')
})

test('after its last try it has failed', async () => {
  await using shop = await receiver(says(503))
  const { scope, id } = await calling(shop.url)
  await deliver(scope)
  assert.deepEqual([(await world.journey(scope, id)).endDetail, shop.heard.length], ['lost', 3])
})

test('an answer that says no is not asked again; a redirect is not followed', async () => {
  for (const status of [400, 401, 404, 422, 302]) {
    await using shop = await receiver(says(status))
    const { scope, id } = await calling(shop.url)
    await deliver(scope)
    assert.deepEqual([(await world.journey(scope, id)).endDetail, shop.heard.length], ['lost', 1], String(status))
  }
})

test('one that does not answer in time is tried again', async () => {
  await using shop = await receiver(() => {}, says(204, ''))
  const { scope, id } = await calling(shop.url, { timeoutMs: 100 })
  await deliver(scope)
  assert.deepEqual([(await world.journey(scope, id)).endDetail, shop.heard.length], ['won', 2])
})

test('an answer of any length succeeds, one that is too long or no JSON brings nothing', async () => {
  for (const text of ['no json', `{"order":{"n":7,"x":"${'x'.repeat(webhookAnswerBytesMax)}"}}`]) {
    await using shop = await receiver(says(200, text))
    const { scope, id } = await calling(shop.url, { save: { 'event.order': '/order/n' } })
    await deliver(scope)
    const { endDetail, context } = await world.journey(scope, id)
    assert.deepEqual([endDetail, context.event.order], ['won', undefined])
  }
})

test('it never goes to an address of the own network, by number or by name, unless a setting allows it', async () => {
  await using shop = await receiver(says(200))
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]']) {
    const { scope, id } = await calling(shop.url.replace('127.0.0.1', host))
    await deliver(scope, { allowPrivate: false })
    assert.equal((await world.journey(scope, id)).endDetail, 'lost', host)
  }
  assert.equal(shop.heard.length, 0)
})

test('private addresses are those of hosts, networks and nobody', () => {
  const own = [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '::',
    '::1',
  ]
  const more = [
    'fd00::1',
    'fe80::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::a00:1',
    '224.0.0.1',
    '255.255.255.255',
    'no address',
  ]
  for (const address of [...own, ...more]) assert.equal(isPrivateAddress(address), true, address)
  for (const address of ['8.8.8.8', '172.32.0.1', '11.0.0.1', '2606:4700::1111'])
    assert.equal(isPrivateAddress(address), false, address)
})

test('to an endpoint that was deleted nothing is sent: failure', async () => {
  await using shop = await receiver(says(200))
  const { scope, id, endpoint } = await calling(shop.url)
  await pool.transaction((tx) => deleteEndpoint(tx, [scope], endpoint.publicId))
  await deliver(scope)
  assert.deepEqual([(await world.journey(scope, id)).endDetail, shop.heard.length], ['lost', 0])
})

test('a result for a step that was left is inert', async () => {
  await using shop = await receiver(says(200))
  const { scope, id } = await calling(shop.url)
  await world.tell(scope, [{ journeyId: id, input: { kind: 'cancel', reason: 'asked' } }], t0 + dayMs)
  await deliver(scope)
  assert.deepEqual([(await world.journey(scope, id)).endReason, shop.heard.length], ['cancelled', 1])
})

test('a sender that dies leaves the row to another, which sends it under the same key', async () => {
  await using shop = await receiver(says(200))
  const { scope, id } = await calling(shop.url)
  await pool.query('update journey_outbox set attempts = 1, due_at_ms = 0 where scope_id = $1', [scope.scopeId])
  await deliver(scope)
  assert.deepEqual([(await world.journey(scope, id)).endDetail, shop.heard.length], ['won', 1])
})

test('whoever hears of a failure after its lease leaves the row to the one that took it since', async () => {
  const asked: ServerResponse[] = []
  const hold = (answer: ServerResponse) => void asked.push(answer)
  await using shop = await receiver(hold)
  const { scope, id } = await calling(shop.url, { timeoutMs: 30_000 })
  const send = async () => {
    await pool.query('update journey_outbox set due_at_ms = 0 where scope_id = $1', [scope.scopeId])
    const before = asked.length
    const sending = sendWebhooks({ pool, services, sealingKey, allowPrivate: true })
    await eventually(async () => asked.length > before, 20_000)
    return { sending }
  }
  const dueAt = async () => (await world.rows(scope)).outbox[0]?.due_at_ms
  const [late, current] = [await send(), await send()]
  const leased = await dueAt()
  for (const answer of asked.slice(0, 1)) says(503)(answer)
  await late.sending
  assert.equal(await dueAt(), leased)
  for (const answer of asked.slice(1)) says(200)(answer)
  await current.sending
  assert.equal((await world.journey(scope, id)).endDetail, 'won')
})
