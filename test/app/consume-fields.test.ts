import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { evidenceBodyBytesMax, purchaseTokenCharsMax, signedTransactionBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { assertRefused, openProject } from './project.ts'
import { identifiers, units, unknownFields, withNumber } from './usage-fields.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
await project.feature('exports')
await project.grant('ada', { feature: 'exports', unlimited: true })

const good = () => {
  return { customerId: 'ada', featureId: 'exports', operationId: randomUUID() as string, quantity: 1 }
}
const operations = async () => (await service.pool.query('select from operation')).length

describe('POST /feature/consume, 400', () => {
  for (const field of ['customerId', 'featureId', 'operationId', 'entityId'] as const) {
    test(`${field} that is no identifier, but not one at the limit, which is echoed as it was sent`, async () => {
      const before = await operations()
      for (const value of identifiers[field].refused) {
        const answer = await app.post('/feature/consume', { ...good(), [field]: value })
        assertRefused(answer, 400, 'invalid_request', field)
      }
      assert.equal(await operations(), before)
      for (const value of identifiers[field].taken) {
        const { status, body } = await app.post('/feature/consume', { ...good(), [field]: value })
        assert.equal(status, field === 'featureId' ? 404 : 200, JSON.stringify(body))
        if (status === 200) assert.equal(body[field], value)
      }
    })
  }

  test('quantity that is no whole number from 1 to 2^53 - 1', async () => {
    for (const text of units.refused) {
      const answer = await app.post('/feature/consume', withNumber({ apiKey: app.key, ...good() }, 'quantity', text))
      assertRefused(answer, 400, 'invalid_request', 'quantity')
    }
    for (const [text, value] of Object.entries(units.taken)) {
      const answer = await app.post('/feature/consume', withNumber({ apiKey: app.key, ...good() }, 'quantity', text))
      assert.deepEqual([answer.body.accepted, answer.body.quantity], [true, value])
    }
    assertRefused(await app.post('/feature/consume', { ...good(), quantity: undefined }), 400, 'invalid_request')
  })

  test('a mode that is neither consume nor set_usage', async () => {
    for (const mode of ['', 'Consume', 'set usage', 'check', null, 1, true, [], {}]) {
      assertRefused(await app.post('/feature/consume', { ...good(), mode }), 400, 'invalid_request', 'mode')
    }
  })

  test('fields that it does not know', async () => {
    for (const [field, value] of Object.entries({ ...unknownFields, requiredBalance: 1, value: 1 })) {
      assertRefused(await app.post('/feature/consume', { ...good(), [field]: value }), 400, 'unknown_field', field)
    }
  })

  test('tells of everything that is wrong', async () => {
    const { body } = await app.post('/feature/consume', { customerId: 'null', quantity: 0, more: 1 })
    const paths = body.issues.map(({ path }: Body) => path)
    assert.deepEqual(new Set(paths), new Set(['customerId', 'quantity', 'featureId', 'operationId', 'more']))
  })
})

const appStore = { type: 'appstore', signedTransaction: 'a.b.c' }
const playStore = { type: 'playstore', purchaseToken: 'token' }

describe('POST /feature/consume with a purchase', () => {
  test('evidence up to its limit is looked at; no store is connected, so nothing is saved or spent', async () => {
    const android = await project.app('android')
    const signed = ['a.b.c', 'x'.repeat(signedTransactionBytesMax), 'é'.repeat(signedTransactionBytesMax / 2)]
    const tokens = ['token', 'x'.repeat(purchaseTokenCharsMax), '😀'.repeat(purchaseTokenCharsMax)]
    const rest = { productId: 'p', basePlanId: 'b', purchaseOptionId: 'o', offerId: 'f', productType: 'subscription' }
    const before = await operations()
    for (const signedTransaction of signed) {
      const purchase = { ...rest, type: 'appstore', signedTransaction }
      const answer = await app.post('/feature/consume', { ...good(), purchase })
      assertRefused(answer, 503, 'app_store_purchase_unavailable')
    }
    for (const purchaseToken of tokens) {
      const purchase = { ...rest, type: 'playstore', purchaseToken }
      const answer = await android.post('/feature/consume', { ...good(), purchase })
      assertRefused(answer, 503, 'android_store_purchase_unavailable')
    }
    assert.equal(await operations(), before)
  })

  test('the deleted customer, the saved operation and the Feature are looked at before', async () => {
    await project.customer('gone')
    await project.tombstone('gone')
    const purchase = appStore
    assertRefused(
      await app.post('/feature/consume', { ...good(), customerId: 'gone', featureId: 'none', purchase }),
      410,
      'customer_deleted',
    )
    const saved = good()
    await app.post('/feature/consume', saved)
    assertRefused(
      await app.post('/feature/consume', { ...saved, featureId: 'none', purchase }),
      409,
      'operation_conflict',
    )
    assertRefused(
      await app.post('/feature/consume', { ...good(), featureId: 'none', purchase }),
      404,
      'feature_not_found',
    )
    const unknown = { ...good(), customerId: 'never seen', purchase }
    assertRefused(await app.post('/feature/consume', unknown), 503, 'app_store_purchase_unavailable')
  })

  test('400: together with set_usage', async () => {
    for (const purchase of [appStore, playStore]) {
      const answer = await app.post('/feature/consume', { ...good(), mode: 'set_usage', purchase })
      assertRefused(answer, 400, 'invalid_request', 'purchase')
    }
  })

  test('400: evidence that is missing, of another store, empty, too long or cannot be stored', async () => {
    const refused = [
      ...[null, 7, 'appstore', [], {}, true, { type: 'appstore' }, { type: 'playstore' }],
      ...[
        { ...appStore, type: 'card' },
        { ...appStore, type: 'playstore' },
        { ...playStore, type: 'appstore' },
      ],
      ...[
        { ...appStore, type: undefined },
        { ...appStore, type: null },
        { ...appStore, type: 'AppStore' },
      ],
      ...['', 7, null, {}, [], 'a\0', '\ud800', 'x'.repeat(2 * 1024 * 1024 + 1), 'é'.repeat(1024 * 1024 + 1)].map(
        (signedTransaction) => ({ ...appStore, signedTransaction }),
      ),
      ...['', 7, null, {}, [], 'a\0', '\ud800', 'x'.repeat(16_385), '😀'.repeat(16_385)].map((purchaseToken) => {
        return { ...playStore, purchaseToken }
      }),
      { ...appStore, purchaseToken: 'x' },
      { ...playStore, signedTransaction: 'x' },
      ...['productId', 'basePlanId', 'purchaseOptionId', 'offerId', 'productType'].flatMap((field) =>
        [7, null, [], {}, true].map((value) => ({ ...playStore, [field]: value })),
      ),
      ...['', 'consumable', 'Subscription'].map((productType) => ({ ...playStore, productType })),
      ...['product_id', 'transaction_jwt', 'package_name', 'extra'].map((field) => ({ ...playStore, [field]: 'x' })),
    ]
    for (const purchase of refused) {
      const { status, body } = await app.post('/feature/consume', { ...good(), purchase })
      assert.equal(status, 400, JSON.stringify(purchase)?.slice(0, 200))
      assert.ok(
        body.issues.every(({ path }: Body) => path.startsWith('purchase')),
        JSON.stringify(body),
      )
    }
  })
})

test('POST /feature/consume, 413: a body of more than 2.25 MiB', async () => {
  const padded = (bytes: number) => JSON.stringify({ apiKey: app.key, ...good() }).padEnd(bytes)
  assert.equal((await app.post('/feature/consume', padded(evidenceBodyBytesMax))).status, 200)
  assertRefused(await app.post('/feature/consume', padded(evidenceBodyBytesMax + 1)), 413, 'payload_too_large')
})
