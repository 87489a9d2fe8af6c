import assert from 'node:assert/strict'
import { createPrivateKey, randomUUID } from 'node:crypto'
import test from 'node:test'
import { decodeJwt, SignJWT } from 'jose'
import { appleLabels, bundle, openReceiver, openSim, type Receiver, type Simulator } from './sim.ts'

const product = (name: string) => `com.example.demo.${name}`
const monthly = product('pro_monthly')

/** A simulator whose notifications arrive, and what the newest one says. */
async function openBoth() {
  const stack = new AsyncDisposableStack()
  const sim = stack.use(await openSim())
  const receiver = stack.use(await openReceiver())
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  return { sim, receiver, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

function newest({ received }: Receiver) {
  const payload = decodeJwt(received.at(-1)?.body.signedPayload)
  // biome-ignore lint/suspicious/noExplicitAny: a test reads claims of many shapes
  const data = payload.data as any
  return {
    payload,
    data,
    transaction: decodeJwt(data.signedTransactionInfo),
    renewal: data.signedRenewalInfo === undefined ? null : decodeJwt(data.signedRenewalInfo),
  }
}

async function statusOf(sim: Simulator, id: string): Promise<number> {
  const { body } = await sim.apple('GET', `/inApps/v1/subscriptions/${id}`)
  return body.data[0].lastTransactions[0].status
}

test('bought, renewed three times, grace, billing retry, recovery: each step is told and read', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly })
  for (let i = 0; i < 3; i++) await sim.move('P1M')
  await sim.verb(held, 'fail-billing')
  await sim.move('P1M')
  assert.equal(await statusOf(sim, held.id), 4)
  assert.equal(newest(receiver).renewal?.gracePeriodExpiresDate, Date.parse('2027-05-31T12:00:00Z'))
  await sim.move('P16D')
  assert.equal(await statusOf(sim, held.id), 3)
  await sim.verb(held, 'recover')
  assert.equal(await statusOf(sim, held.id), 1)
  assert.equal(newest(receiver).transaction.purchaseDate, Date.parse('2027-05-31T12:00:00Z'))
  assert.deepEqual(appleLabels(receiver), [
    'SUBSCRIBED INITIAL_BUY',
    'DID_RENEW',
    'DID_RENEW',
    'DID_RENEW',
    'DID_FAIL_TO_RENEW GRACE_PERIOD',
    'GRACE_PERIOD_EXPIRED',
    'DID_RENEW BILLING_RECOVERY',
  ])
})

test('a recovery during grace continues the old period', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  await sim.verb(held, 'fail-billing')
  await sim.move('P35D')
  const { signedTransaction } = await sim.verb(held, 'recover')
  assert.equal(decodeJwt(signedTransaction).purchaseDate, Date.parse('2027-02-15T12:00:00Z'))
})

test('a card that is never mended ends the subscription after 60 days', async () => {
  await using both = await openBoth()
  const held = await both.sim.buyApple({ productId: monthly })
  await both.sim.verb(held, 'fail-billing')
  await both.sim.move('P4M')
  assert.equal(await statusOf(both.sim, held.id), 2)
  assert.equal(appleLabels(both.receiver).at(-1), 'EXPIRED BILLING_RETRY')
})

test('cancelled, it ends with the period, and a resubscription keeps the original transaction id', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly })
  await sim.verb(held, 'cancel')
  assert.equal(await statusOf(sim, held.id), 1)
  await sim.move('P1M')
  assert.equal(await statusOf(sim, held.id), 2)
  const again = await sim.buyApple({ productId: product('pro_yearly') })
  assert.equal(again.originalTransactionId, held.id)
  assert.notEqual(again.transactionId, held.transactionId)
  assert.deepEqual(appleLabels(receiver), [
    'SUBSCRIBED INITIAL_BUY',
    'DID_CHANGE_RENEWAL_STATUS AUTO_RENEW_DISABLED',
    'EXPIRED VOLUNTARY',
    'SUBSCRIBED RESUBSCRIBE',
  ])
})

test('an upgrade takes effect at once, a downgrade with the next renewal', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly })
  await sim.move('P10D')
  const up = await sim.verb(held, 'upgrade', { productId: product('premium_monthly') })
  assert.equal(up.productId, product('premium_monthly'))
  const { body } = await sim.apple('GET', `/inApps/v1/transactions/${held.transactionId}`)
  assert.equal(decodeJwt(body.signedTransactionInfo).isUpgraded, true)
  const down = await sim.verb(held, 'downgrade', { productId: product('basic_monthly') })
  assert.equal(down.productId, product('premium_monthly'))
  assert.equal(decodeJwt(down.signedRenewalInfo).autoRenewProductId, product('basic_monthly'))
  await sim.move('P1M')
  assert.equal((await sim.verb(held, 're-sign')).productId, product('basic_monthly'))
  assert.deepEqual(appleLabels(receiver), [
    'SUBSCRIBED INITIAL_BUY',
    'DID_CHANGE_RENEWAL_PREF UPGRADE',
    'DID_CHANGE_RENEWAL_PREF DOWNGRADE',
    'DID_RENEW',
  ])
})

test('a refund of the present period ends it, one of an older period does not, and both can be taken back', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly })
  await sim.move('P1M')
  await sim.verb(held, 'refund', { order: held.transactionId })
  assert.equal(await statusOf(sim, held.id), 1)
  assert.equal(newest(receiver).transaction.transactionId, held.transactionId)
  await sim.verb(held, 'refund')
  assert.equal(await statusOf(sim, held.id), 5)
  await sim.verb(held, 'reverse-refund')
  assert.equal(await statusOf(sim, held.id), 1)
  assert.deepEqual(appleLabels(receiver).slice(2), ['REFUND', 'REFUND', 'REFUND_REVERSED'])
})

test('families follow who pays, with ids of their own, and lose it with a refund', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly, accountToken: randomUUID(), family: ['cleo'] })
  const [shared] = held.family
  const claims = decodeJwt(shared.signedTransaction)
  assert.equal(claims.inAppOwnershipType, 'FAMILY_SHARED')
  assert.equal(claims.appAccountToken, undefined)
  assert.notEqual(claims.originalTransactionId, held.id)
  await sim.move('P1M')
  const renewed = decodeJwt((await sim.verb(shared, 're-sign')).signedTransaction)
  assert.notEqual(renewed.transactionId, claims.transactionId)
  assert.equal(renewed.originalTransactionId, claims.originalTransactionId)
  await sim.verb(held, 'refund')
  assert.deepEqual(appleLabels(receiver).slice(-2), ['REFUND', 'REVOKE'])
  assert.equal(newest(receiver).transaction.inAppOwnershipType, 'FAMILY_SHARED')
})

test('one-time purchases: consumables again and again, a non-consumable once for ever', async () => {
  await using both = await openBoth()
  const { sim } = both
  const coins = await sim.buyApple({ productId: product('coins_100'), quantity: 2 })
  assert.equal(decodeJwt(coins.signedTransaction).quantity, 2)
  assert.equal(decodeJwt(coins.signedTransaction).expiresDate, undefined)
  const more = await sim.buyApple({ productId: product('coins_100') })
  assert.notEqual(more.transactionId, coins.transactionId)
  const forEver = await sim.buyApple({ productId: product('lifetime') })
  const restored = await sim.buyApple({ productId: product('lifetime') })
  assert.equal(restored.transactionId, forEver.transactionId)
  assert.deepEqual(appleLabels(both.receiver), ['ONE_TIME_CHARGE', 'ONE_TIME_CHARGE', 'ONE_TIME_CHARGE'])
})

test('a purchase that waits for approval is nothing yet; approved it is there, declined it never was', async () => {
  await using sim = await openSim()
  const asked = await sim.buyApple({ productId: monthly, pending: true })
  assert.equal(asked.signedTransaction, undefined)
  const held = await sim.verb(asked, 'complete-pending')
  assert.equal(decodeJwt(held.signedTransaction).productId, monthly)
  const other = await sim.buyApple({ account: 'ben', productId: monthly, pending: true })
  await sim.verb(other, 'cancel')
  assert.equal((await sim.call('POST', `/sim/appstore/purchases/${other.id}/complete-pending`, {})).status, 404)
})

test('introductory offers are given once, and by a token as the service allows', async () => {
  await using sim = await openSim()
  const first = await sim.buyApple({ productId: monthly, offer: 'trial' })
  const claims = decodeJwt(first.signedTransaction)
  assert.deepEqual([claims.offerType, claims.offerDiscountType, claims.price], [1, 'FREE_TRIAL', 0])
  assert.equal(claims.expiresDate, Date.parse('2027-01-22T12:00:00Z'))
  await sim.verb(first, 'expire')
  const again = { account: 'ann', productId: monthly, offer: 'trial' }
  assert.equal((await sim.call('POST', '/sim/appstore/purchases', again)).body.error.code, 'offer_not_eligible')
  const token = (changes: Record<string, unknown> = {}) => introToken(sim, first.appTransactionId, changes)
  const buy = async (introToken: string) =>
    sim.call('POST', '/sim/appstore/purchases', { account: 'ann', productId: monthly, introToken })
  for (const changes of [
    { bid: 'com.example.other' },
    { productId: product('basic_monthly') },
    { transactionId: '1' },
    { aud: 'appstoreconnect-v1' },
    { allowIntroductoryOffer: 'yes' },
    { iat: Math.floor(Date.now() / 1000) + 600 },
  ])
    assert.equal((await buy(await token(changes))).body.error.code, 'intro_token_refused', JSON.stringify(changes))
  const good = await token()
  const given = await buy(good)
  assert.equal(decodeJwt(given.body.signedTransaction).offerType, 1)
  await sim.verb(given.body, 'expire')
  assert.equal((await buy(good)).status, 400, 'a nonce serves once')
  const denied = await buy(await token({ allowIntroductoryOffer: false }))
  assert.equal(decodeJwt(denied.body.signedTransaction).offerType, undefined)
})

function introToken(sim: Simulator, transactionId: string, changes: Record<string, unknown>): Promise<string> {
  const { appstore } = sim.config
  const usual = {
    iss: appstore.issuer_id,
    bid: bundle,
    aud: 'introductory-offer-eligibility',
    iat: Math.floor(Date.now() / 1000),
    nonce: randomUUID(),
    productId: monthly,
    allowIntroductoryOffer: true,
    transactionId,
  }
  return new SignJWT({ ...usual, ...changes })
    .setProtectedHeader({ alg: 'ES256', kid: appstore.key_id, typ: 'JWT' })
    .sign(createPrivateKey(appstore.private_key))
}

test('a verb that the state does not allow is refused and changes nothing', async () => {
  await using both = await openBoth()
  const held = await both.sim.buyApple({ productId: monthly })
  await both.sim.verb(held, 'expire')
  for (const verb of ['renew', 'cancel', 'enter-grace', 'hold', 'extend', 'pause', 'sing']) {
    const { status } = await both.sim.call('POST', `/sim/appstore/purchases/${held.id}/${verb}`, {})
    assert.ok(status === 409 || status === 404, `${verb}: ${status}`)
  }
  assert.equal(await statusOf(both.sim, held.id), 2)
  assert.equal(both.receiver.received.length, 2)
})

test('notifications of Production are tried again for six days with the same content, those of the sandbox never', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  receiver.status = 500
  await sim.buyApple({ productId: monthly })
  await sim.buyApple({ account: 'ben', productId: monthly, environment: 'Production' })
  assert.equal(receiver.received.length, 2)
  for (const [hours, attempts] of [
    [1, 2],
    [12, 3],
    [24, 4],
    [48, 5],
    [72, 6],
    [200, 6],
  ] as const) {
    await sim.move(`PT${hours}H`)
    assert.equal(receiver.received.length, attempts + 1, `after ${hours} more hours`)
  }
  const payloads = receiver.received.slice(1).map(({ body }) => body.signedPayload)
  assert.equal(new Set(payloads).size, 1)
})

test('the history of notifications is paged and filtered, and says what came of each', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const held = await sim.buyApple({ productId: monthly })
  receiver.status = 503
  for (let i = 0; i < 22; i++) await sim.move('P1M')
  const all = { startDate: 0, endDate: Date.parse('2040-01-01') }
  const ask = (path: string, body: object) => sim.apple('POST', `/inApps/v1/notifications/history${path}`, body)
  const first = (await ask('', all)).body
  assert.equal(first.notificationHistory.length, 20)
  assert.equal(first.hasMore, true)
  const second = (await ask(`?paginationToken=${first.paginationToken}`, all)).body
  assert.equal(second.notificationHistory.length, 3)
  assert.equal(second.hasMore, false)
  assert.equal(first.notificationHistory[0].sendAttempts[0].sendAttemptResult, 'SUCCESS')
  const failed = (await ask('', { ...all, onlyFailures: true, notificationType: 'DID_RENEW', transactionId: held.id }))
    .body
  assert.equal(failed.notificationHistory.length, 20)
  assert.equal((await ask('', { ...all, startDate: 'today' })).body.errorCode, 4000015)
  assert.equal((await ask('?paginationToken=sim-none', all)).body.errorCode, 4000014)
})

test('a test notification is sent and its fate is told', async () => {
  await using both = await openBoth()
  const { sim, receiver } = both
  const { body } = await sim.apple('POST', '/inApps/v1/notifications/test')
  await sim.move('PT1S')
  assert.deepEqual(appleLabels(receiver), ['TEST'])
  const told = await sim.apple('GET', `/inApps/v1/notifications/test/${body.testNotificationToken}`)
  assert.equal(told.body.sendAttempts[0].sendAttemptResult, 'SUCCESS')
  assert.equal(told.body.signedPayload, receiver.received[0]?.body.signedPayload)
  assert.equal((await sim.apple('GET', '/inApps/v1/notifications/test/none')).body.errorCode, 4040008)
})
