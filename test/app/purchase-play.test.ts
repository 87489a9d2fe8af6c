import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { dayMs, lineOf, openPlay } from './play-world.ts'
import { assertRefused, eventually } from './project.ts'

const service = await startService()
const play = await openPlay(service)
after(async () => {
  await play[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const { store, bring } = play

let people = 0
const someone = () => `android-${++people}`
const hour = 3600_000

async function attached(distinctId: string, token: string, more: object = {}) {
  const { status, body } = await bring(distinctId, token, more)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const isAcknowledged = (token: string) => eventually(async () => store.sold.get(token)?.acknowledged)
const grantsOf = async (distinctId: string) =>
  (await play.project.get(`/customers/${await play.project.customer(distinctId)}/grants`)).data
const unsupported = (answer: Awaited<ReturnType<typeof bring>>, detail: string) => {
  assertRefused(answer, 400, 'android_store_purchase_unsupported')
  assert.equal(answer.body.detail, detail)
}

describe('200', () => {
  test('a subscription gives access, names its product and is acknowledged after that', async () => {
    const who = someone()
    const token = play.subscribe(who, { order: 'GPA.A', offerId: 'intro' })
    const body = await attached(who, token)
    const { features, catalog_product, ...rest } = body
    assert.deepEqual(rest, {
      ...{ success: true, customer_id: await play.project.customer(who), idempotent_replay: false },
      ...{ purchase_token: token, order_id: 'GPA.A' },
    })
    const { id, ...product } = catalog_product
    assert.match(id, /^prod_/)
    assert.deepEqual(product, {
      ...{ store_product_id: 'monthly', base_plan_id: 'base', purchase_option_id: null, offer_id: 'intro' },
      store_product_type: 'subscription',
    })
    assert.deepEqual(features.map(({ id: key }: { id: string }) => key).toSorted(), ['exports', 'pro'])
    assert.equal(await play.entitled(who), true)
    await isAcknowledged(token)
  })

  test('replays answer as the first time, grant nothing twice and name the product again', async () => {
    const who = someone()
    const token = play.subscribe(who)
    const first = await attached(who, token)
    await play.app.post('/feature/consume', {
      customerId: who,
      featureId: 'exports',
      operationId: `op-${who}`,
      quantity: 30,
    })
    for (let n = 0; n < 3; n++) {
      const again = await attached(who, token)
      assert.equal(again.idempotent_replay, true)
      assert.deepEqual(again.catalog_product, first.catalog_product)
      assert.equal(again.features.find(({ id }: { id: string }) => id === 'exports').balance, 70)
    }
    assert.equal((await grantsOf(who)).length, 2)
  })

  test('what was read within the last minute is not read again, unless the client says something else of it', async () => {
    const who = someone()
    const token = play.subscribe(who)
    await attached(who, token)
    const reads = () => store.calls.filter((call) => call === 'GET subscriptionsv2').length
    const before = reads()
    await attached(who, token, { product_id: 'monthly', base_plan_id: 'base', product_type: 'subscription' })
    assert.equal(reads(), before)
    assertRefused(await bring(who, token, { product_id: 'yearly' }), 400, 'android_store_purchase_invalid')
    assert.equal(reads(), before + 1)
  })

  test('a consumable gives its units as often as it was bought, and is consumed only when asked', async () => {
    const who = someone()
    const token = play.buy(who, 'pack', { quantity: 3 })
    const body = await attached(who, token)
    assert.equal(body.features.find(({ id }: { id: string }) => id === 'exports').balance, 30)
    assert.equal(body.catalog_product.store_product_type, 'one_time')
    await isAcknowledged(token)
    assert.equal(store.sold.get(token)?.consumed, false)
    await attached(who, token, { consume_purchase: true })
    await eventually(async () => store.sold.get(token)?.consumed)
    assert.equal(await play.balance(who), 30)
  })

  test('units that were given back before they were brought are not given', async () => {
    const who = someone()
    await attached(who, play.buy(who, 'pack', { quantity: 3, refundableQuantity: 2 }))
    assert.equal(await play.balance(who), 20)
  })

  test('one that was bought for good has no end', async () => {
    const who = someone()
    const token = play.buy(who, 'lifetime')
    await attached(who, token, { product_type: 'one_time' })
    const [grant] = await grantsOf(who)
    assert.equal(grant.expires_at, null)
  })

  test('a promo code has no order, and is one purchase all the same', async () => {
    const who = someone()
    const token = play.subscribe(who, { order: null, line: { signupPromotion: { oneTimeCode: {} } } })
    const body = await attached(who, token)
    assert.equal('order_id' in body, false)
    assert.equal((await attached(who, token)).idempotent_replay, true)
  })

  test('a token of 16,384 characters is taken and kept sealed, a longer one is not', async () => {
    const who = someone()
    const sold = play.subscribe(who)
    const token = 't'.repeat(16_384)
    store.sold.set(token, store.sold.get(sold) ?? assert.fail())
    assert.equal((await attached(who, token)).purchase_token.length, 16_384)
    const [row] = await service.pool.query<{ token_sealed: string }>(
      'select token_sealed from store_transaction where evidence_key = $1',
      [hash('sha256', token)],
    )
    assert.ok(row && !row.token_sealed.includes('tttt'))
    await isAcknowledged(token)
    assertRefused(await bring(who, `${token}t`), 400, 'invalid_request', 'purchase_token')
  })

  test('a change of plan takes the place of the purchase before, keeps its owner and is acknowledged too', async () => {
    const who = someone()
    const old = play.subscribe(who)
    await attached(who, old)
    // The new token is somebody else's by its account id: whoever owns the subscription keeps it.
    const next = play.subscribe(someone(), {
      productId: 'yearly',
      from: Date.now(),
      whole: { linkedPurchaseToken: old },
    })
    await attached(who, next)
    assert.equal(await play.balance(who), 500)
    await isAcknowledged(next)
    // Google calls the old one active for a while: it never comes back.
    assert.equal((await attached(who, old)).idempotent_replay, true)
    assert.equal(await play.balance(who), 500)
  })

  test('a pending change of plan changes nothing', async () => {
    const who = someone()
    const old = play.subscribe(who)
    await attached(who, old)
    const next = play.subscribe(who, {
      ...{ productId: 'yearly', state: 'PENDING', order: null },
      whole: { linkedPurchaseToken: old },
    })
    await bring(who, next)
    assert.equal(await play.balance(who), 100)
    assert.equal(store.sold.get(next)?.acknowledged, false)
  })

  test('a downgrade that waits for the end keeps what is left of the period', async () => {
    const who = someone()
    const until = Date.now() + 20 * dayMs
    const old = play.subscribe(who, { productId: 'yearly', until, order: 'GPA.D' })
    await attached(who, old)
    await play.app.post('/feature/consume', {
      customerId: who,
      featureId: 'exports',
      operationId: `op-${who}`,
      quantity: 400,
    })
    const next = play.subscribe(who, { from: Date.now(), whole: { linkedPurchaseToken: old } })
    const [kept] = lineOf('yearly', until, 'GPA.D', { deferredItemReplacement: { productId: 'monthly' } }).lineItems
    play.change(next, { lineItems: [kept, { productId: 'monthly', offerDetails: { basePlanId: 'base' } }] })
    await attached(who, next)
    assert.equal(await play.balance(who), 100)
    assert.equal((await grantsOf(who)).length, 2)
  })

  test('a resubscription from the Play app belongs to whoever had it before', async () => {
    const who = someone()
    const old = play.subscribe(who)
    await attached(who, old)
    const context = { expiredPurchaseToken: old }
    const next = play.subscribe(null, { from: Date.now(), whole: { outOfAppPurchaseContext: context } })
    assert.equal((await attached(who, next)).idempotent_replay, true)
    await isAcknowledged(next)
  })
})

describe('400', () => {
  test('each state without access says why', async () => {
    const table: [state: string, detail: string, until?: number][] = [
      ['CANCELED', 'expired', Date.now() - hour],
      ['EXPIRED', 'expired'],
      ['ON_HOLD', 'on_hold'],
      ['PAUSED', 'paused'],
      ['PENDING_PURCHASE_CANCELED', 'purchase_canceled'],
    ]
    for (const [state, detail, until = Date.now() + hour] of table) {
      const who = someone()
      unsupported(await bring(who, play.subscribe(who, { state, until })), detail)
    }
    const who = someone()
    unsupported(await bring(who, play.subscribe(who, { state: 'PENDING', order: null })), 'purchase_pending')
    const once = (state: string) => play.buy(who, 'lifetime', {}, { purchaseStateContext: { purchaseState: state } })
    unsupported(await bring(who, once('PENDING')), 'purchase_pending')
    unsupported(await bring(who, once('CANCELLED')), 'purchase_canceled')
    unsupported(await bring(who, play.buy(who, 'lifetime', { rentOfferDetails: {} })), 'rental')
  })

  test('whoever the account id does not name is not the owner', async () => {
    const token = play.subscribe('somebody-else')
    assertRefused(await bring(someone(), token), 400, 'android_store_purchase_owner_unverified')
    assertRefused(await bring(someone(), play.subscribe(null)), 400, 'android_store_purchase_owner_unverified')
  })

  test('what the client says must be so, and only consumables are consumed', async () => {
    const who = someone()
    const invalid = async (more: object, token = play.subscribe(who)) =>
      assertRefused(await bring(who, token, more), 400, 'android_store_purchase_invalid')
    await invalid({ product_id: 'yearly' })
    await invalid({ base_plan_id: 'other' })
    await invalid({ offer_id: 'intro' })
    await invalid({ product_type: 'one_time' })
    await invalid({ package_name: 'com.example.other' })
    await invalid({ consume_purchase: true })
    await invalid({ consume_purchase: true }, play.buy(who, 'lifetime'))
  })

  test('a token that the store does not know is asked once more, and then not again for a while', async () => {
    const who = someone()
    const reads = () => store.calls.filter((call) => call.startsWith('GET')).length
    const before = reads()
    assertRefused(await bring(who, 'nobody-knows-it'), 400, 'android_store_purchase_invalid')
    assert.equal(reads(), before + 4)
    // Somebody else brings it: it rests for them too.
    assertRefused(
      await bring(someone(), 'nobody-knows-it', { product_type: 'subscription' }),
      429,
      'android_store_purchase_unavailable',
    )
    assert.equal(reads(), before + 4)
  })

  test('a real purchase is not for a test key', async () => {
    const who = someone()
    assertRefused(
      await bring(who, play.subscribe(who, { whole: { testPurchase: undefined } })),
      400,
      'android_store_purchase_invalid',
    )
  })

  test('a dead token of a purchase that nobody knows has expired; one that we know is answered from what is stored', async () => {
    const who = someone()
    const token = play.subscribe(who)
    const known = play.subscribe(who)
    await attached(who, known)
    store.fault = (call) => (call.startsWith('GET') ? { status: 410 } : undefined)
    unsupported(await bring(who, token), 'evidence_expired')
    await service.pool.query('update store_lineage set last_read_at_ms = 0')
    const body = await attached(who, known)
    assert.deepEqual([body.idempotent_replay, body.catalog_product.store_product_id], [true, 'monthly'])
    store.fault = undefined
  })

  test('a product that leads to no Product is refused, and attached when it does', async () => {
    const who = someone()
    const token = play.subscribe(who, { productId: 'unmapped' })
    assertRefused(await bring(who, token), 400, 'android_store_purchase_invalid')
    const [claim] = await service.pool.query<{ reason: string }>(
      'select reason from pending_claim where evidence_key = $1',
      [hash('sha256', token)],
    )
    assert.equal(claim?.reason, 'unmapped_product')
  })
})

describe('409', () => {
  test('a purchase of another customer, and one that was used up elsewhere', async () => {
    const [owner, other] = [someone(), someone()]
    const token = play.subscribe(owner)
    await attached(owner, token)
    assertRefused(await bring(other, token), 409, 'android_store_purchase_conflict')
    const used = play.buy(other, 'pack')
    const sold = store.sold.get(used)
    if (sold) sold.consumed = true
    assertRefused(await bring(other, used), 409, 'android_store_purchase_conflict')
    const two = { linkedPurchaseToken: 'one', outOfAppPurchaseContext: { expiredPurchaseToken: 'another' } }
    assertRefused(await bring(other, play.subscribe(other, { whole: two })), 409, 'android_store_purchase_conflict')
  })
})

describe('429 and 503', () => {
  const failing = async (
    fault: { status: number; headers?: Record<string, string> },
    token = play.subscribe(someone()),
  ) => {
    store.fault = (call) => (call.startsWith('GET') ? fault : undefined)
    const answer = await bring(someone(), token)
    store.fault = undefined
    return answer
  }

  test('when Google limits us the caller waits as long', async () => {
    const answer = await failing({ status: 429, headers: { 'retry-after': '17' } })
    assertRefused(answer, 429, 'android_store_purchase_unavailable')
    assert.equal(answer.headers.get('retry-after'), '17')
  })

  test('a store that fails or refuses our key leaves no verdict', async () => {
    for (const status of [500, 503, 403, 401]) {
      const answer = await failing({ status })
      assertRefused(answer, 503, 'android_store_purchase_unavailable')
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
  })

  test('a state that nobody knows is asked for again', async () => {
    const who = someone()
    const answer = await bring(who, play.subscribe(who, { state: 'OF_TOMORROW' }))
    assertRefused(answer, 503, 'android_store_purchase_reconciliation_retryable')
    assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  })

  test('an app without a key file decides nothing', async () => {
    const bare = await play.project.app('android', 'test')
    const answer = await bare.post('/purchase', { type: 'playstore', distinct_id: someone(), purchase_token: 'x' })
    assertRefused(answer, 503, 'android_store_purchase_unavailable')
  })
})

test('one purchase brought by many at once is attached once', async () => {
  const who = someone()
  const token = play.subscribe(who)
  const answers = await Promise.all(Array.from({ length: 8 }, () => bring(who, token)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(8).fill(200),
  )
  assert.equal(answers.filter(({ body }) => !body.idempotent_replay).length, 1)
  assert.equal((await grantsOf(who)).length, 2)
})

test('no log line, answer or listing holds a token', async () => {
  const who = someone()
  const token = play.subscribe(who)
  await attached(who, token)
  await isAcknowledged(token)
  const [purchase] = (await play.project.get(`/customers/${await play.project.customer(who)}/purchases`)).data
  const trail = await play.project.get(`/purchases/${purchase.id}`)
  assert.doesNotMatch(JSON.stringify(trail), new RegExp(token))
  const rows = await service.pool.query<{ text: string }>(
    `select to_jsonb(t)::text as text from store_transaction t
     union all select to_jsonb(o)::text from store_outbox o
     union all select to_jsonb(r)::text from purchase_result r`,
  )
  assert.equal(
    rows.some(({ text }) => text.includes(token)),
    false,
  )
})
