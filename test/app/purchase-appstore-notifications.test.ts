import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { settleChanges } from '../../src/customers/index.ts'
import { erasersOf } from '../../src/erasers.ts'
import { must } from '../../src/kernel/assert.ts'
import { storeInboxTriesMax } from '../../src/kernel/limits.ts'
import { dayMs, type Pki, signApple, testPki } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { auditOf } from '../workspace/api.ts'
import { attachInLive, purchaseRowsOf } from './live-purchase.ts'
import { anEvent, eventually } from './project.ts'
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

    test('a reversal gives back what was refunded before its customer was merged into another one', async () => {
      const who = someone()
      const transaction = await bought(world, pack(who, 2), who)
      const refunded = again(transaction, { revocationDate: Date.now(), revocationReason: 1 })
      world.store.tellOnce(refunded)
      await tell(world, refunded, { type: 'REFUND' })
      const other = await world.project.customer(someone())
      await world.project.post(`/customers/${other}/merge`, { source_distinct_id: who })
      assert.equal(await balance(world, who), 0)
      const reversed = again(transaction, { signedDate: Date.now() + 20 })
      world.store.tellOnce(reversed)
      await tell(world, reversed, { type: 'REFUND_REVERSED' })
      assert.equal(await balance(world, who), 20)
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

/** The row of a notification, as it is kept. */
async function stored(uuid: string): Promise<{ id: bigint; status: string; error: string | null; payload: object }> {
  const [row] = await service.pool.query<{ id: bigint; status: string; error: string | null; payload: object }>(
    'select id, status, error, payload from store_inbox where notification_id = $1',
    [uuid],
  )
  return must(row, 'it was stored')
}

/** A notification that cannot be followed, at its last try or before it. */
async function unfollowed(
  world: StoreWorld,
  who: string,
  { attempts, bring = true }: { attempts: number; bring?: boolean },
): Promise<{ uuid: string; ended: Transaction }> {
  const first = world.subscription(who)
  world.store.tell(first, 1)
  if (bring) await bought(world, first, who)
  const ended = again(first, { expiresDate: Date.now() - 1000 })
  const path = `/inApps/v1/subscriptions/${String(first.originalTransactionId)}`
  world.store.answers.set(path, { status: 401, body: {} })
  const uuid = randomUUID()
  const signedPayload = signed(world, ended, { type: 'EXPIRED', status: 2, uuid })
  assert.equal(await post(urlOf(world), { signedPayload }), 200)
  await eventually(async () => (await stored(uuid)).error !== null)
  await service.pool.query('update store_inbox set attempts = $2, due_at_ms = 0 where notification_id = $1', [
    uuid,
    attempts,
  ])
  return { uuid, ended }
}

async function deadOne(world: StoreWorld, who: string): Promise<{ uuid: string; ended: Transaction; id: string }> {
  const { uuid, ended } = await unfollowed(world, who, { attempts: storeInboxTriesMax })
  await eventually(async () => (await stored(uuid)).status === 'dead')
  return { uuid, ended, id: `note_${(await stored(uuid)).id}` }
}

describe('dead notifications', () => {
  const listed = async (project: string, environment: 'test' | 'live' = 'test') =>
    (await service.workspace('GET', `/dead_notifications?project_id=${project}`, { environment })).body.data

  test('are listed, and followed after all once an operator says so', async () => {
    const who = someone()
    const { uuid, ended, id } = await deadOne(asking, who)
    const [shown] = await listed(asking.project.id)
    assert.deepEqual(
      { ...shown, received_at: '' },
      {
        ...{ object: 'dead_notification', id, app_id: asking.app.id, store: 'appstore', notification_id: uuid },
        ...{ kind: 'EXPIRED', status: 'dead', attempts: storeInboxTriesMax + 1, received_at: '' },
        error: "unavailable: the App Store does not take the app's key",
      },
    )
    assert.deepEqual(await listed(asking.project.id, 'live'), [])
    assert.deepEqual(await listed(believing.project.id), [])

    asking.store.tell(ended, 2)
    const replay = (environment: 'test' | 'live' = 'test') =>
      service.workspace('POST', `/dead_notifications/${id}/replay`, { environment })
    assert.equal((await replay('live')).status, 404)
    const replayed = await replay()
    assert.deepEqual([replayed.status, replayed.body.status, replayed.body.attempts], [200, 'waiting', 0])
    await processed()
    assert.equal(await allowed(asking, who), false)
    assert.deepEqual(await listed(asking.project.id), [])

    const again = await replay()
    assert.deepEqual([again.status, again.body.status], [200, 'done'])
    assert.deepEqual(await auditOf(service.pool, id), [{ action: 'replay', object: 'dead_notification' }])
    assert.equal((await service.workspace('POST', '/dead_notifications/note_0/replay')).status, 404)
  })

  test('and waiting ones say nothing any more of a customer who was deleted, nor do those that die later', async () => {
    const [who, unattached] = [someone(), someone()]
    const dead = await deadOne(asking, who)
    const waiting = await unfollowed(asking, who, { attempts: 1 })
    // Nobody brought it: it is found by the account token of an id that events named.
    assert.equal((await asking.app.post('/event', anEvent(unattached))).status, 200)
    await eventually(async () => {
      const value = asking.tokenOf(unattached)
      return (await service.pool.query('select id from account_binding where value = $1', [value])).length > 0
    })
    const { uuid: unbought } = await unfollowed(asking, unattached, { attempts: 1, bring: false })
    for (const uuid of [dead.uuid, waiting.uuid, unbought]) {
      assert.ok('sealed' in (await stored(uuid)).payload, 'there is something to forget')
    }
    for (const id of [who, unattached]) await asking.project.delete(`/customers/${await asking.project.customer(id)}`)
    const options = { erasers: erasersOf(service), now: Date.now, appendsEndMs: 0 }
    await eventually(async () => {
      await settleChanges(service.pool, options, 0)
      const rows = await Promise.all([dead.uuid, waiting.uuid, unbought].map(stored))
      return rows.every(({ payload }) => !('sealed' in payload) && !('about' in payload))
    }, 20_000)
    assert.equal((await stored(dead.uuid)).status, 'ignored')
    assert.deepEqual(
      (await listed(asking.project.id)).filter(
        ({ notification_id: uuid }: { notification_id: string }) => uuid === dead.uuid,
      ),
      [],
    )

    const late = randomUUID()
    const signedPayload = signed(asking, dead.ended, { type: 'EXPIRED', status: 2, uuid: late })
    const path = `/inApps/v1/subscriptions/${String(dead.ended.originalTransactionId)}`
    asking.store.answers.set(path, { status: 401, body: {} })
    assert.equal(await post(urlOf(asking), { signedPayload }), 200)
    await eventually(async () => (await stored(late)).error !== null)
    await service.pool.query('update store_inbox set attempts = 99, due_at_ms = 0 where notification_id = $1', [late])
    const { status, error, payload } = await eventually(async () => {
      const row = await stored(late)
      return row.status !== 'waiting' && row
    })
    assert.deepEqual([status, error, 'sealed' in payload], ['ignored', 'its customer was deleted', false])
  })
})

test('what only a test root vouches for changes no live row, whatever it says of itself', async () => {
  const who = someone()
  const live = await openStore(service, { environment: 'live' })
  after(() => live[Symbol.asyncDispose]())
  const { app, project, pki, store } = live
  const put = (body: object) => service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
  for (const body of [
    { kind: 'appstore_trust', roots: [pki.root.certificate.toString()] },
    { kind: 'endpoints', appstore_api: store.url },
    { kind: 'appstore', ...store.key, app_apple_id: 1234 },
  ]) {
    assert.equal((await put(body)).status, 200)
  }
  // As if Apple had signed it: nobody else can.
  const transaction = live.subscription(who, { environment: 'Production' })
  await attachInLive(service, live, who, transaction)
  assert.equal(await allowed(live, who), true)

  const scopeId = await project.scopeId('live')
  const before = await purchaseRowsOf(service, scopeId)
  assert.ok(before.size >= 10)
  const past = { expiresDate: Date.now() - 1000, revocationDate: Date.now() - 1000, revocationReason: 0 }
  for (const environment of ['Production', 'Sandbox']) {
    for (const [type, status, more] of [
      ['REFUND', 5, past],
      ['EXPIRED', 2, past],
      ['REVOKE', 5, past],
      ['DID_RENEW', 1, { transactionId: randomUUID().slice(0, 8), expiresDate: Date.now() + 90 * dayMs }],
    ] as const) {
      const said = again(transaction, { ...more, environment })
      store.tell(said, status)
      const data = { environment, appAppleId: 1234 }
      const signedPayload = signed(live, said, { type, status, renewal: { environment }, data })
      assert.equal(await post(urlOf(live), { signedPayload }), 200, `${environment} ${type}: test takes it`)
    }
  }
  await processed()
  assert.deepEqual(await purchaseRowsOf(service, scopeId), before)
  assert.equal(await allowed(live, who), true)
})
