import assert from 'node:assert/strict'
import test from 'node:test'
import { Unreadable } from './fields.ts'
import { readOneTime } from './one-time.ts'

const now = Date.UTC(2026, 10, 20)
const bought = (state: string, offer: object = {}, more: object = {}) => ({
  purchaseStateContext: { purchaseState: state },
  orderId: 'GPA.7',
  purchaseCompletionTime: '2026-11-19T00:00:00Z',
  productLineItem: [
    { productId: 'coins', productOfferDetails: { purchaseOptionId: 'buy', offerId: 'sale', ...offer } },
  ],
  ...more,
})
const standing = (body: object) => readOneTime(body, now).items.map((item) => item.standing)
const access = { kind: 'access', until: null, isLate: false }

test('each state of a one-time purchase gives what the table says', () => {
  assert.deepEqual(standing(bought('PURCHASED')), [access])
  assert.deepEqual(standing(bought('PENDING')), [{ kind: 'none', detail: 'purchase_pending' }])
  assert.deepEqual(standing(bought('CANCELLED')), [{ kind: 'none', detail: 'purchase_canceled' }])
  assert.deepEqual(standing(bought('PURCHASE_STATE_UNSPECIFIED')), [{ kind: 'unsettled' }])
  assert.deepEqual(standing(bought('OF_TOMORROW')), [{ kind: 'unsettled' }])
  assert.deepEqual(standing({ productLineItem: [{ productId: 'coins' }] }), [{ kind: 'unsettled' }])
})

test('rentals give nothing, preorders nothing before they are released', () => {
  const preorder = { preorderOfferDetails: {} }
  assert.deepEqual(standing(bought('PURCHASED', { rentOfferDetails: {} })), [{ kind: 'none', detail: 'rental' }])
  const unpaid = bought('PURCHASED', preorder, { purchaseCompletionTime: undefined })
  assert.deepEqual(standing(unpaid), [{ kind: 'none', detail: 'preorder' }])
  assert.deepEqual(standing(bought('PURCHASED', preorder)), [access])
})

test('what was refunded whole is bought no more, what was refunded in part is', () => {
  const left = (refundableQuantity: number) =>
    readOneTime(bought('PURCHASED', { quantity: 3, refundableQuantity }), now).items[0]
  assert.deepEqual(left(0)?.standing, { kind: 'none', detail: 'purchase_canceled' })
  assert.equal(left(0)?.isRefunded, true)
  assert.deepEqual([left(1)?.quantity, left(1)?.refundable, left(1)?.isRefunded], [3, 1, false])
  assert.deepEqual(left(1)?.standing, access)
})

test('never more is refundable than was bought; without numbers it is one', () => {
  const of = (offer: object) => {
    const [item] = readOneTime(bought('PURCHASED', offer), now).items
    return [item?.quantity, item?.refundable]
  }
  assert.deepEqual(of({}), [1, 1])
  assert.deepEqual(of({ quantity: 4 }), [4, 4])
  assert.deepEqual(of({ quantity: 2, refundableQuantity: 9 }), [2, 2])
})

test('order, option, tester, account and consumption are read', () => {
  const purchase = readOneTime(
    bought(
      'PURCHASED',
      { consumptionState: 'CONSUMPTION_STATE_CONSUMED' },
      {
        testPurchaseContext: { fopType: 'TEST' },
        obfuscatedExternalAccountId: 'abc',
        acknowledgementState: 'ACKNOWLEDGEMENT_STATE_ACKNOWLEDGED',
      },
    ),
    now,
  )
  assert.deepEqual([purchase.isTest, purchase.accountId, purchase.isAcknowledged], [true, 'abc', true])
  const [item] = purchase.items
  assert.deepEqual(
    [item?.orderId, item?.purchaseOptionId, item?.offerId, item?.isConsumed],
    ['GPA.7', 'buy', 'sale', true],
  )
  // Of a promo code.
  assert.equal(readOneTime(bought('PURCHASED', {}, { orderId: undefined }), now).items[0]?.orderId, null)
})

test('an answer that is no one-time purchase is no verdict', () => {
  const wrong: unknown[] = [
    null,
    7,
    bought('PURCHASED', { quantity: -1 }),
    bought('PURCHASED', { quantity: 1.5 }),
    bought('PURCHASED', { refundableQuantity: '1' }),
    bought('PURCHASED', {}, { purchaseCompletionTime: 'yesterday' }),
    bought('PURCHASED', {}, { productLineItem: 'coins' }),
  ]
  for (const body of wrong) assert.throws(() => readOneTime(body, now), Unreadable, JSON.stringify(body))
})
