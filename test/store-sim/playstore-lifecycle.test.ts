import assert from 'node:assert/strict'
import test from 'node:test'
import { type Body, bundle, openReceiver, openSim, playNotices, type Receiver, type Simulator } from './sim.ts'

async function openBoth() {
  const stack = new AsyncDisposableStack()
  const sim = stack.use(await openSim())
  const receiver = stack.use(await openReceiver())
  await sim.control('PUT', '/sim/targets', { store: 'playstore', app: bundle, url: receiver.url })
  return { sim, receiver, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

function subscriptionNotices(receiver: Receiver): number[] {
  return playNotices(receiver).flatMap(({ subscriptionNotification: one }) =>
    one === undefined ? [] : [one.notificationType],
  )
}

async function read(sim: Simulator, { purchaseToken }: Body): Promise<Body> {
  return (await sim.play('GET', `/purchases/subscriptionsv2/tokens/${purchaseToken}`)).body
}

async function stateAndEnd(sim: Simulator, held: Body): Promise<[string, string]> {
  const { subscriptionState, lineItems } = await read(sim, held)
  return [subscriptionState.replace('SUBSCRIPTION_STATE_', ''), lineItems[0].expiryTime]
}

async function buyAcknowledged(sim: Simulator, purchase: object = {}): Promise<Body> {
  const held = await sim.buyPlay({ productId: 'pro_monthly', ...purchase })
  const path = `/purchases/subscriptions/${held.productId}/tokens/${held.purchaseToken}:acknowledge`
  assert.equal((await sim.play('POST', path)).status, 200)
  return held
}

test('bought, renewed, grace whose end moves day by day, hold, recovery', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.move('P1M')
  const renewed = await read(sim, held)
  assert.equal(renewed.latestOrderId, `${held.orderId}..0`)
  await sim.verb(held, 'fail-billing')
  await sim.move('P1M')
  assert.deepEqual(await stateAndEnd(sim, held), ['IN_GRACE_PERIOD', '2027-03-16T12:00:00.000Z'])
  await sim.move('P3D')
  assert.deepEqual(await stateAndEnd(sim, held), ['IN_GRACE_PERIOD', '2027-03-19T12:00:00.000Z'])
  await sim.move('P4D')
  assert.deepEqual(await stateAndEnd(sim, held), ['ON_HOLD', '2027-03-22T12:00:00.000Z'])
  await sim.move('P2D')
  await sim.verb(held, 'recover')
  assert.deepEqual(await stateAndEnd(sim, held), ['ACTIVE', '2027-04-24T12:00:00.000Z'])
  assert.deepEqual(subscriptionNotices(receiver), [4, 2, 6, 5, 1])
})

test('a recovery in grace keeps the billing day; a hold without end is cancelled and expires', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.verb(held, 'fail-billing')
  await sim.move('P33D')
  await sim.verb(held, 'recover')
  assert.deepEqual(await stateAndEnd(sim, held), ['ACTIVE', '2027-03-15T12:00:00.000Z'])
  await sim.verb(held, 'fail-billing')
  await sim.move('P3M')
  assert.equal((await stateAndEnd(sim, held))[0], 'EXPIRED')
  assert.deepEqual(subscriptionNotices(receiver), [4, 6, 2, 6, 5, 3, 13])
})

test('renewals at the end of a month shift for good', async () => {
  await using sim = await openSim({ clock: { mode: 'manual', at: Date.parse('2027-01-31T12:00:00Z') } })
  const held = await buyAcknowledged(sim)
  assert.equal((await stateAndEnd(sim, held))[1], '2027-02-28T12:00:00.000Z')
  await sim.move('P1M')
  assert.equal((await stateAndEnd(sim, held))[1], '2027-03-28T12:00:00.000Z')
})

test('cancelled, it stays until the period ends, and can be restarted before', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.verb(held, 'cancel')
  assert.deepEqual(await stateAndEnd(sim, held), ['CANCELED', '2027-02-15T12:00:00.000Z'])
  await sim.verb(held, 'restart')
  assert.equal((await stateAndEnd(sim, held))[0], 'ACTIVE')
  await sim.verb(held, 'cancel')
  await sim.move('P1M')
  assert.equal((await stateAndEnd(sim, held))[0], 'EXPIRED')
  assert.deepEqual(subscriptionNotices(receiver), [4, 3, 7, 3, 13])
})

test('a pause begins when the period ends and resumes by itself', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.verb(held, 'pause', { days: 10 })
  assert.equal((await stateAndEnd(sim, held))[0], 'ACTIVE')
  await sim.move('P1M')
  const paused = await read(sim, held)
  assert.equal(paused.subscriptionState, 'SUBSCRIPTION_STATE_PAUSED')
  assert.deepEqual(paused.pausedStateContext, { autoResumeTime: '2027-02-25T12:00:00.000Z' })
  await sim.move('P10D')
  assert.deepEqual(await stateAndEnd(sim, held), ['ACTIVE', '2027-03-25T12:00:00.000Z'])
  assert.deepEqual(subscriptionNotices(receiver), [4, 11, 10, 1])
})

test('no plan is changed before the purchase is acknowledged; then a new token names the old, and both read ACTIVE', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly', accountToken: 'b'.repeat(64), test: false })
  const refused = await sim.call('POST', `/sim/playstore/purchases/${held.id}/upgrade`, {
    productId: 'premium_monthly',
  })
  assert.equal(refused.body.error.code, 'not_acknowledged')
  await sim.play('POST', `/purchases/subscriptions/pro_monthly/tokens/${held.purchaseToken}:acknowledge`)
  const next = await sim.verb(held, 'upgrade', { productId: 'premium_monthly' })
  assert.notEqual(next.purchaseToken, held.purchaseToken)
  const read2 = await read(sim, next)
  assert.equal(read2.linkedPurchaseToken, held.purchaseToken)
  assert.equal(read2.externalAccountIdentifiers.obfuscatedExternalAccountId, 'b'.repeat(64))
  assert.equal(read2.acknowledgementState, 'ACKNOWLEDGEMENT_STATE_PENDING')
  assert.equal((await stateAndEnd(sim, held))[0], 'ACTIVE')
  await sim.move('PT1M')
  const old = await read(sim, held)
  assert.equal(old.subscriptionState, 'SUBSCRIPTION_STATE_EXPIRED')
  assert.deepEqual(old.canceledStateContext, { replacementCancellation: {} })
  assert.equal((await stateAndEnd(sim, next))[0], 'ACTIVE')
})

test('a downgrade is deferred: the new item is not owned before the period ends', async () => {
  await using sim = await openSim()
  const held = await buyAcknowledged(sim, { productId: 'premium_monthly' })
  const next = await sim.verb(held, 'downgrade', { productId: 'pro_monthly' })
  await sim.play('POST', `/purchases/subscriptions/pro_monthly/tokens/${next.purchaseToken}:acknowledge`)
  const [old, planned] = (await read(sim, next)).lineItems
  assert.deepEqual(old.deferredItemReplacement, { productId: 'pro_monthly' })
  assert.equal(old.expiryTime, '2027-02-15T12:00:00.000Z')
  assert.deepEqual(
    [planned.productId, planned.expiryTime, planned.latestSuccessfulOrderId],
    ['pro_monthly', undefined, undefined],
  )
  await sim.move('P1M')
  const after = (await read(sim, next)).lineItems
  assert.deepEqual(
    after.map((item: Body) => [item.productId, item.expiryTime]),
    [['pro_monthly', '2027-03-15T12:00:00.000Z']],
  )
})

test('a top-up of a prepaid plan is a new linked token with its time added', async () => {
  await using sim = await openSim()
  const plan = { productId: 'pro_monthly', basePlanId: 'prepaid-month' }
  const held = await buyAcknowledged(sim, plan)
  await sim.move('P10D')
  const more = await buyAcknowledged(sim, plan)
  assert.deepEqual(await stateAndEnd(sim, more), ['ACTIVE', '2027-03-15T12:00:00.000Z'])
  assert.equal((await read(sim, more)).linkedPurchaseToken, held.purchaseToken)
  assert.ok((await read(sim, more)).lineItems[0].prepaidPlan)
  await sim.move('P2M')
  assert.equal((await stateAndEnd(sim, more))[0], 'EXPIRED')
})

test('subscribed again outside the app, only the context names the buyer, and only until it is acknowledged', async () => {
  await using sim = await openSim()
  const held = await buyAcknowledged(sim, { accountToken: 'c'.repeat(64) })
  await sim.verb(held, 'expire')
  const again = await sim.verb(held, 'resubscribe', { in_app: false })
  const before = await read(sim, again)
  assert.equal(before.linkedPurchaseToken, undefined)
  assert.equal(before.externalAccountIdentifiers, undefined)
  assert.deepEqual(before.outOfAppPurchaseContext, {
    expiredPurchaseToken: held.purchaseToken,
    expiredExternalAccountIdentifiers: { obfuscatedExternalAccountId: 'c'.repeat(64) },
  })
  await sim.play('POST', `/purchases/subscriptions/pro_monthly/tokens/${again.purchaseToken}:acknowledge`)
  assert.equal((await read(sim, again)).outOfAppPurchaseContext, undefined)
})

test('pending purchases grant nothing; they complete, or are cancelled', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyPlay({ productId: 'pro_monthly', pending: true })
  const pending = await read(sim, held)
  assert.equal(pending.subscriptionState, 'SUBSCRIPTION_STATE_PENDING')
  assert.equal(pending.lineItems[0].expiryTime, undefined)
  await sim.move('P1D')
  await sim.verb(held, 'complete-pending')
  assert.deepEqual(await stateAndEnd(sim, held), ['ACTIVE', '2027-02-16T12:00:00.000Z'])
  const other = await sim.buyPlay({ account: 'ben', productId: 'pro_monthly', pending: true })
  await sim.verb(other, 'cancel')
  assert.equal((await read(sim, other)).subscriptionState, 'SUBSCRIPTION_STATE_PENDING_PURCHASE_CANCELED')
  assert.deepEqual(subscriptionNotices(receiver), [4, 20])
  const coins = await sim.buyPlay({ productId: 'coins_100', pending: true })
  await sim.verb(coins, 'cancel')
  assert.equal(playNotices(receiver).at(-1).oneTimeProductNotification.notificationType, 2)
})

test('a refund leaves a subscription ACTIVE and says so; part of a one-time purchase can be refunded', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.verb(held, 'refund')
  assert.equal((await stateAndEnd(sim, held))[0], 'ACTIVE')
  assert.deepEqual(playNotices(receiver).at(-1).voidedPurchaseNotification, {
    purchaseToken: held.purchaseToken,
    orderId: held.orderId,
    productType: 1,
    refundType: 1,
  })
  const coins = await sim.buyPlay({ productId: 'coins_100', quantity: 3 })
  await sim.verb(coins, 'refund', { mode: 'quantity', quantity: 2 })
  assert.equal(playNotices(receiver).at(-1).voidedPurchaseNotification.refundType, 2)
  const { body } = await sim.play('GET', `/purchases/productsv2/tokens/${coins.purchaseToken}`)
  assert.equal(body.productLineItem[0].productOfferDetails.refundableQuantity, 1)
  assert.equal(body.purchaseStateContext.purchaseState, 'PURCHASED')
})

test('add-ons share the token and the period', async () => {
  await using sim = await openSim()
  const held = await buyAcknowledged(sim, { addOns: ['extra_storage'] })
  const { lineItems } = await read(sim, held)
  assert.deepEqual(
    lineItems.map((item: Body) => item.productId),
    ['pro_monthly', 'extra_storage'],
  )
  assert.equal(new Set(lineItems.map((item: Body) => item.expiryTime)).size, 1)
})

test('a preorder is promised, and paid when it is released', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyPlay({ productId: 'lifetime', purchaseOptionId: 'preorder' })
  const look = async () => (await sim.play('GET', `/purchases/productsv2/tokens/${held.purchaseToken}`)).body
  const promised = await look()
  assert.deepEqual(promised.productLineItem[0].productOfferDetails.preorderOfferDetails, {})
  assert.deepEqual(
    [promised.purchaseStateContext.purchaseState, promised.purchaseCompletionTime],
    ['PURCHASED', undefined],
  )
  const before = receiver.received.length
  await sim.verb(held, 'release')
  assert.ok((await look()).purchaseCompletionTime)
  assert.equal(receiver.received.length, before + 1)
  const again = await sim.call('POST', `/sim/playstore/purchases/${held.id}/release`, {})
  assert.equal(again.status, 409)
})

test('a promo code pays the first period: there is no order before the renewal', async () => {
  await using sim = await openSim()
  const held = await buyAcknowledged(sim, { promoCode: true })
  const [first] = (await read(sim, held)).lineItems
  assert.deepEqual([first.latestSuccessfulOrderId, first.signupPromotion], [undefined, { oneTimeCode: {} }])
  await sim.move('P1M')
  const [next] = (await read(sim, held)).lineItems
  assert.deepEqual([typeof next.latestSuccessfulOrderId, next.signupPromotion], ['string', undefined])
})

test('a price that was agreed to is charged from the next renewal on', async () => {
  await using sim = await openSim()
  const held = await buyAcknowledged(sim)
  const planOf = async () => (await read(sim, held)).lineItems[0].autoRenewingPlan
  await sim.verb(held, 'price-increase', { price: '15', accepted: true })
  const agreed = await planOf()
  assert.deepEqual([agreed.priceChangeDetails.priceChangeState, agreed.recurringPrice.units], ['CONFIRMED', '9'])
  await sim.move('P1M')
  const applied = await planOf()
  assert.deepEqual([applied.priceChangeDetails.priceChangeState, applied.recurringPrice.units], ['APPLIED', '15'])
})

test('on request it tells of any number, answers with a state that nobody knows, and has forgotten a token', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await buyAcknowledged(sim)
  await sim.verb(held, 'notify', { number: 999 })
  assert.equal(subscriptionNotices(receiver).at(-1), 999)
  await sim.control('POST', '/sim/playstore/test-notification', { name: 'ofTomorrowNotification' })
  assert.deepEqual(playNotices(receiver).at(-1).ofTomorrowNotification, { version: '1.0' })
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'unknown_state', count: 1 }] })
  assert.equal((await read(sim, held)).subscriptionState, 'SUBSCRIPTION_STATE_OF_TOMORROW')
  assert.equal((await read(sim, held)).subscriptionState, 'SUBSCRIPTION_STATE_ACTIVE')
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'dead_token', count: 1 }] })
  const dead = await sim.play('GET', `/purchases/subscriptionsv2/tokens/${held.purchaseToken}`)
  assert.deepEqual([dead.status, dead.body.error.status], [400, 'FAILED_PRECONDITION'])
})
