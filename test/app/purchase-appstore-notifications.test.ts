import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { dayMs, type Pki, signApple, testPki } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { eventually } from './project.ts'
import { openStore, type StoreWorld } from './store-world.ts'

const service = await startService()
/** One that can ask the App Store, and one that has to believe what is signed. */
const asking = await openStore(service)
const believing = await openStore(service, { api: false })
after(async () => {
  await asking[Symbol.asyncDispose]()
  await believing[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

type Transaction = Record<string, unknown> & { transactionId: string }

let people = 0
const someone = () => `ios-${++people}`
const hour = 3600_000

interface Notice {
  type: string
  subtype?: string
  status?: number
  renewal?: Record<string, unknown>
  uuid?: string
  pki?: Pki
  data?: Record<string, unknown> | null
}

function signed(world: StoreWorld, transaction: Transaction | null, notice: Notice): string {
  const { type, subtype, status, renewal, uuid = randomUUID(), pki = world.pki, data = {} } = notice
  const info = {
    ...{ autoRenewProductId: transaction?.productId, autoRenewStatus: 1, productId: transaction?.productId },
    ...{ originalTransactionId: transaction?.originalTransactionId, environment: 'Sandbox', signedDate: Date.now() },
    ...renewal,
  }
  return signApple(pki, {
    ...{ notificationType: type, ...(subtype === undefined ? {} : { subtype }), notificationUUID: uuid },
    ...{ version: '2.0', signedDate: Date.now() },
    ...(data === null
      ? {}
      : {
          data: {
            ...{ bundleId: 'com.example.app', environment: 'Sandbox', ...(status === undefined ? {} : { status }) },
            ...(transaction === null ? {} : { signedTransactionInfo: signApple(pki, transaction) }),
            ...(renewal === undefined ? {} : { signedRenewalInfo: signApple(pki, info) }),
            ...data,
          },
        }),
  })
}

const urlOf = ({ app }: StoreWorld) => `${service.url}/webhooks/appstore/${app.id}`

async function post(url: string, body: unknown): Promise<number> {
  const response = await fetch(url, {
    ...{ method: 'POST', body: JSON.stringify(body) },
    headers: { 'content-type': 'application/json' },
  })
  await response.text()
  return response.status
}

async function processed(): Promise<void> {
  await eventually(async () => {
    const [row] = await service.pool.query<{ waiting: number }>(
      `select count(*)::int as waiting from store_inbox where status = 'waiting'`,
    )
    return row?.waiting === 0
  })
}

/** Sends it and waits for what follows; each part is signed now, unless told otherwise. */
async function tell(world: StoreWorld, transaction: Transaction | null, notice: Notice): Promise<void> {
  assert.equal(await post(urlOf(world), { signedPayload: signed(world, transaction, notice) }), 200)
  await processed()
}

const again = (transaction: Transaction, more: Record<string, unknown> = {}): Transaction => ({
  ...transaction,
  signedDate: Date.now(),
  ...more,
})
const renewalOf = (transaction: Transaction, more: Record<string, unknown> = {}): Transaction => ({
  ...again(transaction),
  transactionId: `${transaction.transactionId}1`,
  purchaseDate: transaction.expiresDate,
  expiresDate: Number(transaction.expiresDate) + 30 * dayMs,
  ...more,
})
const allowed = async (world: StoreWorld, who: string, feature = 'pro') => (await world.entitled(who, feature)).allowed
const balance = async (world: StoreWorld, who: string) => (await world.entitled(who, 'exports')).balance

async function bought(world: StoreWorld, transaction: Transaction, who: string): Promise<Transaction> {
  const { status, body } = await world.bring(who, transaction)
  assert.equal(status, 200, JSON.stringify(body))
  return transaction
}

describe('what the webhook answers', () => {
  test('400 for what is none, 401 for what the App Store did not sign for this app, 404 for no app', async () => {
    const url = urlOf(asking)
    for (const body of [{}, { signedPayload: 7 }, { signedPayload: '' }]) assert.equal(await post(url, body), 400)
    assert.equal(await post(url, { signedPayload: 'noise' }), 401)
    const foreign = { type: 'TEST', pki: await testPki() }
    assert.equal(await post(url, { signedPayload: signed(asking, null, foreign) }), 401)
    const other = { type: 'TEST', data: { bundleId: 'com.example.other' } }
    assert.equal(await post(url, { signedPayload: signed(asking, null, other) }), 401)
    // A transaction is no notification.
    assert.equal(await post(url, { signedPayload: signApple(asking.pki, asking.transaction('x')) }), 401)
    assert.equal(await post(`${service.url}/webhooks/appstore/app_none`, { signedPayload: 'noise' }), 404)
  })

  test('503 where nothing is configured', async () => {
    const bare = await asking.project.app('ios')
    assert.equal(await post(`${service.url}/webhooks/appstore/${bare.id}`, { signedPayload: 'noise' }), 503)
  })

  test('the same notification is stored once, and none of it in the open', async () => {
    const uuid = randomUUID()
    const who = someone()
    const transaction = await bought(asking, asking.transaction(who), who)
    const payload = signed(asking, transaction, { type: 'REFUND_DECLINED', uuid })
    for (let n = 0; n < 2; n++) assert.equal(await post(urlOf(asking), { signedPayload: payload }), 200)
    const rows = await service.pool.query<{ text: string }>(
      'select to_jsonb(i)::text as text from store_inbox i where notification_id = $1',
      [uuid],
    )
    assert.equal(rows.length, 1)
    assert.equal(rows[0]?.text.includes(payload.slice(0, 40)), false)
  })

  test('one without data, of a test or of a kind that nobody knows changes nothing', async () => {
    const who = someone()
    const pack = asking.transaction(who)
    await tell(asking, null, { type: 'TEST' })
    await tell(asking, null, { type: 'OF_TOMORROW', data: null })
    await tell(asking, pack, { type: 'CONSUMPTION_REQUEST' })
    assert.equal(await allowed(asking, who), false)
  })
})

for (const [name, world] of [
  ['asked', asking],
  ['believed', believing],
] as const) {
  /** What the App Store would say if it is asked. */
  const say = (transaction: Transaction, status: number, renewal: Record<string, unknown> = {}) =>
    world.store.tell(transaction, status, renewal)

  describe(`a subscription, ${name}`, () => {
    test('goes on with each renewal, and each period has its own units', async () => {
      const who = someone()
      const first = world.subscription(who, { expiresDate: Date.now() + 3000, purchaseDate: Date.now() - 30 * dayMs })
      say(first, 1)
      await bought(world, first, who)
      const next = renewalOf(first)
      say(next, 1)
      await tell(world, next, { type: 'DID_RENEW', status: 1, renewal: {} })
      await eventually(async () => Date.now() > Number(first.expiresDate) + 100)
      assert.deepEqual([await allowed(world, who), await balance(world, who)], [true, 100])
    })

    test('grace keeps access, its end takes it, recovery gives it back', async () => {
      const who = someone()
      const first = world.subscription(who, { expiresDate: Date.now() + 1500, purchaseDate: Date.now() - 30 * dayMs })
      say(first, 1)
      await bought(world, first, who)
      await eventually(async () => !(await allowed(world, who)))
      const grace = { gracePeriodExpiresDate: Date.now() + hour, isInBillingRetryPeriod: true }
      say(again(first), 4, grace)
      await tell(world, again(first), { type: 'DID_FAIL_TO_RENEW', subtype: 'GRACE_PERIOD', status: 4, renewal: grace })
      assert.equal(await allowed(world, who), true)
      const retry = { isInBillingRetryPeriod: true }
      say(again(first), 3, retry)
      await tell(world, again(first), { type: 'GRACE_PERIOD_EXPIRED', status: 3, renewal: retry })
      assert.equal(await allowed(world, who), false)
      const next = renewalOf(first, { purchaseDate: Date.now() - 1000 })
      say(next, 1)
      await tell(world, next, { type: 'DID_RENEW', subtype: 'BILLING_RECOVERY', status: 1, renewal: {} })
      assert.equal(await allowed(world, who), true)
    })

    test('an expiry ends access, and a late notification of before does not bring it back', async () => {
      const who = someone()
      const first = world.subscription(who)
      say(first, 1)
      await bought(world, first, who)
      const old = signed(world, again(first), { type: 'DID_CHANGE_RENEWAL_STATUS', status: 1, renewal: {} })
      const ended = again(first, { expiresDate: Date.now() - 1000, signedDate: Date.now() + 5 })
      say(ended, 2, { autoRenewStatus: 0 })
      await tell(world, ended, { type: 'EXPIRED', subtype: 'VOLUNTARY', status: 2, renewal: { autoRenewStatus: 0 } })
      assert.equal(await allowed(world, who), false)
      assert.equal(await post(urlOf(world), { signedPayload: old }), 200)
      await processed()
      assert.equal(await allowed(world, who), false)
    })

    test('an upgrade gives the new product and ends the old one', async () => {
      const who = someone()
      const first = world.subscription(who)
      say(first, 1)
      await bought(world, first, who)
      assert.equal(await balance(world, who), 100)
      const next = renewalOf(first, { productId: 'com.example.yearly', purchaseDate: Date.now() - 500 })
      say(next, 1)
      await tell(world, next, { type: 'DID_CHANGE_RENEWAL_PREF', subtype: 'UPGRADE', status: 1, renewal: {} })
      assert.equal(await balance(world, who), 500)
    })

    test('a refund of a period that is over leaves access as it is', async () => {
      const who = someone()
      const first = world.subscription(who, { expiresDate: Date.now() - dayMs, purchaseDate: Date.now() - 31 * dayMs })
      const next = renewalOf(first)
      say(next, 1)
      await bought(world, next, who)
      const refunded = again(first, { revocationDate: Date.now() - hour, revocationReason: 0 })
      await tell(world, refunded, { type: 'REFUND', status: 1, renewal: {} })
      assert.equal(await allowed(world, who), true)
    })

    test('a refund of the present period ends access', async () => {
      const who = someone()
      const first = world.subscription(who)
      say(first, 1)
      await bought(world, first, who)
      const refunded = again(first, { revocationDate: Date.now() - 1000, revocationReason: 0 })
      say(refunded, 5)
      await tell(world, refunded, { type: 'REFUND', status: 5, renewal: {} })
      assert.equal(await allowed(world, who), false)
    })
  })

  describe(`units, ${name}`, () => {
    const pack = (who: string, quantity: number) =>
      world.transaction(who, { type: 'Consumable', productId: 'com.example.pack', quantity })
    const spend = (who: string, quantity: number) =>
      world.app.post('/feature/consume', {
        ...{ customerId: who, featureId: 'exports', operationId: randomUUID(), quantity },
      })

    test('a refund takes what is left, and its reversal gives back exactly that', async () => {
      const who = someone()
      const transaction = await bought(world, pack(who, 2), who)
      await spend(who, 5)
      const refunded = again(transaction, { revocationDate: Date.now(), revocationReason: 1 })
      world.store.tellOnce(refunded)
      await tell(world, refunded, { type: 'REFUND' })
      assert.equal(await balance(world, who), 0)
      // What was signed before the refund brings nothing back.
      assert.equal((await world.bring(who, { ...transaction, signedDate: Date.now() - hour })).status, 200)
      assert.equal(await balance(world, who), 0)
      const reversed = again(transaction, { signedDate: Date.now() + 20 })
      world.store.tellOnce(reversed)
      await tell(world, reversed, { type: 'REFUND_REVERSED' })
      assert.equal(await balance(world, who), 15)
    })

    test('a refund of a share takes that share, once, and from no other purchase', async () => {
      const who = someone()
      const transaction = await bought(world, pack(who, 2), who)
      await bought(world, pack(who, 1), who)
      const refunded = () =>
        again(transaction, { revocationDate: Date.now(), revocationPercentage: 50_000, revocationReason: 1 })
      for (let n = 0; n < 2; n++) {
        const now = refunded()
        world.store.tellOnce(now)
        await tell(world, now, { type: 'REFUND' })
        assert.equal(await balance(world, who), 20)
      }
    })

    test('one that was charged without a call belongs to whomever its token names', async () => {
      const who = someone()
      const customer = await world.project.customer(who)
      const value = randomUUID()
      await world.project.post(`/customers/${customer}/checkout_bindings`, { app_id: world.app.id, value })
      const transaction = { ...pack(who, 1), appAccountToken: value }
      world.store.tellOnce(transaction)
      await tell(world, transaction, { type: 'ONE_TIME_CHARGE' })
      assert.equal(await balance(world, who), 10)
    })
  })
}

test('a family member loses what the family gives no more', async () => {
  const who = someone()
  await asking.settings({ unbound_purchases: 'first_claim' })
  const shared = asking.transaction(null, {
    ...{ type: 'Non-Renewing Subscription', productId: 'com.example.pass', inAppOwnershipType: 'FAMILY_SHARED' },
  })
  await bought(asking, shared, who)
  assert.equal(await allowed(asking, who), true)
  const revoked = again(shared, { revocationDate: Date.now(), revocationReason: 0 })
  asking.store.tellOnce(revoked)
  await tell(asking, revoked, { type: 'REVOKE' })
  assert.equal(await allowed(asking, who), false)
  await asking.settings({ unbound_purchases: 'reject' })
})

test('a notification that cannot be followed now is tried again', async () => {
  const who = someone()
  const first = asking.subscription(who)
  asking.store.tell(first, 1)
  await bought(asking, first, who)
  const ended = again(first, { expiresDate: Date.now() - 1000 })
  const path = `/inApps/v1/subscriptions/${String(first.originalTransactionId)}`
  asking.store.answers.set(path, { status: 500, body: {} })
  assert.equal(await post(urlOf(asking), { signedPayload: signed(asking, ended, { type: 'EXPIRED', status: 2 }) }), 200)
  await eventually(async () => {
    const [row] = await service.pool.query<{ error: string | null }>(
      `select error from store_inbox where status = 'waiting'`,
    )
    return row?.error != null
  })
  asking.store.tell(ended, 2)
  await service.pool.query(`update store_inbox set due_at_ms = 0 where status = 'waiting'`)
  await processed()
  assert.equal(await allowed(asking, who), false)
})
