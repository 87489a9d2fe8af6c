import assert from 'node:assert/strict'
import test from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { bundle, noon, openReceiver, openSim, playAssertion, playNotices, postAssertion } from './sim.ts'

const subscriptions = '/purchases/subscriptionsv2/tokens'
const products = '/purchases/productsv2/tokens'

test('a bearer is given for an assertion that is right in every part', async () => {
  await using sim = await openSim()
  const tokenUri = sim.config.playstore.service_account.token_uri
  assert.equal(tokenUri, `${sim.url}/play/token`)
  const now = Math.floor(Date.now() / 1000)
  const wrong = [
    { iss: 'somebody' },
    { aud: 'https://oauth2.googleapis.com/token' },
    { scope: 'other' },
    { exp: now - 1 },
    { iat: now + 600, exp: now + 900 },
    { exp: now + 4000 },
  ]
  for (const changes of wrong) {
    const { status, body } = await postAssertion(await playAssertion(sim.config, changes), tokenUri)
    assert.equal(status, 400, JSON.stringify(changes))
    assert.match(body.error, /^invalid_/)
  }
  const good = await postAssertion(await playAssertion(sim.config), tokenUri)
  assert.deepEqual([good.status, good.body.token_type, good.body.expires_in], [200, 'Bearer', 3600])
  const path = `/play/androidpublisher/v3/applications/${bundle}/purchases/voidedpurchases`
  assert.equal((await sim.call('GET', path)).status, 401)
  assert.equal((await sim.call('GET', path, undefined, { authorization: 'Bearer ya29.other' })).status, 401)
})

test('a subscription is read as Google writes it', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly', accountToken: 'a'.repeat(64) })
  assert.deepEqual(held.purchase, {
    type: 'playstore',
    purchase_token: held.purchaseToken,
    product_id: 'pro_monthly',
    product_type: 'subscription',
    base_plan_id: 'monthly',
    package_name: bundle,
  })
  const { status, body } = await sim.play('GET', `${subscriptions}/${held.purchaseToken}`)
  assert.equal(status, 200)
  const { etag, ...rest } = body
  assert.ok(etag.length > 0)
  assert.deepEqual(rest, {
    kind: 'androidpublisher#subscriptionPurchaseV2',
    regionCode: 'US',
    startTime: '2027-01-15T12:00:00.000Z',
    subscriptionState: 'SUBSCRIPTION_STATE_ACTIVE',
    latestOrderId: held.orderId,
    testPurchase: {},
    acknowledgementState: 'ACKNOWLEDGEMENT_STATE_PENDING',
    externalAccountIdentifiers: { obfuscatedExternalAccountId: 'a'.repeat(64) },
    lineItems: [
      {
        productId: 'pro_monthly',
        expiryTime: '2027-02-15T12:00:00.000Z',
        latestSuccessfulOrderId: held.orderId,
        autoRenewingPlan: {
          autoRenewEnabled: true,
          recurringPrice: { currencyCode: 'USD', units: '9', nanos: 990_000_000 },
        },
        offerDetails: { basePlanId: 'monthly' },
      },
    ],
  })
})

test('a one-time product is read in both ways, acknowledged once and consumed once', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'coins_100', quantity: 3, test: false })
  const { body } = await sim.play('GET', `${products}/${held.purchaseToken}`)
  assert.deepEqual(body.productLineItem[0].productOfferDetails, {
    purchaseOptionId: 'buy',
    quantity: 3,
    refundableQuantity: 3,
    consumptionState: 'CONSUMPTION_STATE_YET_TO_BE_CONSUMED',
  })
  assert.equal(body.purchaseStateContext.purchaseState, 'PURCHASED')
  assert.equal(body.testPurchaseContext, undefined)
  const old = `/purchases/products/coins_100/tokens/${held.purchaseToken}`
  assert.equal((await sim.play('GET', old)).body.quantity, 3)
  assert.equal((await sim.play('GET', old.replace('coins_100', 'lifetime'))).status, 400)
  assert.equal((await sim.play('POST', `${old}:acknowledge`)).status, 200)
  assert.equal((await sim.play('POST', `${old}:acknowledge`)).status, 400)
  assert.equal(
    (await sim.call('POST', '/sim/playstore/purchases', { account: 'ann', productId: 'coins_100' })).status,
    409,
  )
  assert.equal((await sim.play('POST', `${old}:consume`)).status, 200)
  assert.equal((await sim.play('POST', `${old}:consume`)).status, 400)
  assert.equal((await sim.play('GET', old)).body.consumptionState, 1)
  await sim.buyPlay({ productId: 'coins_100' })
})

test('a token of 16,384 characters is read, acknowledged and told like any other', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly', tokenLength: 16_384 })
  assert.equal(held.purchaseToken.length, 16_384)
  const token = encodeURIComponent(held.purchaseToken)
  assert.equal((await sim.play('GET', `${subscriptions}/${token}`)).status, 200)
  assert.equal((await sim.play('POST', `/purchases/subscriptions/pro_monthly/tokens/${token}:acknowledge`)).status, 200)
  const longer = await sim.call('POST', '/sim/playstore/purchases', {
    account: 'ben',
    productId: 'pro_monthly',
    tokenLength: 16_385,
  })
  assert.equal(longer.status, 400)
})

test('what is not acknowledged in time is refunded, revoked and listed as voided', async () => {
  await using sim = await openSim()
  const tester = await sim.buyPlay({ productId: 'coins_100' })
  const real = await sim.buyPlay({ account: 'ben', productId: 'pro_monthly', test: false })
  await sim.move('PT2M59S')
  const stateOf = async () => (await sim.play('GET', `${products}/${tester.purchaseToken}`)).body.purchaseStateContext
  assert.equal((await stateOf()).purchaseState, 'PURCHASED')
  await sim.move('PT1S')
  assert.equal((await stateOf()).purchaseState, 'CANCELLED')
  await sim.move('P2DT23H57M')
  const { body } = await sim.play('GET', `${subscriptions}/${real.purchaseToken}`)
  assert.equal(body.subscriptionState, 'SUBSCRIPTION_STATE_EXPIRED')
  const list = async (query: string) =>
    (await sim.play('GET', `/purchases/voidedpurchases${query}`)).body.voidedPurchases ?? []
  const voided = await list('?type=1')
  assert.deepEqual(
    voided.map(({ orderId, voidedSource, voidedReason }: Record<string, unknown>) => [
      orderId,
      voidedSource,
      voidedReason,
    ]),
    [
      [tester.orderId, 2, 8],
      [real.orderId, 2, 8],
    ],
  )
  assert.equal((await list('')).length, 1, 'subscriptions only when asked for')
})

test('prepaid plans shorter than a week leave half their time to acknowledge', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly', basePlanId: 'prepaid-days', test: false })
  const state = async () => (await sim.play('GET', `${subscriptions}/${held.purchaseToken}`)).body.subscriptionState
  await sim.move('PT35H59M')
  assert.equal(await state(), 'SUBSCRIPTION_STATE_ACTIVE')
  await sim.move('PT1M')
  assert.equal(await state(), 'SUBSCRIPTION_STATE_EXPIRED')
})

test('voided purchases come in pages, partial refunds only when asked for', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'coins_100', quantity: 3 })
  await sim.verb(held, 'refund', { mode: 'quantity', quantity: 1 })
  await sim.verb(await sim.buyPlay({ account: 'ben', productId: 'coins_100' }), 'refund')
  await sim.verb(await sim.buyPlay({ account: 'cleo', productId: 'coins_100' }), 'refund')
  const list = async (query: string) => (await sim.play('GET', `/purchases/voidedpurchases?${query}`)).body
  assert.equal((await list('')).voidedPurchases.length, 2)
  const partial = await list('includeQuantityBasedPartialRefund=true&maxResults=2')
  assert.equal(partial.voidedPurchases[0].voidedQuantity, 1)
  const rest = await list(
    `includeQuantityBasedPartialRefund=true&maxResults=2&token=${partial.tokenPagination.nextPageToken}`,
  )
  assert.equal(rest.voidedPurchases.length, 1)
  assert.equal(rest.tokenPagination, undefined)
  assert.equal((await list(`startTime=${noon + 1}`)).voidedPurchases, undefined)
})

test('orders are read, read together, and refunded with or without revoking', async () => {
  await using sim = await openSim()
  const one = await sim.buyPlay({ productId: 'pro_monthly' })
  const two = await sim.buyPlay({ account: 'ben', productId: 'pro_monthly' })
  const { body } = await sim.play('GET', `/orders/${one.orderId}`)
  assert.deepEqual([body.state, body.purchaseToken], ['PROCESSED', one.purchaseToken])
  const both = await sim.play('GET', `/orders:batchGet?orderIds=${one.orderId}&orderIds=${two.orderId}`)
  assert.equal(both.body.orders.length, 2)
  assert.equal((await sim.play('POST', `/orders/${one.orderId}:refund`)).status, 200)
  assert.equal((await sim.play('POST', `/orders/${one.orderId}:refund`)).status, 400)
  assert.equal((await sim.play('POST', `/orders/${two.orderId}:refund?revoke=true`)).status, 200)
  const state = async (token: string) => (await sim.play('GET', `${subscriptions}/${token}`)).body.subscriptionState
  assert.equal(await state(one.purchaseToken), 'SUBSCRIPTION_STATE_ACTIVE')
  assert.equal(await state(two.purchaseToken), 'SUBSCRIPTION_STATE_EXPIRED')
  assert.equal((await sim.play('GET', '/orders/GPA.0')).status, 404)
})

test('the service may cancel, revoke and defer', async () => {
  await using sim = await openSim()
  const held = await sim.buyPlay({ productId: 'pro_monthly' })
  const path = `${subscriptions}/${held.purchaseToken}`
  const deferred = await sim.play('POST', `${path}:defer`, { deferralContext: { deferDuration: '864000s' } })
  assert.equal(deferred.body.itemExpiryTimeDetails[0].expiryTime, '2027-02-25T12:00:00.000Z')
  assert.equal((await sim.play('POST', `${path}:defer`, { deferralContext: { deferDuration: '10s' } })).status, 400)
  assert.equal((await sim.play('POST', `${path}:cancel`)).status, 200)
  const canceled = (await sim.play('GET', path)).body
  assert.equal(canceled.subscriptionState, 'SUBSCRIPTION_STATE_CANCELED')
  assert.deepEqual(canceled.canceledStateContext, { developerInitiatedCancellation: {} })
  assert.equal((await sim.play('POST', `${path}:revoke`)).status, 200)
  assert.equal((await sim.play('GET', path)).body.subscriptionState, 'SUBSCRIPTION_STATE_EXPIRED')
})

test('unknown tokens, other packages and long dead purchases have answers of their own', async () => {
  await using sim = await openSim()
  assert.equal((await sim.play('GET', `${subscriptions}/nothing`)).status, 404)
  const held = await sim.buyPlay({ productId: 'pro_monthly', test: false })
  const path = `${subscriptions}/${held.purchaseToken}`
  assert.equal((await sim.play('GET', `${products}/${held.purchaseToken}`)).status, 400)
  await using receiver = await openReceiver()
  await sim.control('PUT', '/sim/targets', { store: 'playstore', app: 'com.example.other', url: receiver.url })
  const foreign = await sim.control('POST', '/sim/playstore/purchases', {
    app: 'com.example.other',
    account: 'x',
    productId: 'pro_monthly',
  })
  assert.equal((await sim.play('GET', `${subscriptions}/${foreign.purchaseToken}`)).status, 400)
  await sim.verb(held, 'expire')
  await sim.move('P60D')
  assert.equal((await sim.play('GET', path)).status, 200)
  await sim.move('PT1S')
  const dead = await sim.play('GET', path)
  assert.equal(dead.status, 410)
  assert.equal(dead.body.error.errors[0].reason, 'subscriptionPurchaseNoLongerAvailable')
})

test('pushes carry a bearer that the published keys verify, and come again until they are taken', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  const audience = 'https://service.example/push'
  await sim.control('PUT', '/sim/targets', { store: 'playstore', app: bundle, url: receiver.url, audience })
  receiver.status = 503
  const held = await sim.buyPlay({ productId: 'pro_monthly', test: false })
  await sim.move('PT10S')
  receiver.status = 204
  await sim.move('PT20S')
  await sim.move('P1D')
  assert.equal(receiver.received.length, 3)
  const keys = createLocalJWKSet((await sim.call('GET', '/play/oauth2/v3/certs')).body)
  for (const { headers } of receiver.received) {
    const { payload } = await jwtVerify(String(headers.authorization).replace('Bearer ', ''), keys, {
      audience,
      issuer: 'https://accounts.google.com',
      algorithms: ['RS256'],
    })
    assert.deepEqual([payload.email, payload.email_verified], [sim.config.playstore.push_email, true])
  }
  const [first, , last] = receiver.received.map(({ body }) => body)
  assert.equal(first.message.messageId, last.message.messageId)
  assert.equal(first.subscription, `projects/store-sim/subscriptions/${bundle}`)
  const [notice] = playNotices(receiver)
  assert.deepEqual(notice, {
    version: '1.0',
    packageName: bundle,
    eventTimeMillis: String(noon),
    subscriptionNotification: {
      version: '1.0',
      notificationType: 4,
      purchaseToken: held.purchaseToken,
      subscriptionId: 'pro_monthly',
    },
  })
  await sim.control('POST', '/sim/playstore/test-notification', {})
  assert.deepEqual(playNotices(receiver).at(-1).testNotification, { version: '1.0' })
})
