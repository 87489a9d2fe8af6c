import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, describe, test } from 'node:test'
import { signApple } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { assertRefused } from './project.ts'
import { openStore } from './store-world.ts'

const service = await startService()
const world = await openStore(service)
after(async () => {
  await world[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const { app, store, project } = world

type Bought = ReturnType<typeof world.transaction>

let who = ''
let people = 0
beforeEach(() => {
  who = `payer-${++people}`
})

/** Ten `exports`, made for the customer. */
const pack = (more: object = {}) =>
  world.transaction(who, { type: 'Consumable', productId: 'com.example.pack', ...more })

const evidence = (bought: Bought) => ({ type: 'appstore', signedTransaction: signApple(world.pki, bought) })

function spend(bought: Bought | null, more: Record<string, unknown> = {}) {
  const command = { customerId: who, featureId: 'exports', operationId: randomUUID(), quantity: 1, ...more }
  return app.post('/feature/consume', bought === null ? command : { ...command, purchase: evidence(bought) })
}

const left = async () => (await world.entitled(who, 'exports')).balance
const purchases = async () => (await project.get(`/customers/${await project.customer(who)}/purchases`)).data.length
const operations = async () => (await service.pool.query('select from operation')).length

describe('POST /feature/consume with a purchase', () => {
  test('attaches it and spends in one: a customer that nobody knew has the rest', async () => {
    const bought = pack()
    const { status, body } = await spend(bought, { quantity: 4 })
    assert.deepEqual([status, body.accepted, body.code, body.balance], [200, true, 'consumed', 6])
    assert.equal(await left(), 6)
    const again = await world.bring(who, bought)
    assert.deepEqual([again.status, again.body.idempotent_replay], [200, true])
    assert.equal(await left(), 6)
  })

  test('what is attached already is only spent from', async () => {
    const bought = pack()
    await world.bring(who, bought)
    assert.equal((await spend(bought, { quantity: 3 })).body.balance, 7)
    assert.equal((await spend(bought, { quantity: 3 })).body.balance, 4)
    assert.equal(await purchases(), 1)
  })

  test('a retry is answered what was saved, with whatever signature, and asks no store', async () => {
    const bought = pack()
    const command = { operationId: randomUUID(), quantity: 4 }
    const first = await spend(bought, command)
    const asked = store.asked.length
    for (const signedDate of [Number(bought.signedDate), Date.now()]) {
      const { status, body } = await spend({ ...bought, signedDate }, command)
      assert.deepEqual([status, body], [200, { ...first.body, idempotentReplay: true }])
    }
    assert.equal(store.asked.length, asked)
    assert.equal(await left(), 6)
  })

  test('the purchase is part of what the operation was: without it, or with another one, 409', async () => {
    const command = { operationId: randomUUID(), quantity: 1 }
    await spend(pack(), command)
    assertRefused(await spend(null, command), 409, 'operation_conflict')
    assertRefused(await spend(pack(), command), 409, 'operation_conflict')
    const plain = { operationId: randomUUID(), quantity: 1 }
    await spend(null, plain)
    assertRefused(await spend(pack(), plain), 409, 'operation_conflict')
    assert.equal(await purchases(), 1)
  })

  test('402 where it does not suffice: the purchase stays attached, the denial is saved and replayed', async () => {
    const bought = pack()
    const command = { operationId: randomUUID(), quantity: 11 }
    for (const idempotentReplay of [false, true]) {
      const { status, body } = await spend(bought, command)
      assert.equal(status, 402)
      assert.deepEqual(
        [body.accepted, body.code, body.balance, body.active, body.idempotentReplay],
        [false, 'insufficient_balance', 10, true, idempotentReplay],
      )
    }
    assert.deepEqual([await left(), await purchases()], [10, 1])
    assert.equal((await spend(null, { quantity: 10 })).body.accepted, true)
  })

  test('other denials are 200, with the purchase attached', async () => {
    const { status, body } = await spend(world.transaction(who))
    assert.deepEqual([status, body.accepted, body.code], [200, false, 'access_inactive'])
    assert.equal((await world.entitled(who, 'pro')).allowed, true)
  })

  test('a Feature that cannot be spent is denied and saved before anything is verified', async () => {
    await project.customer(who)
    const command = { featureId: 'pro', operationId: randomUUID() }
    const bought = pack()
    for (const idempotentReplay of [false, true]) {
      const { status, body } = await spend(bought, command)
      assert.deepEqual([status, body.code, body.idempotentReplay], [200, 'feature_not_consumable', idempotentReplay])
    }
    assert.equal(await purchases(), 0)
  })

  test('errors of purchases save nothing: the operation can be tried again', async () => {
    const command = { operationId: randomUUID(), quantity: 2 }
    const bought = pack()
    const before = await operations()
    const signed = signApple(world.pki, bought)
    const forged = { type: 'appstore', signedTransaction: `${signed.slice(0, -4)}AAAA` }
    assertRefused(
      await app.post('/feature/consume', { customerId: who, featureId: 'exports', ...command, purchase: forged }),
      400,
      'app_store_purchase_invalid',
    )
    assertRefused(
      await spend(pack({ productId: 'com.example.nothing' }), { ...command }),
      400,
      'app_store_purchase_invalid',
    )
    assert.equal(await operations(), before)
    assert.equal((await spend(bought, command)).body.balance, 8)
  })

  test('409 for what another customer has, and nothing is spent', async () => {
    const bought = pack()
    await spend(bought)
    const owner = who
    who = `thief-${people}`
    const before = await operations()
    assertRefused(await spend(bought), 409, 'app_store_purchase_conflict')
    assert.equal(await operations(), before)
    who = owner
    assert.equal(await left(), 9)
  })

  test('403 scope_mismatch for evidence of the other store', async () => {
    const purchase = { type: 'playstore', purchaseToken: 'token' }
    const command = { customerId: who, featureId: 'exports', operationId: randomUUID(), quantity: 1, purchase }
    assertRefused(await app.post('/feature/consume', command), 403, 'scope_mismatch')
  })

  test('spends and /purchase side by side attach it once, and spend what was bought', async () => {
    const bought = pack({ quantity: 3 })
    const retried = { operationId: randomUUID(), quantity: 5 }
    const asks = Array.from({ length: 12 }, (_, i) => {
      if (i % 3 === 0) return world.bring(who, bought)
      return spend(bought, i % 3 === 1 ? { quantity: 5 } : retried)
    })
    for (const { status, body } of await Promise.all(asks)) assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([await left(), await purchases()], [5, 1])
    const { status, body } = await spend(bought, { quantity: 6 })
    assert.deepEqual([status, body.code], [402, 'insufficient_balance'])
  })
})
