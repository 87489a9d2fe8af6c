import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { anEvent, eventually } from '../app/project.ts'
import { aDraft, field, server, device as step } from '../harness/a-draft.ts'
import { receiver, says } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { armsOf, journeyOf, openWorld, reportsOf } from './world.ts'

const service = await startService({ WEBHOOK_PRIVATE_ADDRESSES: '1' })
after(() => service[Symbol.asyncDispose]())
const world = await openWorld(service)
const { project, app } = world

const asked: { body: unknown; key: unknown }[] = []
const shop = createServer((request, answer) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    asked.push({ body: JSON.parse(Buffer.concat(parts).toString()), key: request.headers['idempotency-key'] })
    // The first try fails: the same question comes again.
    answer.writeHead(asked.length === 1 ? 503 : 200, { 'content-type': 'application/json' })
    answer.end('{"order":{"tier":"gold"}}')
  })
})
shop.listen(0, '127.0.0.1')
await once(shop, 'listening')
after(() => shop.close())

/** A section, a day, a wait for a recipe, a branch, a question to the shop, a gift, and a second section. */
async function everything() {
  const { port } = shop.address() as AddressInfo
  const endpoint = await project.post('/webhook_endpoints', {
    ...{ project_id: project.id, name: 'Shop', url: `http://127.0.0.1:${port}/ask` },
  })
  const draft = aDraft()
  draft.policy = {
    ...draft.policy,
    goal: {
      criterion: { type: 'event', eventName: 'recipe_saved' },
      attribution: { basis: 'entry', window: { amount: 3, unit: 'day' } },
    },
  }
  draft.fields = {
    event: { source: { type: 'string', required: false }, tier: { type: 'string', required: false } },
    responses: {},
  }
  const fromMail = { type: 'Event', op: 'eq', key: 'source', value: { type: 'String', value: 'mail' } }
  draft.graph.steps = [
    step('tell', { type: 'send_event', eventName: 'welcomed', payload: { from: field('source') } }, { next: 'day' }),
    server('day', { type: 'delay', durationMs: 86_400_000 }, { next: 'recipe' }),
    server(
      'recipe',
      { type: 'wait_for_event', eventName: 'recipe_saved', trust: 'any', timeoutMs: 86_400_000 },
      { matched: 'source', timeout: null },
    ),
    server(
      'source',
      { type: 'branch', branches: [{ id: 'mail', condition: { ir_version: 1, expr: fromMail } }] },
      { mail: 'ask', default: null },
    ),
    server(
      'ask',
      {
        ...{ type: 'webhook', endpointId: endpoint.id, timeoutMs: 5000, attempts: 3, gate: true },
        ...{ body: { from: field('source') }, save: { 'event.tier': '/order/tier' } },
      },
      { success: 'give', failure: null },
    ),
    server('give', { type: 'grant_feature', featureId: 'exports', amount: 20 }, { next: 'note' }),
    server('note', { type: 'set_properties', set: { gifted: true } }, { next: 'thank' }),
    step('thank', { type: 'send_event', eventName: 'thanked', payload: { tier: field('tier') } }, { next: 'bye' }),
    step('bye', { type: 'exit', reason: 'thanked' }),
  ]
  return draft
}

test('from signing up to the last leg: devices and the service take turns, and the customer has a gift', async () => {
  await project.feature('exports')
  const published = await world.publish(await everything())
  const who = randomUUID()
  const phone = world.device(who)
  assert.deepEqual(await phone.sync(), { kind: 'taken' })
  assert.deepEqual(armsOf(phone), { fresh: 1, onward: [] })

  phone.capture('signup_done', { source: 'mail' })
  const journeyId = journeyOf(phone)
  await phone.flush()
  assert.deepEqual(phone.outbox(), [])
  const waiting = await world.journeyIs(journeyId, ({ status }) => status === 'waiting')
  assert.deepEqual([waiting.experience_id, waiting.version_id], [published.id, published.versionId])
  await world.synced(phone, ({ armedLegs }) => armedLegs.length === 0)

  const advanced = await project.post(`/journeys/${journeyId}/advance`, {})
  assert.equal(advanced.status, 'waiting')
  phone.capture('recipe_saved', { name: 'Bread' })
  await phone.flush()
  await world.synced(phone, () => armsOf(phone).onward.length === 1)
  assert.deepEqual(armsOf(phone).onward, [{ journeyId, generation: 1 }])
  assert.deepEqual(
    phone.profile()?.features.map(({ id, balance }) => [id, balance]),
    [['exports', 20]],
  )
  assert.deepEqual(
    asked.map(({ body }) => body),
    [{ from: 'mail' }, { from: 'mail' }],
  )
  assert.equal(asked[0]?.key, asked[1]?.key)

  phone.foreground()
  const [started, completed] = reportsOf(phone)
  assert.deepEqual([started?.properties.journey_id, started?.properties.leg_generation], [journeyId, 1])
  assert.equal(completed?.properties.outcome, 'thanked')
  assert.deepEqual(phone.outbox().find(({ event }) => event === 'thanked')?.properties.tier, 'gold')
  await phone.flush()
  const ended = await world.journeyIs(journeyId, ({ status }) => status === 'ended')
  assert.equal(ended.end_reason, 'completed')
  await world.synced(phone, ({ armedLegs }) => armedLegs.length === 0)
  assert.deepEqual(await phone.sync(), { kind: 'unchanged' })
  await eventually(async () => (await world.customerOf(who)).properties.gifted === true)
  const revs = (await world.transitions(journeyId)).map(({ rev }) => rev).toSorted((a, b) => a - b)
  assert.deepEqual(
    revs,
    revs.map((_, index) => index + 1),
  )
  assert.equal((await world.journey(journeyId)).conversion.conversion !== undefined, true)
})

test('an endpoint that asked for it hears of what is published', async () => {
  await using backend = await receiver(says(204, ''))
  await project.post('/webhook_endpoints', {
    ...{ project_id: project.id, name: 'Backend', url: backend.url, events: ['experience.published'] },
  })
  const { id, versionId } = await world.publish(aDraft())
  await eventually(() => Promise.resolve(backend.heard.length > 0), 20_000)
  const { type, data } = JSON.parse(backend.heard[0]?.body ?? '')
  assert.deepEqual([type, data.experience_id], ['experience.published', id])
  assert.deepEqual(
    data.apps.map((one: { app_id: string; version_id: string }) => [one.app_id, one.version_id]),
    [[app.id, versionId]],
  )
})

test('one report by /event does what one by /batch does', async () => {
  const who = randomUUID()
  const phone = world.device(who)
  await phone.sync()
  phone.capture('signup_done', { source: 'web' })
  for (const { idempotency_key: uuid, ...item } of phone.outbox()) {
    const answer = await app.post('/event', anEvent(who, { ...item, uuid }))
    assert.equal(answer.status, 200)
  }
  const journeyId = journeyOf(phone)
  await world.journeyIs(journeyId, ({ status }) => status === 'waiting')
  await project.post(`/journeys/${journeyId}/advance`, {})
  // Nobody saves a recipe: the wait has an end.
  await project.post(`/journeys/${journeyId}/advance`, {})
  assert.equal((await world.journey(journeyId)).end_reason, 'completed')
})
