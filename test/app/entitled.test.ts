import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { bodyBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { assertRefused, eventually, openProject } from './project.ts'
import { identifiers, units, unknownFields, withNumber } from './usage-fields.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app('ios')

await project.feature('pro', { type: 'boolean' })
await project.feature('exports')
await project.feature('chat')
await project.feature('photos')
await project.feature('camera', { platforms: ['android', 'web'] })
await project.feature('desk', { type: 'boolean', platforms: ['web'] })
await project.feature('credits', {
  type: 'creditSystem',
  credit_costs: [
    { feature: 'chat', cost: '0.3' },
    { feature: 'photos', cost: 2 },
  ],
})
await project.customer('nobody-granted')

const grant = (distinctId: string, feature: string, more: object = {}) =>
  project.grant(distinctId, { feature, ...more })

/** The access decision; always exactly these fields. */
async function check(customerId: string, featureId: string, more: object = {}): Promise<Body> {
  const { status, body } = await app.post('/entitled', { customerId, featureId, ...more })
  assert.equal(status, 200, JSON.stringify(body))
  const { customerId: echoed, featureId: feature, ...decision } = body
  assert.deepEqual([echoed, feature], [customerId, featureId])
  return decision
}

const found = (type: string, allowed: boolean, balance: number | null, requiredBalance = 1) => {
  return { requiredBalance, code: 'feature_found', allowed, unlimited: false, balance, type }
}
const unlimited = (type: string) => ({ ...found(type, true, null), unlimited: true })

describe('POST /entitled, 200 feature_found', () => {
  test('a boolean Feature is allowed while a grant is live, whatever is required', async () => {
    await grant('b', 'pro')
    assert.deepEqual(await check('b', 'pro'), found('boolean', true, null))
    assert.deepEqual(await check('b', 'pro', { requiredBalance: 1000 }), found('boolean', true, null, 1000))
    assert.deepEqual(await check('nobody-granted', 'pro'), found('boolean', false, null))
  })

  test('a metered Feature is allowed when the balance covers what is required', async () => {
    await grant('m', 'exports', { allowance: 5 })
    for (const [requiredBalance, allowed] of [
      [1, true],
      [5, true],
      [6, false],
      [2 ** 53 - 1, false],
    ] as const) {
      assert.deepEqual(await check('m', 'exports', { requiredBalance }), found('metered', allowed, 5, requiredBalance))
    }
  })

  test('requiredBalance is 1 when absent, and requiredQuantity is another name for it', async () => {
    assert.deepEqual(await check('m', 'exports'), found('metered', true, 5))
    assert.deepEqual(await check('m', 'exports', { requiredQuantity: 6 }), found('metered', false, 5, 6))
    assert.deepEqual(
      await check('m', 'exports', { requiredQuantity: 5, requiredBalance: 5 }),
      found('metered', true, 5, 5),
    )
  })

  test('several grants add up', async () => {
    await grant('several', 'exports', { allowance: 2 })
    await grant('several', 'exports', { allowance: 3, interval: 'month' })
    assert.deepEqual(await check('several', 'exports', { requiredBalance: 5 }), found('metered', true, 5, 5))
  })

  test('unlimited wins and has no balance', async () => {
    await grant('u', 'exports', { unlimited: true })
    await grant('u', 'exports', { allowance: 5 })
    assert.deepEqual(await check('u', 'exports'), unlimited('metered'))
    assert.deepEqual(await check('u', 'exports', { requiredBalance: 2 ** 53 - 1 }), {
      ...unlimited('metered'),
      requiredBalance: 2 ** 53 - 1,
    })
  })

  test('without a live grant nothing is allowed: none, drained, or not begun', async () => {
    assert.deepEqual(await check('nobody-granted', 'exports'), found('metered', false, 0))
    assert.deepEqual(await check('nobody-granted', 'credits'), found('creditSystem', false, 0))
    await grant('drained', 'exports', { allowance: 2 })
    await app.post('/feature/consume', {
      customerId: 'drained',
      featureId: 'exports',
      operationId: 'drain',
      quantity: 2,
    })
    assert.deepEqual(await check('drained', 'exports'), found('metered', false, 0))
    await grant('later', 'exports', { allowance: 2, starts_at: '2100-01-01T00:00:00.000Z' })
    assert.deepEqual(await check('later', 'exports'), found('metered', false, 0))
    await grant('later', 'pro', { starts_at: '2100-01-01T00:00:00.000Z' })
    assert.deepEqual(await check('later', 'pro'), found('boolean', false, null))
  })

  test('credits pay for their members, in units of the member, and are whole when asked for themselves', async () => {
    await grant('c', 'credits', { allowance: 10 })
    assert.deepEqual(await check('c', 'credits', { requiredBalance: 10 }), found('creditSystem', true, 10, 10))
    assert.deepEqual(await check('c', 'chat', { requiredBalance: 33 }), found('metered', true, 33, 33))
    assert.deepEqual(await check('c', 'chat', { requiredBalance: 34 }), found('metered', false, 33, 34))
    assert.deepEqual(await check('c', 'photos'), found('metered', true, 5))
    assert.deepEqual(await check('c', 'exports'), found('metered', false, 0))
    await grant('c', 'chat', { allowance: 2 })
    assert.deepEqual(await check('c', 'chat', { requiredBalance: 35 }), found('metered', true, 35, 35))
    await app.post('/feature/consume', { customerId: 'c', featureId: 'chat', operationId: 'c', quantity: 3 })
    assert.deepEqual(await check('c', 'credits'), found('creditSystem', true, 9))
  })

  test('unlimited credits make every member unlimited', async () => {
    await grant('cu', 'credits', { unlimited: true })
    assert.deepEqual(await check('cu', 'chat'), unlimited('metered'))
    assert.deepEqual(await check('cu', 'credits'), unlimited('creditSystem'))
  })

  test('an entity has its own units and the shared ones; without an entity there are the shared ones only', async () => {
    await grant('e', 'exports', { allowance: 2, entity_id: 'seat-1' })
    await grant('e', 'exports', { allowance: 3 })
    assert.deepEqual(await check('e', 'exports', { entityId: 'seat-1' }), found('metered', true, 5))
    assert.deepEqual(await check('e', 'exports', { entityId: 'seat-2' }), found('metered', true, 3))
    assert.deepEqual(await check('e', 'exports'), found('metered', true, 3))
    await grant('e-only', 'pro', { entity_id: 'seat-1' })
    assert.deepEqual(await check('e-only', 'pro'), found('boolean', false, null))
    assert.deepEqual(await check('e-only', 'pro', { entityId: 'seat-1' }), found('boolean', true, null))
  })

  test('a balance beyond what JSON readers agree on is shown as the largest they do', async () => {
    await grant('rich', 'exports', { allowance: 2 ** 53 - 1 })
    await grant('rich', 'exports', { allowance: 2 ** 53 - 1 })
    assert.equal((await check('rich', 'exports')).balance, 2 ** 53 - 1)
  })

  test('any number of checks changes nothing', async () => {
    await grant('same', 'exports', { allowance: 5 })
    await Promise.all(Array.from({ length: 50 }, () => check('same', 'exports', { requiredBalance: 5 })))
    assert.deepEqual(await check('same', 'exports', { requiredBalance: 5 }), found('metered', true, 5, 5))
    const [balance] = (await project.get(`/customers/${await project.customer('same')}/balances`)).data
    assert.deepEqual([balance.balance, balance.used_total], [5, 0])
  })

  test('one customer, several ids: the balance is the customer’s, the id the caller’s', async () => {
    await grant('anon-9', 'exports', { allowance: 4 })
    await app.post('/event', {
      ...{ event: '$identify', distinct_id: 'user-9', $anon_distinct_id: 'anon-9' },
      uuid: '5f0c2f43-8a55-4d3e-8d3e-3a2f6f1f5a09',
    })
    await eventually(async () => (await check('user-9', 'exports')).code === 'feature_found')
    for (const id of ['anon-9', 'user-9']) assert.equal((await check(id, 'exports')).balance, 4)
  })

  test('ids that look like one another ask about different things, also at the same moment', async () => {
    const scopeId = await project.scopeId()
    await grant('y', 'exports', { allowance: 1, entity_id: `a ${scopeId} x` })
    await grant(`x ${scopeId} y`, 'exports', { allowance: 2, entity_id: 'a' })
    const asked = Array.from({ length: 20 }, (_, n) =>
      n % 2 === 0
        ? check('y', 'exports', { entityId: `a ${scopeId} x` })
        : check(`x ${scopeId} y`, 'exports', { entityId: 'a' }),
    )
    for (const [n, { balance }] of (await Promise.all(asked)).entries()) assert.equal(balance, 1 + (n % 2))
  })
})

test('POST /entitled, 200 customer_missing: no record of the id', async () => {
  const missing = (type: string, balance: number | null) => ({
    ...found(type, false, balance),
    code: 'customer_missing',
  })
  assert.deepEqual(await check('stranger', 'exports'), missing('metered', 0))
  assert.deepEqual(await check('stranger', 'credits', { entityId: 'seat' }), missing('creditSystem', 0))
  assert.deepEqual(await check('stranger', 'pro'), missing('boolean', null))
})

test('POST /entitled, 200 feature_inapplicable: the Feature is not for the platform of the key', async () => {
  const inapplicable = (type: string, balance: number | null) => ({
    ...found(type, false, balance),
    code: 'feature_inapplicable',
  })
  await grant('p', 'camera', { allowance: 5 })
  await grant('p', 'desk')
  assert.deepEqual(await check('p', 'camera'), inapplicable('metered', 0))
  assert.deepEqual(await check('p', 'desk'), inapplicable('boolean', null))
  for (const platform of ['android', 'web'] as const) {
    const other = await project.app(platform)
    const { body } = await other.post('/entitled', { customerId: 'p', featureId: 'camera' })
    assert.deepEqual([body.code, body.balance], ['feature_found', 5])
  }
})

describe('POST /entitled, 404 feature_not_found', () => {
  test('no Feature, or none that is published, whether the customer exists or not', async () => {
    await project.feature('draft', { published: false })
    await project.feature('archived')
    await grant('m', 'archived', { allowance: 5 })
    await project.post(`/features/archived/archive?project_id=${project.id}`)
    for (const customerId of ['m', 'stranger']) {
      for (const featureId of ['nothing', 'draft', 'archived', 'EXPORTS', 'exports2']) {
        const answer = await app.post('/entitled', { customerId, featureId })
        assertRefused(answer, 404, 'feature_not_found')
        assert.deepEqual(answer.body.details, { featureId })
      }
    }
  })

  test('a Feature of another environment or project', async () => {
    const live = { environment: 'live' }
    await project.feature('live-only', {}, live)
    assertRefused(await app.post('/entitled', { customerId: 'm', featureId: 'live-only' }), 404, 'feature_not_found')
    const other = await openProject(service)
    const stranger = await other.app()
    assertRefused(await stranger.post('/entitled', { customerId: 'm', featureId: 'exports' }), 404, 'feature_not_found')
  })
})

test('POST /entitled, 410: the customer was deleted, also when there is no such Feature', async () => {
  await project.customer('gone')
  await project.tombstone('gone')
  for (const featureId of ['exports', 'pro', 'credits', 'chat', 'camera', 'nothing']) {
    assertRefused(await app.post('/entitled', { customerId: 'gone', featureId }), 410, 'customer_deleted')
  }
})

describe('POST /entitled, 400', () => {
  const good = { customerId: 'm', featureId: 'exports' }
  for (const field of ['customerId', 'featureId', 'entityId'] as const) {
    test(`${field} that is no identifier, but not one at the limit`, async () => {
      for (const value of identifiers[field].refused) {
        assertRefused(await app.post('/entitled', { ...good, [field]: value }), 400, 'invalid_request', field)
      }
      for (const value of identifiers[field].taken) {
        const { status, body } = await app.post('/entitled', { ...good, [field]: value })
        assert.equal(status, field === 'featureId' ? 404 : 200, JSON.stringify(body))
      }
    })
  }

  for (const field of ['requiredBalance', 'requiredQuantity']) {
    test(`${field} that is no whole number from 1 to 2^53 - 1`, async () => {
      for (const text of units.refused) {
        const answer = await app.post('/entitled', withNumber({ apiKey: app.key, ...good }, field, text))
        assertRefused(answer, 400, 'invalid_request', field)
      }
      for (const [text, value] of Object.entries(units.taken)) {
        const { body } = await app.post('/entitled', withNumber({ apiKey: app.key, ...good }, field, text))
        assert.equal(body.requiredBalance, value)
      }
    })
  }

  test('requiredQuantity that is not requiredBalance', async () => {
    const both = { ...good, requiredBalance: 1, requiredQuantity: 2 }
    assertRefused(await app.post('/entitled', both), 400, 'invalid_request', 'requiredQuantity')
  })

  test('fields that it does not know, those that belong to spending among them', async () => {
    for (const [field, value] of Object.entries(unknownFields)) {
      assertRefused(await app.post('/entitled', { ...good, [field]: value }), 400, 'unknown_field', field)
    }
    for (const field of ['operationId', 'quantity', 'mode', 'purchase']) {
      assertRefused(await app.post('/entitled', { ...good, [field]: 1 }), 400, 'unknown_field', field)
    }
  })

  test('an unknown field beside a wrong one is an invalid request, and both are told', async () => {
    const answer = await app.post('/entitled', { ...good, customerId: '', productId: 'x' })
    assertRefused(answer, 400, 'invalid_request')
    const paths = answer.body.issues.map(({ path }: Body) => path)
    assert.deepEqual(new Set(paths), new Set(['customerId', 'productId']))
  })
})

test('POST /entitled, 413: a body of more than 1 MiB', async () => {
  const padded = (bytes: number) =>
    JSON.stringify({ apiKey: app.key, customerId: 'm', featureId: 'exports' }).padEnd(bytes)
  assert.equal((await app.post('/entitled', padded(bodyBytesMax))).status, 200)
  assertRefused(await app.post('/entitled', padded(bodyBytesMax + 1)), 413, 'payload_too_large')
})
