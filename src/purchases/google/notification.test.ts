import assert from 'node:assert/strict'
import test from 'node:test'
import { readPush, withoutToken } from './notification.ts'

const push = (data: unknown, more: object = {}) => ({
  message: { messageId: '1', data: Buffer.from(JSON.stringify(data)).toString('base64'), ...more },
  subscription: 'projects/p/subscriptions/s',
})
const about = (notification: object) => ({
  version: '1.0',
  packageName: 'app.example',
  eventTimeMillis: '1000',
  ...notification,
})
const read = (data: unknown) => readPush(push(data))?.message?.notification

test('a notification of a subscription means its token, whatever its number', () => {
  for (const notificationType of [1, 2, 13, 99, undefined]) {
    assert.deepEqual(read(about({ subscriptionNotification: { notificationType, purchaseToken: 't' } })), {
      ...{ kind: 'purchase', name: `subscription ${Number(notificationType)}`, token: 't', bought: 'subscription' },
    })
  }
})

test('notifications of one-time products and of voided purchases name theirs', () => {
  const once = read(about({ oneTimeProductNotification: { notificationType: 1, purchaseToken: 't', sku: 'coins' } }))
  assert.deepEqual(once, { kind: 'purchase', name: 'one_time 1', token: 't', bought: 'one_time' })
  const voided = (more: object) =>
    read(about({ voidedPurchaseNotification: { purchaseToken: 't', orderId: 'GPA.1', ...more } }))
  const whole = { kind: 'voided', name: 'voidedPurchaseNotification', token: 't', orderId: 'GPA.1', at: 1000 }
  assert.deepEqual(voided({ productType: 1, refundType: 1 }), { ...whole, bought: 'subscription', isWhole: true })
  assert.deepEqual(voided({ productType: 2, refundType: 2 }), { ...whole, bought: 'one_time', isWhole: false })
  assert.deepEqual(voided({ orderId: undefined }), { ...whole, bought: null, orderId: null, isWhole: true })
})

test('tests and what nobody knows yet are stored by their name', () => {
  assert.deepEqual(read(about({ testNotification: { version: '1.0' } })), { kind: 'other', name: 'testNotification' })
  assert.deepEqual(read(about({ ofTomorrowNotification: {} })), { kind: 'other', name: 'ofTomorrowNotification' })
  assert.deepEqual(read(about({})), { kind: 'other', name: 'unknown' })
})

test('what is no push at all is told apart from a push that cannot be read', () => {
  const none: unknown[] = [null, {}, { message: {} }, { message: { messageId: '1' } }, { ...push({}), subscription: 7 }]
  for (const body of [...none, push({}, { messageId: '' }), push({}, { messageId: 'm'.repeat(256) })]) {
    assert.equal(readPush(body), null, JSON.stringify(body))
  }
  assert.equal(readPush(push({}, { messageId: 'm'.repeat(255) }))?.messageId.length, 255)
  const unreadable: unknown[] = [
    7,
    [],
    {},
    about({ subscriptionNotification: {} }),
    about({ voidedPurchaseNotification: {} }),
  ]
  for (const data of unreadable) assert.equal(readPush(push(data))?.message, null, JSON.stringify(data))
  assert.equal(readPush(push({}, { data: '%%%' }))?.message, null)
  assert.equal(readPush(push({}, { data: 5 }))?.message, null)
})

test('a token may have 16,384 characters and no more', () => {
  const of = (length: number) => read(about({ subscriptionNotification: { purchaseToken: 't'.repeat(length) } }))
  assert.equal(of(16_384)?.kind, 'purchase')
  assert.equal(of(16_385), undefined)
})

test('what is stored in the open has no token', () => {
  const stored = withoutToken({ kind: 'purchase', name: 'subscription 4', token: 'secret', bought: 'subscription' })
  assert.deepEqual(stored, { kind: 'purchase', name: 'subscription 4', bought: 'subscription' })
})
