import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { type App, anEvent, assertRefused, eventually, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')
await project.feature('exports')
await project.feature('imports')

const grant = (distinctId: string, allowance: number, options?: { environment: string }) =>
  project.grant(distinctId, { feature: 'exports', allowance }, options)

const command = (customerId: string, more: object = {}) => {
  return { customerId, featureId: 'exports', operationId: randomUUID(), quantity: 2, ...more }
}

const ask = (body: Record<string, unknown>, by: App = app): Promise<Answer> => by.post('/feature/consume', body)

async function decide(body: Record<string, unknown>, by?: App): Promise<Body> {
  const answer = await ask(body, by)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

async function usedTotal(customerId: string): Promise<number> {
  const { data } = await project.get(`/customers/${await project.customer(customerId)}/balances`)
  return data[0].used_total
}

describe('POST /feature/consume again with the same operation', () => {
  test('answers an acceptance as it was saved, and spends nothing', async () => {
    await grant('a', 5)
    const operation = command('a')
    const first = await decide(operation)
    await decide(command('a'))
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    assert.equal(await usedTotal('a'), 4)
  })

  test('answers a denial as it was saved, also after a top-up; another operation is judged anew', async () => {
    await grant('d', 1)
    const operation = command('d', { quantity: 3 })
    const first = await decide(operation)
    assert.deepEqual([first.code, first.accepted, first.balance], ['insufficient_balance', false, 1])
    await grant('d', 10)
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    assert.equal((await decide(command('d', { quantity: 3 }))).code, 'consumed')
  })

  test('answers every other saved denial, too', async () => {
    await project.customer('none')
    await project.feature('pro', { type: 'boolean' })
    await project.feature('camera', { platforms: ['web'] })
    for (const [featureId, code] of [
      ['exports', 'access_inactive'],
      ['pro', 'feature_not_consumable'],
      ['camera', 'feature_inapplicable'],
    ]) {
      const operation = command('none', { featureId })
      const first = await decide(operation)
      assert.equal(first.code, code)
      assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    }
  })

  test('takes an absent mode and consume for the same, and 2 and 2.0', async () => {
    await grant('same', 5)
    const operation = command('same')
    const first = await decide(operation)
    assert.deepEqual(await decide({ ...operation, mode: 'consume' }), { ...first, idempotentReplay: true })
    const written = JSON.stringify({ apiKey: app.key, ...operation }).replace('"quantity":2', '"quantity":2.0')
    assert.deepEqual((await app.post('/feature/consume', written)).body, { ...first, idempotentReplay: true })
  })

  test('is answered although the Feature was archived since, or is for other platforms now', async () => {
    const archived = { project_id: project.id }
    await project.feature('old')
    await project.grant('arch', { feature: 'old', allowance: 5 })
    const operation = command('arch', { featureId: 'old' })
    const first = await decide(operation)
    await project.patch(`/features/old?project_id=${project.id}`, { platforms: ['web'] })
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    await project.post(`/features/old/archive?project_id=${archived.project_id}`)
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
    assertRefused(await ask(command('arch', { featureId: 'old' })), 404, 'feature_not_found')
  })

  test('is answered to another app of the project, but another environment knows nothing of it', async () => {
    await grant('env', 5)
    await project.feature('exports', {}, { environment: 'live' })
    await grant('env', 7, { environment: 'live' })
    const operation = command('env')
    const first = await decide(operation)
    assert.deepEqual(await decide(operation, await project.app('android')), { ...first, idempotentReplay: true })
    const live = await decide(operation, await project.app('ios', 'live'))
    assert.deepEqual([live.idempotentReplay, live.balance], [false, 5])
    assert.equal((await decide(command('env'))).balance, 1)
  })

  test('echoes the entity', async () => {
    await grant('ent', 5)
    const operation = command('ent', { entityId: 'seat 1' })
    const first = await decide(operation)
    assert.equal(first.entityId, 'seat 1')
    assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
  })

  test('is a replay under the id that the customer was merged into, and echoes the id as it was sent', async () => {
    await grant('anon', 5)
    await project.customer('person')
    const operation = command('anon')
    const first = await decide(operation)
    await app.post('/event', anEvent('person', { event: '$identify', $anon_distinct_id: 'anon' }))
    const personId = await project.customer('person')
    await eventually(async () => (await project.customer('anon')) === personId)
    for (const customerId of ['anon', 'person']) {
      assert.deepEqual(await decide({ ...operation, customerId }), { ...first, customerId, idempotentReplay: true })
    }
    assert.equal((await decide(command('person'))).balance, 1)
  })

  test('50 copies at the same time have one effect, and one of them is no replay', async () => {
    await grant('copies', 100)
    const operation = command('copies')
    const answers = await Promise.all(Array.from({ length: 50 }, () => decide(operation)))
    assert.equal(answers.filter(({ idempotentReplay }) => !idempotentReplay).length, 1)
    const shown = new Set(answers.map((answer) => JSON.stringify({ ...answer, idempotentReplay: null })))
    assert.equal(shown.size, 1)
    assert.equal(await usedTotal('copies'), 2)
  })

  test('also when they come by way of two processes', async () => {
    await using node = await service.another({ ROLE: 'api' })
    await grant('two', 100)
    const operations = Array.from({ length: 10 }, () => command('two'))
    const send = async (url: string, operation: object): Promise<Body> => {
      const response = await fetch(`${url}/feature/consume`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ apiKey: app.key, ...operation }),
      })
      return response.json()
    }
    const answers = await Promise.all(
      [0, 1, 2].flatMap(() => operations.flatMap((each) => [send(node.url, each), send(service.url, each)])),
    )
    assert.equal(answers.filter(({ idempotentReplay }) => idempotentReplay === false).length, 10)
    assert.ok(answers.every(({ accepted }) => accepted))
    assert.equal(await usedTotal('two'), 20)
  })

  test('copies that ask for different things at the same time: one is decided, the others conflict', async () => {
    await grant('rivals', 100)
    const operation = command('rivals')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => ask({ ...operation, quantity: 1 + (n % 4) })),
    )
    const [decided] = answers.filter(({ body }) => body.idempotentReplay === false)
    assert.ok(decided)
    for (const { status, body } of answers) {
      if (status === 200) assert.equal(body.quantity, decided.body.quantity)
      else assert.deepEqual([status, body.code], [409, 'operation_conflict'])
    }
    assert.equal(await usedTotal('rivals'), decided.body.quantity)
  })
})

describe('POST /feature/consume, 409 operation_conflict', () => {
  const changes = {
    quantity: { quantity: 3 },
    featureId: { featureId: 'imports' },
    'featureId of none': { featureId: 'nothing' },
    mode: { mode: 'set_usage' },
    entityId: { entityId: 'seat' },
    customerId: { customerId: 'conflicting-2' },
    'customerId of a stranger': { customerId: 'stranger' },
  }
  for (const [what, change] of Object.entries(changes)) {
    test(`the same operation with another ${what}; nothing is spent, and the original still replays`, async () => {
      const customerId = `conflicting ${what}`
      await grant(customerId, 5)
      await grant('conflicting-2', 5)
      const operation = command(customerId)
      const first = await decide(operation)
      const answer = await ask({ ...operation, ...change })
      assertRefused(answer, 409, 'operation_conflict')
      assert.deepEqual(answer.body.details, { operationId: operation.operationId })
      assert.deepEqual(await decide(operation), { ...first, idempotentReplay: true })
      assert.equal(await usedTotal(customerId), 2)
    })
  }

  test('an entity that is left out, or another one', async () => {
    await grant('entity', 5)
    const operation = command('entity', { entityId: 'seat' })
    await decide(operation)
    for (const entityId of [undefined, 'Seat', 'seat2']) {
      assertRefused(await ask({ ...operation, entityId }), 409, 'operation_conflict')
    }
  })

  test('a denied operation is taken as well', async () => {
    const operation = command('entity', { quantity: 100 })
    await decide(operation)
    assertRefused(await ask({ ...operation, quantity: 1 }), 409, 'operation_conflict')
  })
})

test('an operation of a customer who was deleted since is 410, not a replay', async () => {
  await grant('gone', 5)
  const operation = command('gone')
  await decide(operation)
  await project.tombstone('gone')
  assertRefused(await ask(operation), 410, 'customer_deleted')
})
