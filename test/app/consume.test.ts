import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { assertRefused, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')

await project.feature('pro', { type: 'boolean' })
await project.feature('exports')
await project.feature('chat')
await project.feature('camera', { platforms: ['android'] })
await project.feature('desk', { type: 'boolean', platforms: ['web'] })
await project.feature('credits', { type: 'creditSystem', credit_costs: [{ feature: 'chat', cost: '0.3' }] })
await project.customer('nobody-granted')

const grant = (distinctId: string, feature: string, more: object = {}) =>
  project.grant(distinctId, { feature, ...more })

/** The usage decision without what it echoes and when; always exactly these fields. */
async function spend(customerId: string, featureId: string, quantity: number, more: object = {}): Promise<Body> {
  const command = { customerId, featureId, operationId: randomUUID(), quantity, ...more }
  const before = Date.now()
  const { status, body } = await app.post('/feature/consume', command)
  assert.equal(status, 200, JSON.stringify(body))
  const { occurredAtMs, idempotentReplay, ...rest } = body
  const { mode: _, ...echoed } = command as typeof command & { mode?: string }
  const decision: Body = {}
  for (const [field, value] of Object.entries(rest)) {
    if (field in echoed) assert.equal(value, echoed[field as keyof typeof echoed], field)
    else decision[field] = value
  }
  assert.equal('entityId' in body, 'entityId' in command)
  assert.equal(idempotentReplay, false)
  if (decision.code === 'customer_missing') assert.equal(occurredAtMs, null)
  else assert.ok(Math.abs(occurredAtMs - before) < 5000 && Number.isInteger(occurredAtMs))
  return decision
}

const consumed = (balance: number | null, type = 'metered') => {
  return { accepted: true, type, code: 'consumed', balance, unlimited: balance === null, active: balance !== 0 }
}
const denied = (code: string, balance: number | null, active: boolean, type = 'metered') => {
  return { accepted: false, type, code, balance, unlimited: false, active }
}

async function balancesOf(customerId: string): Promise<Record<string, Body>> {
  const { data } = await project.get(`/customers/${await project.customer(customerId)}/balances`)
  return Object.fromEntries(data.map((balance: Body) => [balance.feature, balance]))
}

const savedOperations = async (operationId: string) => {
  const scopeId = await project.scopeId()
  return service.pool.query('select from operation where scope_id = $1 and operation_id = $2', [scopeId, operationId])
}

describe('POST /feature/consume, 200 consumed', () => {
  test('units remain, then the last one goes: accepted, and not active any more', async () => {
    await grant('m', 'exports', { allowance: 3 })
    assert.deepEqual(await spend('m', 'exports', 2), consumed(1))
    assert.deepEqual(await spend('m', 'exports', 1, { mode: 'consume' }), consumed(0))
    assert.equal((await balancesOf('m')).exports.used_total, 3)
  })

  test('unlimited has no balance, and finite grants stay as they are', async () => {
    await grant('u', 'exports', { allowance: 3 })
    const { id } = await grant('u', 'exports', { unlimited: true, expires_at: '2100-01-01T00:00:00.000Z' })
    assert.ok(id)
    assert.deepEqual(await spend('u', 'exports', 2 ** 53 - 1), consumed(null))
    const { exports } = await balancesOf('u')
    assert.deepEqual(
      exports.grants.map(({ remaining }: Body) => remaining),
      [null, 3],
    )
  })

  test('own units go first, then credits; one command may take both, and credits have fractions', async () => {
    await grant('c', 'chat', { allowance: 2 })
    await grant('c', 'credits', { allowance: 3 })
    assert.deepEqual(await spend('c', 'chat', 1), consumed(11))
    assert.deepEqual(await spend('c', 'chat', 3), consumed(8))
    const { chat, credits } = await balancesOf('c')
    assert.deepEqual([chat.used_total, credits.balance, credits.credits], [4, 2, 2.4])
    assert.deepEqual(await spend('c', 'chat', 8), consumed(0))
    assert.deepEqual(await spend('c', 'chat', 1), denied('insufficient_balance', 0, false))
  })

  test('credits are spent directly in whole ones', async () => {
    await grant('cd', 'credits', { allowance: 3 })
    assert.deepEqual(await spend('cd', 'credits', 2), consumed(1, 'creditSystem'))
  })

  test('an entity spends its own units, then the shared ones; without an entity the shared ones only', async () => {
    await grant('e', 'exports', { allowance: 2, entity_id: 'seat-1' })
    await grant('e', 'exports', { allowance: 3 })
    assert.deepEqual(await spend('e', 'exports', 4, { entityId: 'seat-1' }), consumed(1))
    assert.deepEqual(await spend('e', 'exports', 2), denied('insufficient_balance', 1, true))
    assert.deepEqual(await spend('e', 'exports', 1, { entityId: 'seat-2' }), consumed(0))
    assert.equal((await balancesOf('e')).exports.used_total, 0)
  })

  test('what was spent is in the ledger under its operation', async () => {
    await grant('l', 'exports', { allowance: 5 })
    const operationId = randomUUID()
    await spend('l', 'exports', 2, { operationId })
    const { data } = await project.get(`/customers/${await project.customer('l')}/ledger`)
    assert.deepEqual([data[0].operation_id, data[0].delta, data[0].feature], [operationId, -2, 'exports'])
  })
})

describe('POST /feature/consume, 200 with mode set_usage', () => {
  test('spends the increase over what was used: after 7, a total of 10 spends 3', async () => {
    await grant('s', 'exports', { allowance: 20 })
    const set = (total: number) => spend('s', 'exports', total, { mode: 'set_usage' })
    assert.deepEqual(await set(7), consumed(13))
    assert.deepEqual(await set(10), consumed(10))
    assert.deepEqual(await set(10), consumed(10))
    assert.deepEqual(await set(4), consumed(10))
    assert.deepEqual(await spend('s', 'exports', 5), consumed(5))
    assert.deepEqual(await set(16), consumed(4))
    assert.equal((await balancesOf('s')).exports.used_total, 16)
  })

  test('a total that is not above is accepted while access is live, also with nothing left', async () => {
    await grant('s0', 'exports', { allowance: 2 })
    assert.deepEqual(await spend('s0', 'exports', 2), consumed(0))
    assert.deepEqual(await spend('s0', 'exports', 2, { mode: 'set_usage' }), consumed(0))
    assert.deepEqual(await spend('s0', 'exports', 3, { mode: 'set_usage' }), denied('insufficient_balance', 0, false))
    assert.deepEqual(
      await spend('nobody-granted', 'exports', 1, { mode: 'set_usage' }),
      denied('access_inactive', 0, false),
    )
  })

  test('a denied increase moves nothing', async () => {
    await grant('sd', 'exports', { allowance: 5 })
    const set = (total: number) => spend('sd', 'exports', total, { mode: 'set_usage' })
    assert.deepEqual(await set(6), denied('insufficient_balance', 5, true))
    assert.deepEqual(await set(5), consumed(0))
  })

  test('each entity has a total of its own', async () => {
    await grant('se', 'exports', { allowance: 9 })
    const set = (total: number, entityId: string) => spend('se', 'exports', total, { mode: 'set_usage', entityId })
    assert.deepEqual(await set(3, 'a'), consumed(6))
    assert.deepEqual(await set(3, 'b'), consumed(3))
    assert.deepEqual(await set(4, 'a'), consumed(2))
  })

  test('an unlimited grant raises the total too', async () => {
    await grant('su', 'exports', { unlimited: true })
    assert.deepEqual(await spend('su', 'exports', 7, { mode: 'set_usage' }), consumed(null))
    assert.deepEqual(await spend('su', 'exports', 3, { mode: 'set_usage' }), consumed(null))
    assert.equal((await balancesOf('su')).exports.used_total, 7)
  })

  test('totals sent at the same time end at the largest', async () => {
    await grant('sp', 'exports', { allowance: 30 })
    await Promise.all(Array.from({ length: 30 }, (_, n) => spend('sp', 'exports', n + 1, { mode: 'set_usage' })))
    const { exports } = await balancesOf('sp')
    assert.deepEqual([exports.used_total, exports.balance], [30, 0])
  })
})

describe('POST /feature/consume, 200 and denied', () => {
  test('insufficient_balance: live, too little; nothing is taken in part', async () => {
    await grant('d', 'exports', { allowance: 3 })
    assert.deepEqual(await spend('d', 'exports', 4), denied('insufficient_balance', 3, true))
    await spend('d', 'exports', 3)
    assert.deepEqual(await spend('d', 'exports', 1), denied('insufficient_balance', 0, false))
    assert.equal((await balancesOf('d')).exports.used_total, 3)
  })

  test('access_inactive: no live grant', async () => {
    assert.deepEqual(await spend('nobody-granted', 'exports', 1), denied('access_inactive', 0, false))
    assert.deepEqual(await spend('nobody-granted', 'credits', 1), denied('access_inactive', 0, false, 'creditSystem'))
    await grant('soon', 'exports', { allowance: 3, starts_at: '2100-01-01T00:00:00.000Z' })
    assert.deepEqual(await spend('soon', 'exports', 1), denied('access_inactive', 0, false))
    await grant('own', 'exports', { allowance: 3, entity_id: 'seat' })
    assert.deepEqual(await spend('own', 'exports', 1), denied('access_inactive', 0, false))
  })

  test('feature_not_consumable: a boolean Feature, active while it is live', async () => {
    await grant('b', 'pro')
    assert.deepEqual(await spend('b', 'pro', 1), denied('feature_not_consumable', null, true, 'boolean'))
    assert.deepEqual(await spend('nobody-granted', 'pro', 1), denied('feature_not_consumable', null, false, 'boolean'))
  })

  test('feature_inapplicable: the Feature is for another platform', async () => {
    await grant('p', 'camera', { allowance: 3 })
    await grant('p', 'desk')
    assert.deepEqual(await spend('p', 'camera', 1), denied('feature_inapplicable', 0, false))
    assert.deepEqual(await spend('p', 'desk', 1), denied('feature_inapplicable', null, false, 'boolean'))
    const android = await project.app('android')
    const command = { customerId: 'p', featureId: 'camera', operationId: randomUUID(), quantity: 1 }
    assert.equal((await android.post('/feature/consume', command)).body.code, 'consumed')
  })

  test('customer_missing: no record of the id; it is not saved, so that it can still succeed', async () => {
    const operationId = randomUUID()
    const ask = () => spend('stranger', 'exports', 1, { operationId })
    assert.deepEqual(await ask(), denied('customer_missing', 0, false))
    assert.deepEqual(await spend('stranger', 'pro', 1), denied('customer_missing', null, false, 'boolean'))
    assert.deepEqual(await savedOperations(operationId), [])
    await grant('stranger', 'exports', { allowance: 3 })
    assert.deepEqual(await ask(), consumed(2))
  })
})

describe('POST /feature/consume at the same time', () => {
  test('200 commands on a balance of 5 are accepted exactly 5 times', async () => {
    await grant('storm', 'exports', { allowance: 5 })
    const decisions = await Promise.all(Array.from({ length: 200 }, () => spend('storm', 'exports', 1)))
    const accepted = decisions.filter((decision) => decision.accepted)
    assert.deepEqual(
      accepted.map(({ balance }) => balance).toSorted((a, b) => b - a),
      [4, 3, 2, 1, 0],
    )
    assert.ok(decisions.every(({ accepted: yes, code }) => yes || code === 'insufficient_balance'))
    const { exports } = await balancesOf('storm')
    assert.deepEqual([exports.balance, exports.used_total], [0, 5])
  })

  test('and by way of two processes, too', async () => {
    await using node = await service.another({ ROLE: 'api' })
    await grant('storm-2', 'exports', { allowance: 50 })
    const ask = (url: string) =>
      fetch(`${url}/feature/consume`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ apiKey: app.key, customerId: 'storm-2', featureId: 'exports' },
          ...{ operationId: randomUUID(), quantity: 3 },
        }),
      }).then((response) => response.json() as Promise<Body>)
    const asked = Array.from({ length: 100 }, (_, n) => ask(n % 2 ? node.url : service.url))
    assert.equal((await Promise.all(asked)).filter(({ accepted }) => accepted).length, 16)
    assert.equal((await balancesOf('storm-2')).exports.balance, 2)
  })

  test('checks agree with what is left at every moment, and never see a part of a command', async () => {
    await grant('even', 'exports', { allowance: 40 })
    const checks: Promise<Body>[] = []
    const spends = Array.from({ length: 20 }, async () => {
      checks.push(app.post('/entitled', { customerId: 'even', featureId: 'exports' }))
      await spend('even', 'exports', 2)
    })
    await Promise.all(spends)
    for (const { body } of await Promise.all(checks)) assert.equal(body.balance % 2, 0)
  })
})

describe('POST /feature/consume, 404 and 410', () => {
  const command = (more: object) => {
    return { customerId: 'm', featureId: 'exports', operationId: randomUUID(), quantity: 1, ...more }
  }

  test('404: no published Feature, whether the customer exists or not; nothing is saved', async () => {
    await project.feature('draft', { published: false })
    for (const customerId of ['m', 'unheard-of']) {
      for (const featureId of ['nothing', 'draft', 'Exports']) {
        const asked = command({ customerId, featureId })
        assertRefused(await app.post('/feature/consume', asked), 404, 'feature_not_found')
        assert.deepEqual(await savedOperations(asked.operationId), [])
      }
    }
  })

  test('404, then the Feature is published: the same operation can still be decided', async () => {
    await project.feature('coming', { published: false })
    const asked = command({ featureId: 'coming' })
    assertRefused(await app.post('/feature/consume', asked), 404, 'feature_not_found')
    await project.post(`/features/coming/publish?project_id=${project.id}`)
    assert.equal((await app.post('/feature/consume', asked)).body.code, 'access_inactive')
  })

  test('410: the customer was deleted, whatever the Feature; nothing is saved', async () => {
    await project.customer('gone')
    await project.tombstone('gone')
    for (const featureId of ['exports', 'pro', 'chat', 'nothing']) {
      const asked = command({ customerId: 'gone', featureId })
      assertRefused(await app.post('/feature/consume', asked), 410, 'customer_deleted')
      assert.deepEqual(await savedOperations(asked.operationId), [])
    }
  })
})
