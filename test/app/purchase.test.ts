import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { settleChanges } from '../../src/customers/index.ts'
import { erasersOf } from '../../src/erasers.ts'
import { signedTransactionBytesMax } from '../../src/kernel/limits.ts'
import { aTransaction, dayMs, signApple, testPki } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { anEvent, assertRefused, eventually } from './project.ts'
import { openStore } from './store-world.ts'

const service = await startService()
const world = await openStore(service)
after(async () => {
  await world[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const { app, store, transaction, subscription, bring } = world

let people = 0
const someone = () => `user-${++people}`

function assertUnsupported(answer: Awaited<ReturnType<typeof bring>>, detail: string) {
  assertRefused(answer, 400, 'app_store_purchase_unsupported')
  assert.equal(answer.body.detail, detail)
}

async function attached(distinctId: string, bought: Record<string, unknown>, through = app) {
  const { status, body } = await bring(distinctId, bought, through)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

describe('200', () => {
  test('a purchase gives its Features at once, and /entitled knows them', async () => {
    const [who, bought] = [someone(), transaction(null)]
    const made = transaction(who, bought)
    const body = await attached(who, { ...made, appAccountToken: world.tokenOf(who) })
    const pro = { id: 'pro', ext_id: 'pro', type: 'boolean', allowed: true, balance: null, unlimited: false }
    assert.deepEqual(body, {
      success: true,
      customer_id: await world.project.customer(who),
      features: [pro],
      idempotent_replay: false,
      transaction_id: made.transactionId,
    })
    assert.equal((await world.entitled(who, 'pro')).allowed, true)
  })

  test('the same evidence, and the same transaction signed anew, replay and grant nothing twice', async () => {
    const who = someone()
    const pack = transaction(who, { type: 'Consumable', productId: 'com.example.pack', quantity: 3 })
    const first = await attached(who, pack)
    assert.equal(first.features.find(({ id }: { id: string }) => id === 'exports').balance, 30)
    await app.post('/feature/consume', { customerId: who, featureId: 'exports', operationId: `op-${who}`, quantity: 4 })
    const text = signApple(world.pki, pack)
    for (const transaction_jwt of [text, text, signApple(world.pki, { ...pack, signedDate: Date.now() })]) {
      const { status, body } = await app.post('/purchase', { type: 'appstore', distinct_id: who, transaction_jwt })
      assert.equal(status, 200)
      assert.deepEqual([body.idempotent_replay, body.customer_id], [true, first.customer_id])
      assert.equal(body.features.find(({ id }: { id: string }) => id === 'exports').balance, 26)
    }
  })

  test('a subscription is read from the store, and lasts as it says', async () => {
    const who = someone()
    const bought = subscription(who)
    store.tell(bought, 1, {})
    await attached(who, bought)
    assert.ok(store.asked.includes(`/inApps/v1/subscriptions/${String(bought.originalTransactionId)}`))
    const id = await world.project.customer(who)
    const [purchase] = (await world.project.get(`/customers/${id}/purchases`)).data
    assert.deepEqual(
      [purchase.status, purchase.active, purchase.auto_renews, purchase.unpolled],
      ['active', true, true, false],
    )
    assert.equal(Date.parse(purchase.periods[0].access_until), bought.expiresDate)
    const grants = (await world.project.get(`/customers/${id}/grants`)).data
    assert.deepEqual(
      grants.map(({ expires_at }: { expires_at: string }) => Date.parse(expires_at)),
      [bought.expiresDate, bought.expiresDate],
    )
    assert.equal(
      grants.every(
        ({ source }: { source: { type: string; id: string } }) =>
          source.type === 'purchase' && source.id === purchase.id,
      ),
      true,
    )
  })

  test('what was read a minute ago is not read again', async () => {
    const who = someone()
    const bought = subscription(who)
    store.tell(bought, 1, {})
    await attached(who, bought)
    const before = store.asked.length
    assert.equal((await attached(who, { ...bought, signedDate: Date.now() })).idempotent_replay, true)
    assert.equal(store.asked.length, before)
  })

  test('grace lasts until its end', async () => {
    const who = someone()
    const over = subscription(who, { purchaseDate: Date.now() - 31 * dayMs, expiresDate: Date.now() - dayMs })
    const until = Date.now() + 3 * dayMs
    store.tell(over, 4, { gracePeriodExpiresDate: until })
    await attached(who, over)
    assert.equal((await world.entitled(who, 'pro')).allowed, true)
  })

  test('an old transaction of a subscription that was renewed gives the newest period', async () => {
    const who = someone()
    const old = subscription(who, { purchaseDate: Date.now() - 40 * dayMs, expiresDate: Date.now() - 10 * dayMs })
    const { originalTransactionId } = old
    const newest = subscription(who, { originalTransactionId, purchaseDate: Date.now() - 10 * dayMs })
    store.tell(newest, 1, {})
    const body = await attached(who, old)
    assert.equal(body.transaction_id, old.transactionId)
    const { data } = await world.project.get(`/customers/${body.customer_id}/grants`)
    assert.equal(data.length, 2, 'one period: pro and exports')
  })

  test('an upgrade gives the new Product and ends the old one', async () => {
    const who = someone()
    const monthly = subscription(who)
    store.tell(monthly, 1, {})
    await attached(who, monthly)
    const { originalTransactionId } = monthly
    const yearly = subscription(who, {
      originalTransactionId,
      productId: 'com.example.yearly',
      purchaseDate: Date.now() - 1000,
      signedDate: Date.now(),
    })
    store.tell(yearly, 1, {})
    await world.project.post(`/purchases/${(await purchaseOf(who)).id}/reverify`, {})
    const exports = await world.entitled(who, 'exports')
    assert.deepEqual([exports.allowed, exports.balance], [true, 500])
    assert.equal((await attached(who, yearly)).idempotent_replay, true)
  })

  test('a non-renewing subscription lasts as long as its link says', async () => {
    const who = someone()
    const pass = transaction(who, { type: 'Non-Renewing Subscription', productId: 'com.example.pass' })
    const { customer_id: id } = await attached(who, pass)
    const { data } = await world.project.get(`/customers/${id}/grants`)
    const lasts = Date.parse(data[0].expires_at) - Number(pass.purchaseDate)
    assert.ok(lasts >= 28 * dayMs && lasts <= 31 * dayMs)
  })

  test('a member of the family gets what the link shares, as a customer of their own', async () => {
    const who = someone()
    const shared = {
      type: 'Non-Renewing Subscription',
      productId: 'com.example.pass',
      inAppOwnershipType: 'FAMILY_SHARED',
    }
    await attached(who, transaction(null, shared))
    assertUnsupported(
      await bring(someone(), transaction(null, { ...shared, type: 'Non-Consumable', productId: 'com.example.pro' })),
      'family_shared',
    )
  })

  test('tokens bind in any case, and by anonymous ids from before the identify', async () => {
    const who = someone()
    const token = world.tokenOf(who).toUpperCase()
    await attached(who, transaction(null, { appAccountToken: token }))
    const [anonymous, known] = [someone(), someone()]
    const bought = transaction(anonymous)
    await world.project.customer(anonymous)
    const id = await world.project.customer(known)
    await world.project.post(`/customers/${id}/merge`, { source_distinct_id: anonymous })
    await attached(known, bought)
  })

  test('fields that nobody knows are ignored', async () => {
    const who = someone()
    const transaction_jwt = signApple(world.pki, transaction(who))
    const more = { obfuscated_account_id: 'x', anything: [1] }
    const { status } = await app.post('/purchase', { type: 'appstore', distinct_id: who, transaction_jwt, ...more })
    assert.equal(status, 200)
  })

  test('$purchase_completed is stated once, with trust server', async () => {
    const who = someone()
    const bought = transaction(who)
    const { customer_id: id } = await attached(who, bought)
    await attached(who, bought)
    const found = await eventuallyEvents(id)
    assert.deepEqual(
      found.map(({ trust, properties }) => [trust, properties.store_product_id, properties.transaction_id]),
      [['server', 'com.example.pro', bought.transactionId]],
    )
  })
})

describe('400 invalid', () => {
  const invalid = (answer: Awaited<ReturnType<typeof bring>>) =>
    assertRefused(answer, 400, 'app_store_purchase_invalid')

  test('what is not authentic, of another app, of an environment the key does not take, or maps to no Product', async () => {
    const who = someone()
    const foreign = signApple(await testPki(), transaction(who))
    for (const transaction_jwt of ['', 'x', 'a.b.c', foreign]) {
      invalid(await app.post('/purchase', { type: 'appstore', distinct_id: who, transaction_jwt }))
    }
    invalid(await bring(who, transaction(who, { bundleId: 'com.example.other' })))
    invalid(await bring(who, transaction(who, { environment: 'Production' })))
    invalid(await bring(who, transaction(who, { environment: 'Xcode' })))
    invalid(await bring(who, transaction(who, { productId: 'com.example.unknown' })))
  })

  test('it makes no customer', async () => {
    const who = someone()
    invalid(await bring(who, transaction(who, { bundleId: 'com.example.other' })))
    const { data } = await world.project.get(`/customers?distinct_id=${who}&project_id=${world.project.id}`)
    assert.deepEqual(data, [])
  })

  test('a link that comes later makes the same evidence good', async () => {
    const who = someone()
    const later = transaction(who, { productId: 'com.example.later' })
    invalid(await bring(who, later))
    const stores = [{ store: 'appstore', product_id: 'com.example.later' }]
    const terms = { key: 'later', name: 'Later', type: 'one_time', grants: [{ feature: 'pro' }], stores }
    await world.project.post('/products', { project_id: world.project.id, ...terms })
    // Nobody has to bring it again.
    await eventually(async () => (await world.entitled(who, 'pro')).allowed === true)
    assert.equal((await attached(who, { ...later, signedDate: Date.now() })).idempotent_replay, true)
  })
})

describe('400 fields', () => {
  test('missing and mistyped fields are invalid_request', async () => {
    const transaction_jwt = signApple(world.pki, transaction(null))
    const post = (body: object) => app.post('/purchase', body as Record<string, unknown>)
    assertRefused(await post({ type: 'appstore', distinct_id: 'u' }), 400, 'invalid_request', 'transaction_jwt')
    assertRefused(await post({ type: 'appstore', transaction_jwt }), 400, 'invalid_request', 'distinct_id')
    assertRefused(await post({ distinct_id: 'u', transaction_jwt }), 400, 'invalid_request', 'type')
    assertRefused(
      await post({ type: 'appstore', distinct_id: 'u', transaction_jwt: 7 }),
      400,
      'invalid_request',
      'transaction_jwt',
    )
    const foreign = await post({ type: 'amazon', distinct_id: 'u', transaction_jwt })
    assertRefused(foreign, 400, 'invalid_request', 'type')
    assert.equal(foreign.body.message, 'type must be one of the documented values')
  })

  test('2 MiB of a signed transaction are read, one byte more is not', async () => {
    const text = (bytes: number) => ({ type: 'appstore', distinct_id: 'u', transaction_jwt: 'x'.repeat(bytes) })
    assertRefused(await app.post('/purchase', text(signedTransactionBytesMax)), 400, 'app_store_purchase_invalid')
    assertRefused(
      await app.post('/purchase', text(signedTransactionBytesMax + 1)),
      400,
      'invalid_request',
      'transaction_jwt',
    )
    assertRefused(await app.post('/purchase', text(2.25 * 1024 * 1024)), 413, 'payload_too_large')
  })

  test('a genuine one of 2 MiB is a purchase, and a character more makes it none', async () => {
    const who = someone()
    const sold = transaction(who)
    const signed = (padding: number) => signApple(world.pki, { ...sold, unknown: 'x'.repeat(padding) })
    // Four characters carry three of the payload, so not every length can be met.
    let padding = Math.floor(((signedTransactionBytesMax - signed(0).length) * 3) / 4)
    while (signed(padding + 1).length <= signedTransactionBytesMax) padding++
    const transaction_jwt = signed(padding)
    assert.ok(transaction_jwt.length > signedTransactionBytesMax - 2)
    const post = (text: string) => app.post('/purchase', { type: 'appstore', distinct_id: who, transaction_jwt: text })
    const longer = transaction_jwt.padEnd(signedTransactionBytesMax + 1, 'x')
    assertRefused(await post(longer), 400, 'invalid_request', 'transaction_jwt')
    const { status, body } = await post(transaction_jwt)
    assert.equal(status, 200, JSON.stringify(body))
  })
})

describe('400 owner_unverified', () => {
  const unverified = (answer: Awaited<ReturnType<typeof bring>>) =>
    assertRefused(answer, 400, 'app_store_purchase_owner_unverified')

  test('no token, an unknown one, or that of another customer', async () => {
    const [who, other] = [someone(), someone()]
    await world.project.customer(other)
    unverified(await bring(who, transaction(null)))
    unverified(await bring(who, transaction(null, { appAccountToken: '00000000-0000-0000-0000-000000000000' })))
    unverified(await bring(who, transaction(null, { appAccountToken: '9b1e5a52-3c1f-4f0e-9a51-6d6a4f8f2f10' })))
    const theirs = transaction(other)
    unverified(await bring(who, theirs))
    await attached(other, theirs)
  })

  test('a registered value binds for its customer and for nobody else', async () => {
    const [who, other] = [someone(), someone()]
    const value = 'B0C4D5E6-3c1f-4f0e-9a51-6d6a4f8f2f10'
    const body = { app_id: app.id, value }
    const binding = await world.project.post(`/customers/${await world.project.customer(who)}/checkout_bindings`, body)
    assert.deepEqual(
      [binding.object, binding.value, binding.store],
      ['checkout_binding', value.toLowerCase(), 'appstore'],
    )
    const again = await world.project.post(`/customers/${await world.project.customer(who)}/checkout_bindings`, body)
    assert.equal(again.id, binding.id)
    const theirs = await service.workspace(
      'POST',
      `/customers/${await world.project.customer(other)}/checkout_bindings`,
      { body },
    )
    assert.equal(theirs.status, 409)
    const bought = transaction(null, { appAccountToken: value })
    unverified(await bring(other, bought))
    await attached(who, bought)
  })

  test('a value that is registered later gives what waits for it', async () => {
    const who = someone()
    const value = 'd0c4d5e6-3c1f-4f0e-9a51-6d6a4f8f2f10'
    unverified(await bring(who, transaction(null, { appAccountToken: value })))
    const id = await world.project.customer(who)
    await world.project.post(`/customers/${id}/checkout_bindings`, { app_id: app.id, value })
    assert.equal((await world.entitled(who, 'pro')).allowed, true)
  })
})

describe('400 unsupported', () => {
  test('each state that gives nothing says so', async () => {
    const over = { purchaseDate: Date.now() - 31 * dayMs, expiresDate: Date.now() - dayMs }
    const told = (status: number, more: Record<string, unknown> = {}, renewal = {}) => {
      const who = someone()
      const bought = subscription(who, more)
      store.tell(bought, status, renewal)
      return { who, bought }
    }
    for (const [{ who, bought }, detail] of [
      [told(2, over), 'expired'],
      [told(3, over), 'billing_retry'],
      [told(4, over, { gracePeriodExpiresDate: Date.now() - 1 }), 'billing_retry'],
      [told(5), 'revoked'],
      [told(1, { revocationDate: Date.now() - 1000, revocationReason: 0 }), 'revoked'],
    ] as const) {
      assertUnsupported(await bring(who, bought), detail)
      assertUnsupported(await bring(who, bought), detail)
    }
    const who = someone()
    assertUnsupported(await bring(who, transaction(who, { revocationDate: Date.now() - 1 })), 'revoked')
    const season = { type: 'Non-Renewing Subscription', productId: 'com.example.season' }
    assertUnsupported(await bring(who, transaction(who, season)), 'duration_not_configured')
    assertUnsupported(await bring(who, transaction(who, { type: 'Lottery Ticket' })), 'product_type')
  })

  test('who does not own it does not learn why', async () => {
    const [who, other] = [someone(), someone()]
    const bought = subscription(who)
    store.tell(bought, 2, {})
    assertRefused(await bring(other, bought), 400, 'app_store_purchase_owner_unverified')
    assertUnsupported(await bring(who, bought), 'expired')
  })

  test('a claim comes true when the store takes the money after all', async () => {
    const who = someone()
    const bought = subscription(who, { purchaseDate: Date.now() - 31 * dayMs, expiresDate: Date.now() - 1000 })
    store.tell(bought, 3, {})
    assertUnsupported(await bring(who, bought), 'billing_retry')
    const [{ public_id: id } = { public_id: '' }] = await service.pool.query<{ public_id: string }>(
      'select public_id from store_lineage where root_key = $1',
      [bought.originalTransactionId],
    )
    const { originalTransactionId } = bought
    store.tell(
      subscription(who, {
        originalTransactionId,
        purchaseDate: Date.now() - 500,
        signedDate: Date.now(),
        appAccountToken: undefined,
      }),
      1,
      {},
    )
    await world.project.post(`/purchases/${id}/reverify`, {})
    assert.equal((await world.entitled(who, 'pro')).allowed, true)
  })
})

describe('409 conflict', () => {
  test('another customer has it, whatever the state', async () => {
    const [who, other] = [someone(), someone()]
    const bought = transaction(who)
    await attached(who, bought)
    assertRefused(await bring(other, bought), 409, 'app_store_purchase_conflict')
    assertRefused(
      await bring(other, { ...bought, appAccountToken: world.tokenOf(other) }),
      409,
      'app_store_purchase_conflict',
    )
  })

  test('what a deleted customer had stays taken until an operator gives it', async () => {
    const [who, other] = [someone(), someone()]
    const bought = transaction(who)
    const { customer_id: id } = await attached(who, bought)
    await world.project.delete(`/customers/${id}`)
    assertRefused(await bring(who, bought), 410, 'customer_deleted')
    const answer = async () => (await bring(other, bought)).body.code
    assert.equal(await answer(), 'app_store_purchase_conflict')
    const [{ public_id: purchase } = { public_id: '' }] = await service.pool.query<{ public_id: string }>(
      'select public_id from store_lineage where root_key = $1',
      [bought.transactionId],
    )
    const body = { customer_id: await world.project.customer(other), reason: 'a support case' }
    await world.project.post(`/purchases/${purchase}/transfer`, body)
    assert.equal((await attached(other, bought)).idempotent_replay, true)
    assert.equal((await world.entitled(other, 'pro')).allowed, true)
  })

  test('nothing that says who bought is kept of a deleted customer, whatever the store says later', async () => {
    const [who, other] = [someone(), someone()]
    const appTransactionId = `of-${who}`
    const bought = subscription(who, { appTransactionId })
    const renewal = { appTransactionId, appAccountToken: world.tokenOf(who) }
    store.tell(bought, 1, renewal)
    const { customer_id: id } = await attached(who, bought)
    // One that came without a token has theirs written back to the App Store.
    await world.settings({ unbound_purchases: 'first_claim' })
    const unbound = transaction(null)
    await attached(who, unbound)
    await world.settings({ unbound_purchases: 'reject' })
    const owed = `select id from store_outbox where payload ->> 'appAccountToken' = $1`
    assert.equal((await service.pool.query(owed, [world.tokenOf(who)])).length, 1)
    const kept = async () => {
      const rows = await service.pool.query<{ text: string }>(
        `select l::text || t::text as text
         from store_lineage l
         join store_transaction t on t.lineage_id = l.id
         where l.root_key = any($1)
         union all
         select o::text
         from store_outbox o`,
        [[bought.originalTransactionId, unbound.originalTransactionId]],
      )
      assert.ok(rows.length > 0)
      return rows.some(({ text }) => text.includes(world.tokenOf(who)) || text.includes(appTransactionId))
    }
    assert.equal(await kept(), true)
    await world.project.delete(`/customers/${id}`)
    const options = { erasers: erasersOf(service), now: Date.now, appendsEndMs: 0 }
    await eventually(async () => {
      await settleChanges(service.pool, options, 0)
      return !(await kept())
    }, 20_000)
    await service.pool.query('update store_lineage set last_read_at_ms = 0 where root_key = $1', [
      bought.originalTransactionId,
    ])
    store.tell({ ...bought, signedDate: Date.now() }, 1, { ...renewal, autoRenewStatus: 0 })
    assertRefused(await bring(other, bought), 409, 'app_store_purchase_conflict')
    const [row] = await service.pool.query<{ auto_renews: boolean }>(
      'select auto_renews from store_lineage where root_key = $1',
      [bought.originalTransactionId],
    )
    assert.equal(row?.auto_renews, false, 'it was read again')
    assert.equal(await kept(), false)
  })
})

describe('policies', () => {
  test('first_claim gives what nobody is named for to whoever comes first', async () => {
    await using open = await openStore(service)
    await open.settings({ unbound_purchases: 'first_claim' })
    const [who, other] = [someone(), someone()]
    const value = 'c0c4d5e6-3c1f-4f0e-9a51-6d6a4f8f2f10'
    assert.equal((await open.bring(who, open.transaction(null, { appAccountToken: value }))).status, 200)
    // It is theirs from now on.
    assertRefused(
      await open.bring(other, open.transaction(null, { appAccountToken: value })),
      400,
      'app_store_purchase_owner_unverified',
    )
    assert.equal((await open.bring(who, open.transaction(null, { appAccountToken: value }))).status, 200)
    const bare = open.transaction(null)
    assert.equal((await open.bring(other, bare)).status, 200)
    const [row] = await service.pool.query<{ payload: { appAccountToken: string } }>(
      `select payload from store_outbox where kind = 'account_token' and key = $1`,
      [bare.transactionId],
    )
    assert.equal(row?.payload.appAccountToken, open.tokenOf(other))
  })

  test("the rules' tokens of everybody that events name are known, before any client brings anything", async () => {
    await using open = await openStore(service)
    await open.settings({ unbound_purchases: 'first_claim' })
    const [who, other] = [someone(), someone()]
    await open.app.post('/event', anEvent(who))
    await eventually(async () => {
      const value = open.tokenOf(who)
      return (await service.pool.query('select 1 from account_binding where value = $1', [value])).length === 1
    })
    const bought = open.subscription(who)
    open.store.tell(bought, 1, {})
    assertRefused(await open.bring(other, bought), 400, 'app_store_purchase_owner_unverified')
    const [row] = await service.pool.query<{ public_id: string }>(
      'select public_id from store_lineage where root_key = $1',
      [bought.originalTransactionId],
    )
    await open.project.post(`/purchases/${row?.public_id ?? ''}/reverify`, {})
    assert.equal((await open.entitled(who, 'pro')).allowed, true)
  })

  test('transfer moves a purchase once a day, and never units', async () => {
    await using open = await openStore(service)
    await open.settings({ transfer_policy: 'transfer' })
    const [a, b, c] = [someone(), someone(), someone()]
    const pro = open.transaction(a)
    await open.bring(a, pro)
    const moved = await open.bring(b, pro)
    assert.deepEqual([moved.status, moved.body.idempotent_replay], [200, false])
    assert.equal((await open.entitled(a, 'pro')).allowed, false)
    assert.equal((await open.entitled(b, 'pro')).allowed, true)
    assertRefused(await open.bring(c, pro), 409, 'app_store_purchase_conflict')
    const pack = open.transaction(a, { type: 'Consumable', productId: 'com.example.pack' })
    await open.bring(a, pack)
    assertRefused(await open.bring(b, pack), 409, 'app_store_purchase_conflict')
  })
})

describe('503', () => {
  const unavailable = (answer: Awaited<ReturnType<typeof bring>>) =>
    assertRefused(answer, 503, 'app_store_purchase_unavailable')

  test('the store does not answer, refuses our key, or talks of something else', async () => {
    const who = someone()
    const bought = subscription(who)
    const path = `/inApps/v1/subscriptions/${String(bought.originalTransactionId)}`
    for (const status of [401, 429, 500, 503]) {
      store.answers.set(path, { status, body: { errorCode: 1 } })
      unavailable(await bring(who, bought))
    }
    store.answers.set(path, { status: 429, body: {}, headers: { 'retry-after': String(Date.now() + 42_000) } })
    const limited = await bring(who, bought)
    unavailable(limited)
    const wait = Number(limited.headers.get('retry-after'))
    assert.ok(wait > 35 && wait <= 42, String(wait))
    for (const body of [
      '{',
      '{}',
      { data: [] },
      { data: [{ lastTransactions: [{ ...bought, status: 1, signedTransactionInfo: 'a.b.c' }] }] },
    ]) {
      store.answers.set(path, { status: 200, body })
      assert.equal((await bring(who, bought)).status, 503)
    }
    store.tell({ ...bought, bundleId: 'com.example.other' }, 1)
    unavailable(await bring(who, bought))
    store.tell(bought, 1)
    await attached(who, bought)
  })

  test('a fresh purchase that the store does not know yet is retryable, an old one counts as signed', async () => {
    const who = someone()
    const fresh = subscription(who)
    assertRefused(await bring(who, fresh), 503, 'app_store_purchase_reconciliation_retryable')
    const { customer_id: id } = await attached(who, { ...fresh, signedDate: Date.now() - 20 * 60_000 })
    const [purchase] = (await world.project.get(`/customers/${id}/purchases`)).data
    assert.equal(purchase.unpolled, true)
  })

  test('evidence tried too often rests', async () => {
    const who = someone()
    const transaction_jwt = signApple(world.pki, transaction(who, { bundleId: 'com.example.other' }))
    const body = { type: 'appstore', distinct_id: who, transaction_jwt }
    assertRefused(await app.post('/purchase', body), 400, 'app_store_purchase_invalid')
    const resting = await app.post('/purchase', body)
    unavailable(resting)
    assert.equal(resting.headers.get('retry-after'), '300')
  })

  test('an app without bundle id or Google Play credentials', async () => {
    const bare = await world.project.app('ios')
    unavailable(await bring(someone(), transaction(null), bare))
  })
})

test('credentials can be tried, and remember how that went', async () => {
  const path = `/apps/${app.id}/store_credentials`
  const check = () => world.project.post(`${path}/appstore/check`, {})
  assert.deepEqual(await check(), { object: 'store_credential_check', kind: 'appstore', ok: true, problem: null })
  store.answers.set('/inApps/v1/transactions/1', { status: 401, body: {} })
  assert.equal((await check()).ok, false)
  const { data } = await world.project.get(path)
  const shown = data.find(({ kind }: { kind: string }) => kind === 'appstore')
  assert.ok(shown.last_success_at && shown.last_error_at && shown.last_error.includes('key'))
  assert.equal((await service.workspace('POST', `${path}/playstore/check`, { body: {} })).status, 404)
})

describe('403', () => {
  test("the App Store's purchases need an iOS app's key, Google Play's an Android app's", async () => {
    const android = await world.project.app('android')
    assertRefused(await bring('u', transaction(null), android), 403, 'scope_mismatch')
    assertRefused(
      await app.post('/purchase', { type: 'playstore', distinct_id: 'u', purchase_token: 't' }),
      403,
      'scope_mismatch',
    )
  })
})

describe('live', () => {
  test('a test root is nothing in live, whoever asks', async () => {
    await using live = await openStore(service, { environment: 'live' })
    const who = someone()
    for (const environment of ['Production', 'Sandbox', 'Xcode']) {
      assertRefused(await live.bring(who, live.transaction(who, { environment })), 400, 'app_store_purchase_invalid')
    }
    const rows = await service.pool.query('select 1 from store_lineage where app_id = $1', [live.app.id])
    assert.deepEqual(rows, [])
  })
})

describe('races', () => {
  test('twenty of one customer at once: one attaches, the others replay, units are given once', async () => {
    const who = someone()
    const pack = transaction(who, { type: 'Consumable', productId: 'com.example.pack' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => bring(who, pack)))
    const settled = await Promise.all(
      answers.map((answer) => (answer.status === 503 ? bring(who, pack) : Promise.resolve(answer))),
    )
    assert.deepEqual([...new Set(settled.map(({ status }) => status))], [200])
    assert.equal(settled.filter(({ body }) => !body.idempotent_replay).length, 1)
    assert.equal((await world.entitled(who, 'exports')).balance, 10)
  })

  test('many customers at once: exactly one owner', async () => {
    await using open = await openStore(service)
    await open.settings({ unbound_purchases: 'first_claim' })
    const pack = open.transaction(null, { type: 'Consumable', productId: 'com.example.pack' })
    const all = Array.from({ length: 10 }, someone)
    const answers = await Promise.all(all.map((who) => open.bring(who, pack)))
    const again = await Promise.all(
      answers.map((answer, i) => (answer.status === 503 ? open.bring(all[i] ?? '', pack) : Promise.resolve(answer))),
    )
    assert.deepEqual(
      again.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, ...Array.from({ length: 9 }, () => 409)],
    )
  })
})

async function purchaseOf(who: string) {
  const id = await world.project.customer(who)
  return (await world.project.get(`/customers/${id}/purchases`)).data[0]
}

async function eventuallyEvents(customerId: string): Promise<{ trust: string; properties: Record<string, unknown> }[]> {
  for (let tries = 0; tries < 200; tries++) {
    const { data } = await world.project.get(`/customers/${customerId}/events`)
    const found = data.filter(({ event }: { event: string }) => event === '$purchase_completed')
    if (found.length > 0) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return []
}

test('a merge takes purchases along, and a later claim knows the owner', async () => {
  const [a, b] = [someone(), someone()]
  const bought = transaction(a)
  await attached(a, bought)
  const id = await world.project.customer(b)
  await world.project.post(`/customers/${id}/merge`, { source_distinct_id: a, force: true })
  assert.equal((await attached(b, bought)).idempotent_replay, true)
  assert.equal((await world.entitled(b, 'pro')).allowed, true)
  assert.equal((await purchaseOf(b)).periods[0].evidence, bought.transactionId)
})

test('nothing of the evidence is in any answer of an error', async () => {
  const text = signApple(world.pki, aTransaction({ bundleId: 'other' }))
  const { bytes } = await app.post('/purchase', { type: 'appstore', distinct_id: 'u', transaction_jwt: text })
  assert.ok(!bytes.includes(text.slice(0, 40)))
})
