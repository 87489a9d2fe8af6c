import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { accountOf, dayMs, lineOf, openPlay, packageName } from './play-world.ts'
import { eventually } from './project.ts'

const service = await startService()
const play = await openPlay(service)
after(async () => {
  await play[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const { store, bring, notify } = play
const hour = 3600_000

let people = 0
const someone = () => `holder-${++people}`
const grantsOf = async (distinctId: string) =>
  (await play.project.get(`/customers/${await play.project.customer(distinctId)}/grants`)).data
const spend = (who: string, quantity: number) =>
  play.app.post('/feature/consume', {
    customerId: who,
    featureId: 'exports',
    operationId: `${who}-${Math.random()}`,
    quantity,
  })

/** Waits until the inbox is empty, and says how its notifications ended. */
async function processed(): Promise<void> {
  await eventually(async () => {
    const [row] = await service.pool.query<{ waiting: number }>(
      `select count(*)::int as waiting from store_inbox where status = 'waiting'`,
    )
    return row?.waiting === 0
  })
}
async function told(token: string, kind: 'subscription' | 'one_time' = 'subscription') {
  assert.equal(await notify(token, kind), 204)
  await processed()
}
async function voided(token: string, orderId: string, productType: 1 | 2, refundType: 1 | 2 = 1) {
  const about = { voidedPurchaseNotification: { purchaseToken: token, orderId, productType, refundType } }
  const data = { version: '1.0', packageName, eventTimeMillis: String(Date.now()), ...about }
  assert.equal(await store.push(play.webhook, data), 204)
  await processed()
}
async function bought(more: Parameters<typeof play.subscribe>[1] = {}) {
  const who = someone()
  const order = `GPA.${who}`
  const token = play.subscribe(who, { order, ...more })
  const { status, body } = await bring(who, token)
  assert.equal(status, 200, JSON.stringify(body))
  return { who, token, order }
}
const pollNow = () =>
  service.pool.query('update store_lineage set next_check_at_ms = 0 where next_check_at_ms is not null')

describe('what the webhook answers', () => {
  test('the same message twice is stored once', async () => {
    const { token } = await bought()
    assert.equal(await notify(token, 'subscription', 'message-1'), 204)
    assert.equal(await notify(token, 'subscription', 'message-1'), 204)
    const rows = await service.pool.query(`select id from store_inbox where notification_id = 'message-1'`)
    assert.equal(rows.length, 1)
  })

  test('400 for what is no push, 401 for what nobody vouches for, 404 for no app', async () => {
    const post = (body: unknown, headers: Record<string, string> = {}, url = play.webhook) =>
      fetch(url, {
        ...{ method: 'POST', body: JSON.stringify(body) },
        headers: { 'content-type': 'application/json', ...headers },
      }).then(({ status }) => status)
    assert.equal(await post({}), 400)
    assert.equal(await post({ message: { messageId: '1', data: '' }, subscription: 's' }), 401)
    const bearer = await store.bearer('https://elsewhere.example')
    assert.equal(await store.push(play.webhook, {}, { bearer }), 401)
    assert.equal(
      await store.push(play.webhook, {}, { bearer: await store.bearer(play.webhook, { email: 'x@y.z' }) }),
      401,
    )
    assert.equal(await store.push(play.webhook.replace(/app_.*/, 'app_unknown'), {}), 404)
  })

  test('503 where nothing is configured, so that the store comes again', async () => {
    const bare = await play.project.app('android', 'test')
    assert.equal(await store.push(`${service.url}/webhooks/playstore/${bare.id}`, {}), 503)
  })

  test('204 for what is genuine and not ours, or cannot be read, without a trace', async () => {
    const before = await service.pool.query('select id from store_inbox')
    const foreign = { version: '1.0', packageName: 'com.example.other', eventTimeMillis: '1', testNotification: {} }
    assert.equal(await store.push(play.webhook, foreign), 204)
    assert.equal(await store.push(play.webhook, [7]), 204)
    assert.equal((await service.pool.query('select id from store_inbox')).length, before.length)
  })

  test('what is stored holds no token in the open', async () => {
    const { token } = await bought()
    await told(token)
    const rows = await service.pool.query<{ text: string }>('select to_jsonb(i)::text as text from store_inbox i')
    assert.equal(
      rows.some(({ text }) => text.includes(token)),
      false,
    )
  })
})

describe('renewals', () => {
  test('a new order opens the next period where the one before ended', async () => {
    const end = Date.now() + hour
    const { who, token, order } = await bought({ from: end - 30 * dayMs, until: end })
    await spend(who, 60)
    play.change(token, lineOf('monthly', end + 30 * dayMs, `${order}..0`))
    await told(token)
    const grants = (await grantsOf(who)).filter(({ feature }: { feature: string }) => feature === 'exports')
    assert.equal(grants.length, 2)
    const [next] = grants
    assert.deepEqual([Date.parse(next.starts_at), Date.parse(next.expires_at)], [end, end + 30 * dayMs])
    // Until then the first one counts, and nothing else.
    assert.equal(await play.balance(who), 40)
  })

  test('grace moves the end and brings no units; hold ends access; recovery brings a new period', async () => {
    const end = Date.now() - hour
    const { who, token, order } = await bought({ from: end - 30 * dayMs, until: end + 2 * hour })
    await spend(who, 100)
    play.change(token, {
      subscriptionState: 'SUBSCRIPTION_STATE_IN_GRACE_PERIOD',
      ...lineOf('monthly', end + 3 * dayMs, order),
    })
    await told(token)
    assert.deepEqual([await play.entitled(who), await play.balance(who)], [true, 0])
    play.change(token, { subscriptionState: 'SUBSCRIPTION_STATE_ON_HOLD', ...lineOf('monthly', end, order) })
    await told(token)
    assert.equal(await play.entitled(who), false)
    play.change(token, {
      subscriptionState: 'SUBSCRIPTION_STATE_ACTIVE',
      ...lineOf('monthly', Date.now() + 30 * dayMs, `${order}..0`),
    })
    await told(token)
    assert.deepEqual([await play.entitled(who), await play.balance(who)], [true, 100])
  })

  test('a moved end under the same order moves the period it belongs to', async () => {
    const { who, token, order } = await bought()
    const until = Date.now() + 60 * dayMs
    play.change(token, lineOf('monthly', until, order))
    await told(token)
    const grants = await grantsOf(who)
    assert.equal(grants.length, 2)
    assert.ok(grants.every(({ expires_at }: { expires_at: string }) => Date.parse(expires_at) === until))
  })

  test('an older reading never overwrites a newer one', async () => {
    const { who, token } = await bought()
    await service.pool.query('update store_transaction set version_ms = version_ms + 3600000')
    play.change(token, { subscriptionState: 'SUBSCRIPTION_STATE_EXPIRED' })
    await told(token)
    assert.equal(await play.entitled(who), true)
    await service.pool.query('update store_transaction set version_ms = version_ms - 3600000')
  })
})

describe('attaching without a call', () => {
  test('a purchase whose account id is bound belongs to its customer at once, and is acknowledged', async () => {
    const who = someone()
    const customer = await play.project.customer(who)
    const token = play.subscribe(null, {
      whole: { externalAccountIdentifiers: { obfuscatedExternalAccountId: 'opaque-7' } },
    })
    await play.project.post(`/customers/${customer}/checkout_bindings`, { app_id: play.app.id, value: 'opaque-7' })
    await told(token)
    assert.equal(await play.entitled(who), true)
    await eventually(async () => store.sold.get(token)?.acknowledged)
  })

  test('a pending purchase that was claimed is attached when it is paid', async () => {
    const who = someone()
    const token = play.subscribe(who, { state: 'PENDING', order: null })
    assert.equal((await bring(who, token)).body.detail, 'purchase_pending')
    assert.equal(await play.entitled(who), false)
    play.change(token, {
      ...{ subscriptionState: 'SUBSCRIPTION_STATE_ACTIVE', ...accountOf(who) },
      ...lineOf('monthly', Date.now() + dayMs, 'GPA.paid'),
    })
    await told(token)
    assert.equal(await play.entitled(who), true)
    await eventually(async () => store.sold.get(token)?.acknowledged)
  })

  test('one that nobody can be given stays, unacknowledged, until somebody brings it', async () => {
    const who = someone()
    const token = play.subscribe(who)
    await told(token)
    assert.equal(store.sold.get(token)?.acknowledged, false)
    const { status, body } = await bring(who, token)
    assert.deepEqual([status, body.idempotent_replay], [200, false])
    await eventually(async () => store.sold.get(token)?.acknowledged)
  })

  test('a consumable that a notification brings is acknowledged, not consumed', async () => {
    const who = someone()
    const token = play.buy(who, 'pack')
    await bring(who, token)
    await told(token, 'one_time')
    await eventually(async () => store.sold.get(token)?.acknowledged)
    assert.equal(store.sold.get(token)?.consumed, false)
  })
})

describe('refunds', () => {
  test('a voided order that is the present one ends access though the state says active, for good', async () => {
    const { who, token, order } = await bought()
    await voided(token, order, 1)
    assert.equal(await play.entitled(who), false)
    await told(token)
    assert.equal(await play.entitled(who), false)
  })

  test('an older order changes nothing', async () => {
    const { who, token } = await bought()
    await voided(token, 'GPA.before', 1)
    assert.equal(await play.entitled(who), true)
  })

  test('with the setting off a voided order is left to the state', async () => {
    await play.settings({ play_voided_order_ends_access: false })
    const { who, token, order } = await bought()
    await voided(token, order, 1)
    assert.equal(await play.entitled(who), true)
    await play.settings({ play_voided_order_ends_access: true })
  })

  test('an order that was voided before anybody brought it gives nothing', async () => {
    const who = someone()
    const token = play.subscribe(who, { order: 'GPA.early' })
    await voided(token, 'GPA.early', 1)
    assert.equal((await bring(who, token)).body.detail, 'revoked')
  })

  test('a part of a quantity takes its units from what is left of that purchase, and from no other', async () => {
    const who = someone()
    const first = play.buy(who, 'pack', { quantity: 2 })
    const second = play.buy(who, 'pack', { quantity: 3 })
    await bring(who, first)
    await bring(who, second)
    await spend(who, 15)
    const sold = store.sold.get(first)
    const line = (refundableQuantity: number) => ({
      productLineItem: [
        { productId: 'pack', productOfferDetails: { purchaseOptionId: 'buy', quantity: 2, refundableQuantity } },
      ],
    })
    // 15 of 20 were spent from the first: 5 are left of it, and one pack of ten is given back.
    if (sold) sold.body = { ...sold.body, ...line(1) }
    await voided(first, String(sold?.body.orderId), 2, 2)
    assert.equal(await play.balance(who), 30)
    await told(first, 'one_time')
    assert.equal(await play.balance(who), 30)
    const grants = await grantsOf(who)
    assert.deepEqual(
      grants.map(({ remaining }: { remaining: number }) => remaining).toSorted((a: number, b: number) => a - b),
      [0, 30],
    )
  })

  test('a whole one-time purchase that is taken back takes what is left of it', async () => {
    const who = someone()
    const token = play.buy(who, 'pack', { quantity: 2 })
    await bring(who, token)
    await spend(who, 5)
    play.change(token, { purchaseStateContext: { purchaseState: 'CANCELLED' } })
    await told(token, 'one_time')
    assert.equal(await play.balance(who), 0)
  })

  test('the daily list finds what no notification told', async () => {
    const { who, token, order } = await bought()
    store.voided.push({ purchaseToken: token, orderId: order, voidedTimeMillis: String(Date.now()), voidedReason: 1 })
    await service.pool.query('update play_voided_cursor set due_at_ms = 0')
    await eventually(async () => !(await play.entitled(who)), 15_000)
    store.voided.length = 0
  })
})

describe('polls', () => {
  test('a renewal that no notification told is found', async () => {
    const end = Date.now() - hour
    const { who, token, order } = await bought({ from: end - 30 * dayMs, until: Date.now() + 500 })
    play.change(token, lineOf('monthly', end + 30 * dayMs, `${order}..0`))
    await eventually(async () => !(await play.entitled(who)))
    await pollNow()
    await eventually(() => play.entitled(who))
  })

  test('a store that is late, or cannot be asked, gives a lease once, and not for ever', async () => {
    const until = Date.now() + 300
    const { who, token } = await bought({ from: until - 30 * dayMs, until })
    await eventually(async () => !(await play.entitled(who)))
    store.fault = (call) => (call.startsWith('GET') ? { status: 503 } : undefined)
    await pollNow()
    await eventually(() => play.entitled(who))
    const [grant] = (await grantsOf(who)).filter(({ feature }: { feature: string }) => feature === 'pro')
    assert.equal(Date.parse(grant.expires_at), until + dayMs)
    await pollNow()
    // Looked at, whether or not the calls to the store rest by then: one that is being read is taken for two minutes.
    await eventually(async () => {
      const soon = 'select id from store_lineage where next_check_at_ms < $1'
      return (await service.pool.query(soon, [Date.now() + 3 * 60_000])).length === 0
    }, 30_000)
    assert.equal(Date.parse((await grantsOf(who))[0].expires_at), until + dayMs)
    store.fault = undefined
    // It was not renewed after all.
    play.change(token, { subscriptionState: 'SUBSCRIPTION_STATE_EXPIRED' })
    await eventually(async () => {
      await pollNow()
      return !(await play.entitled(who))
    }, 30_000)
  })
})

describe('telling the store', () => {
  test('a store that fails is told again, and what was done already is done', async () => {
    let failures = 0
    store.fault = (call) => (call === 'POST acknowledge' && failures++ < 2 ? { status: 500 } : undefined)
    const { token } = await bought()
    await eventually(async () => store.sold.get(token)?.acknowledged, 10_000)
    store.fault = undefined
    const already = play.subscribe(someone())
    await service.pool.query(
      `update store_outbox set status = 'waiting', due_at_ms = 0 where kind = 'ack' and status = 'done'`,
    )
    await eventually(async () => {
      const [row] = await service.pool.query<{ open: number }>(
        `select count(*)::int as open from store_outbox where status <> 'done'`,
      )
      return row?.open === 0
    })
    assert.equal(store.sold.get(already)?.acknowledged, false)
  })
})
