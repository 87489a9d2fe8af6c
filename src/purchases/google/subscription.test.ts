import assert from 'node:assert/strict'
import test from 'node:test'
import { Unreadable } from './fields.ts'
import type { Standing } from './purchase.ts'
import { readSubscription } from './subscription.ts'

const now = Date.UTC(2026, 10, 20)
const hour = 3600_000
const at = (ms: number) => new Date(ms).toISOString()
const future = now + hour
const past = now - hour

const line = (more: object = {}) => ({
  productId: 'pro',
  expiryTime: at(future),
  latestSuccessfulOrderId: 'GPA.1',
  autoRenewingPlan: { autoRenewEnabled: true },
  offerDetails: { basePlanId: 'monthly', offerId: 'intro' },
  ...more,
})
const answer = (state: string, lines: object[] = [line()], more: object = {}) => ({
  subscriptionState: `SUBSCRIPTION_STATE_${state}`,
  startTime: at(now - 10 * hour),
  lineItems: lines,
  ...more,
})
const standings = (body: object) => readSubscription(body, now).items.map(({ standing }) => standing)
const open = (until: number, isLate = false): Standing => ({ kind: 'access', until, isLate })
const none = (detail: Extract<Standing, { kind: 'none' }>['detail']): Standing => ({ kind: 'none', detail })
const unsettled: Standing = { kind: 'unsettled' }

test('each state of a subscription gives what the table says, before and after the end of the period', () => {
  const table: [state: string, ahead: Standing, over: Standing][] = [
    ['ACTIVE', open(future), open(past, true)],
    ['IN_GRACE_PERIOD', open(future), unsettled],
    ['CANCELED', open(future), none('expired')],
    ['EXPIRED', none('expired'), none('expired')],
    ['ON_HOLD', none('on_hold'), none('on_hold')],
    ['PAUSED', none('paused'), none('paused')],
    ['PENDING', none('purchase_pending'), none('purchase_pending')],
    ['PENDING_PURCHASE_CANCELED', none('purchase_canceled'), none('purchase_canceled')],
    ['UNSPECIFIED', unsettled, unsettled],
    ['OF_TOMORROW', unsettled, unsettled],
  ]
  for (const [state, ahead, over] of table) {
    assert.deepEqual(standings(answer(state)), [ahead], state)
    assert.deepEqual(standings(answer(state, [line({ expiryTime: at(past) })])), [over], `${state}, past`)
  }
})

test('the end of a period is not in it', () => {
  const ends = (ms: number) => standings(answer('CANCELED', [line({ expiryTime: at(ms) })]))
  assert.deepEqual(ends(now + 1), [open(now + 1)])
  assert.deepEqual(ends(now), [none('expired')])
})

test('an item that ended while another runs on has ended; when all of them ended the renewal is late', () => {
  const two = (first: number, second: number) =>
    standings(
      answer('ACTIVE', [
        line({ expiryTime: at(first) }),
        line({ productId: 'extra', expiryTime: at(second), latestSuccessfulOrderId: 'GPA.2' }),
      ]),
    )
  assert.deepEqual(two(past, future), [none('expired'), open(future)])
  assert.deepEqual(two(past, past), [open(past, true), open(past, true)])
})

test('what a deferred change will bring is not owned yet', () => {
  const coming = { productId: 'max', offerDetails: { basePlanId: 'monthly' } }
  const bare = readSubscription(
    answer('ACTIVE', [line({ deferredItemReplacement: { productId: 'max' } }), coming]),
    now,
  )
  assert.deepEqual(
    bare.items.map(({ productId }) => productId),
    ['pro'],
  )
  // Even when the store gives it an end and an order already.
  const whole = readSubscription(
    answer('ACTIVE', [line({ deferredItemReplacement: { productId: 'max' } }), line({ productId: 'max' })]),
    now,
  )
  assert.deepEqual(
    whole.items.map(({ productId }) => productId),
    ['pro'],
  )
})

test('a promo code needs no order, everything else does', () => {
  const { latestSuccessfulOrderId: _, ...free } = line()
  const promo = readSubscription(answer('ACTIVE', [{ ...free, signupPromotion: { vanityCode: {} } }, line()]), now)
  assert.deepEqual(
    promo.items.map(({ orderId }) => orderId),
    [null, 'GPA.1'],
  )
  const unpaid = readSubscription(answer('ACTIVE', [free, line()]), now)
  assert.equal(unpaid.items.length, 1)
})

test('a pending purchase says what is being bought though nothing is owned', () => {
  const { items } = readSubscription(answer('PENDING', [{ productId: 'pro' }]), now)
  assert.deepEqual(
    items.map(({ productId, standing }) => [productId, standing]),
    [['pro', none('purchase_pending')]],
  )
})

test('an active subscription without an end is not settled', () => {
  assert.deepEqual(standings(answer('ACTIVE', [{ productId: 'pro', latestSuccessfulOrderId: 'GPA.1' }])), [unsettled])
})

test('who bought it, what it replaces and where it was bought are read', () => {
  const purchase = readSubscription(
    answer('ACTIVE', [line({ prepaidPlan: {}, autoRenewingPlan: undefined })], {
      testPurchase: {},
      linkedPurchaseToken: 'older',
      acknowledgementState: 'ACKNOWLEDGEMENT_STATE_ACKNOWLEDGED',
      externalAccountIdentifiers: { obfuscatedExternalAccountId: 'abc' },
      outOfAppPurchaseContext: {
        expiredPurchaseToken: 'ended',
        expiredExternalAccountIdentifiers: { obfuscatedExternalAccountId: 'def' },
      },
    }),
    now,
  )
  const { items, ...rest } = purchase
  assert.deepEqual(rest, {
    kind: 'subscription',
    status: 'active',
    isTest: true,
    accountId: 'abc',
    linkedToken: 'older',
    outOfApp: { accountId: 'def', token: 'ended' },
    isAcknowledged: true,
    startsAt: now - 10 * hour,
  })
  assert.deepEqual(
    items.map(({ basePlanId, offerId, isPrepaid, autoRenews, expiresAt }) => ({
      ...{ basePlanId, offerId, isPrepaid, autoRenews, expiresAt },
    })),
    [{ basePlanId: 'monthly', offerId: 'intro', isPrepaid: true, autoRenews: null, expiresAt: future }],
  )
})

test('instants carry up to nine decimals', () => {
  const { items } = readSubscription(answer('ACTIVE', [line({ expiryTime: '2026-12-01T10:00:00.123456789Z' })]), now)
  assert.equal(items[0]?.expiresAt, Date.UTC(2026, 11, 1, 10, 0, 0, 123))
})

test('an answer that is no subscription is no verdict', () => {
  const wrong: unknown[] = [
    null,
    'text',
    [],
    answer('ACTIVE', [line({ expiryTime: 'tomorrow' })]),
    answer('ACTIVE', [line({ expiryTime: 5 })]),
    answer('ACTIVE', [line({ productId: 7 })]),
    answer('ACTIVE', [line({ productId: undefined })]),
    answer('ACTIVE', [line({ offerDetails: 'monthly' })]),
    { ...answer('ACTIVE'), lineItems: {} },
    { ...answer('ACTIVE'), linkedPurchaseToken: {} },
    answer(
      'ACTIVE',
      Array.from({ length: 101 }, () => line()),
    ),
  ]
  for (const body of wrong)
    assert.throws(() => readSubscription(body, now), Unreadable, JSON.stringify(body)?.slice(0, 80))
  assert.equal(
    readSubscription(
      answer(
        'ACTIVE',
        Array.from({ length: 100 }, () => line()),
      ),
      now,
    ).items.length,
    100,
  )
})
