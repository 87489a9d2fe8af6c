import assert from 'node:assert/strict'
import { after, afterEach, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { dayMs, openCards } from './card-world.ts'
import { eventually } from './project.ts'

const service = await startService()
const cards = await openCards(service)
after(async () => {
  await cards[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
afterEach(() => {
  store.fault = undefined
})
const { store, tell, buy } = cards

let people = 0
const someone = () => `card-${++people}`
let events = 0

/** What became of an event, once it was looked at. */
async function outcome(id: string): Promise<{ status: string; error: string | null }> {
  return eventually(async () => {
    const [row] = await service.pool.query<{ status: string; error: string | null }>(
      `select status, error from store_inbox where notification_id = $1 and (status <> 'waiting' or error is not null)`,
      [id],
    )
    return row
  })
}

/** Tells, and waits until it was done. */
async function told(type: string, object: string, as = 'done'): Promise<void> {
  const id = `evt_told_${++events}`
  assert.equal(await tell(type, object, id), 200)
  assert.equal((await outcome(id)).status, as, type)
}

const grantsOf = async (who: string) =>
  (await cards.project.get(`/customers/${await cards.project.customer(who)}/grants`)).data
const purchasesOf = async (who: string) =>
  (await cards.project.get(`/customers/${await cards.project.customer(who)}/purchases`)).data

/** Subscribed by card, and told. */
async function subscriber(products: string[], paid?: Parameters<typeof store.pay>[1]) {
  const who = someone()
  const { session, root } = await buy(who, products, paid)
  await told('checkout.session.completed', session)
  return { who, session, root }
}

const itemsOf = (subscription: string) => store.get(subscription).items?.data ?? []

const invoicesOf = (subscription: string) => store.all('invoice').filter((one) => one.subscription === subscription)

describe('what is paid gives access', () => {
  test('a subscription: Features, a purchase of its own, and one fact', async () => {
    const { who, root } = await subscriber(['monthly'])
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 100])
    const [purchase] = await purchasesOf(who)
    assert.equal(purchase.store, 'stripe')
    assert.ok(JSON.stringify(purchase).includes(root))
    const facts = await eventually(async () => {
      const { data } = await cards.project.get(`/customers/${await cards.project.customer(who)}/events`)
      const found = data.filter(({ event }: { event: string }) => event === '$purchase_completed')
      return found.length > 0 && found
    })
    assert.equal(facts.length, 1)
  })

  test('what is bought once, and again by another page', async () => {
    const who = someone()
    for (const balance of [10, 20]) {
      const { session } = await buy(who, ['pack'])
      await told('checkout.session.completed', session)
      assert.equal(await cards.balance(who), balance)
    }
  })

  test('both on one page', async () => {
    const { who } = await subscriber(['monthly', 'pack'])
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 110])
  })

  test('a page that is not paid yet gives nothing; once it is, it does', async () => {
    const who = someone()
    const { session } = await buy(who, ['pack'])
    store.change(session, { payment_status: 'unpaid' })
    await told('checkout.session.completed', session, 'ignored')
    assert.equal(await cards.balance(who), 0)
    store.change(session, { payment_status: 'paid' })
    await told('checkout.session.async_payment_succeeded', session)
    assert.equal(await cards.balance(who), 10)
  })

  test('the next paid invoice is the next period', async () => {
    const from = Date.now() - 31 * dayMs
    const until = Date.now() - dayMs
    const { who, root } = await subscriber(['monthly'], { from, until })
    await cards.app.post('/feature/consume', { customerId: who, featureId: 'exports', operationId: who, quantity: 30 })
    await told('invoice.paid', store.invoice(root, until, until + 30 * dayMs))
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 100])
    await told('invoice.paid', String(invoicesOf(root)[0]?.id))
    assert.equal(await cards.balance(who), 100)
  })

  test('of several prices each leads to the Product, for whoever has it, whichever is sold by now', async () => {
    const sells = (...prices: string[]) => prices.map((price) => ({ store: 'stripe', product_id: price }))
    const grants = [{ feature: 'exports', allowance: 7, interval: 'month' }]
    const { id } = await cards.project.post('/products', {
      ...{ project_id: cards.project.id, key: 'several', name: 'Several', type: 'subscription', grants },
      stores: sells('price_several_b'),
    })
    const until = Date.now() - dayMs
    const early = await subscriber(['several'], { from: until - 30 * dayMs, until })
    await cards.project.patch(`/products/${id}`, { stores: sells('price_several_b', 'price_several_a') })
    const late = await subscriber(['several'])
    const priceOf = (root: string) => itemsOf(root)[0]?.price.id
    assert.deepEqual([priceOf(early.root), priceOf(late.root)], ['price_several_b', 'price_several_a'])
    await told('invoice.paid', store.invoice(early.root, until, until + 30 * dayMs))
    assert.deepEqual([await cards.balance(early.who), await cards.balance(late.who)], [7, 7])

    // From one to the other is another price of the same Product: nobody has both.
    const moved = itemsOf(early.root).map((item) => ({ ...item, price: { id: 'price_several_a' } }))
    store.change(early.root, { items: { data: moved } })
    await told('customer.subscription.updated', early.root)
    assert.equal(await cards.balance(early.who), 7)
  })

  test('two prices of one Product in one subscription give its units twice', async () => {
    await cards.project.post('/products', {
      ...{ project_id: cards.project.id, key: 'pair', name: 'Pair', type: 'subscription' },
      grants: [{ feature: 'exports', allowance: 7, interval: 'month' }],
      stores: ['price_pair_a', 'price_pair_b'].map((price) => ({ store: 'stripe', product_id: price })),
    })
    const { who, root } = await subscriber(['pair'])
    assert.equal(await cards.balance(who), 7)
    const items = itemsOf(root)
    const second = { ...items[0], id: `${root}_second`, price: { id: 'price_pair_b' } }
    store.change(root, { items: { data: [...items, second] } })
    await told('invoice.paid', store.invoice(root, Date.now(), Date.now() + 30 * dayMs))
    assert.equal(await cards.balance(who), 14)
  })

  test('a period that is paid ahead changes nothing before it begins', async () => {
    const until = Date.now() + 10 * dayMs
    const { who, root } = await subscriber(['monthly'], { from: until - 30 * dayMs, until })
    const use = { customerId: who, featureId: 'exports', operationId: `ahead-${who}`, quantity: 30 }
    await cards.app.post('/feature/consume', use)
    await told('invoice.paid', store.invoice(root, until, until + 30 * dayMs))
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 70])
    const [period] = await service.pool.query<{ ends: bigint }>(
      `select max(p.access_until_ms) as ends
       from store_period p
       join store_transaction t on t.id = p.transaction_id
       where t.evidence_key = $1`,
      [root],
    )
    assert.ok(Number(period?.ends) >= Math.floor(until / 1000) * 1000, 'nothing ends before')
  })

  test('amounts are kept in minor units as they came, and nothing of who paid', async () => {
    const { root } = await subscriber(['monthly'])
    const [row] = await service.pool.query<{ claims: { invoices: object[] } }>(
      'select claims from store_transaction where evidence_key = $1',
      [root],
    )
    assert.deepEqual(row?.claims.invoices.length, 1)
    assert.match(JSON.stringify(row?.claims), /"amount_paid": ?4900/)
    const stored = await service.pool.query<{ text: string }>(
      'select claims::text as text from store_transaction union all select payload::text from store_inbox',
    )
    assert.ok(!stored.some(({ text }) => text.includes('somebody@example.com')))
  })

  test('a plan that changes within a period: the new one at once, the old one no longer, and back', async () => {
    const { who, root } = await subscriber(['monthly'])
    const { items } = store.get(root) as { items: { data: { price: { id: string } }[] } }
    const plan = async (price: string) => {
      store.change(root, { items: { data: items.data.map((item) => ({ ...item, price: { id: price } })) } })
      await told('customer.subscription.updated', root)
      return cards.balance(who)
    }
    assert.equal(await plan('price_yearly'), 500)
    assert.equal(await plan('price_monthly'), 100)
    assert.equal(await plan('price_yearly'), 500)
    assert.equal((await grantsOf(who)).length, 4)
  })
})

describe('more invoices than are read at once', () => {
  const weekMs = 7 * dayMs

  test('what was sold with the first of them can be refunded after years', async () => {
    const weeks = 150
    const begins = Date.now() - weeks * weekMs + dayMs
    const { who, root } = await subscriber(['monthly', 'pack'], { from: begins, until: begins + weekMs })
    const first = store.chargeOf(String(invoicesOf(root)[0]?.id))
    for (let week = 1; week < weeks; week++) {
      store.invoice(root, begins + week * weekMs, begins + (week + 1) * weekMs)
    }
    await told('customer.subscription.updated', root)
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 110])
    store.refund(first)
    await told('charge.refunded', first)
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 100])
  })

  test('the one that paid for the year is found behind all that was billed since', async () => {
    const begins = Date.now() - 300 * dayMs
    const { who, root } = await subscriber(['yearly'], { from: begins, until: begins + 365 * dayMs })
    for (let day = 1; day <= 280; day++) {
      const used = { id: `il_${root}_${day}`, subscription_item: null, price: { id: 'price_usage' }, amount: 1 }
      const at = begins + day * dayMs
      store.invoice(root, at, at + dayMs, { billing_reason: 'subscription_update', lines: [used] })
    }
    const before = store.calls.length
    await told('customer.subscription.updated', root)
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 500])
    const lists = store.calls.slice(before).filter(({ call }) => call === 'GET /v1/invoices')
    assert.equal(lists.length, 4)
  })

  test('that of a month is the first one that is read: nobody asks for more', async () => {
    const { root } = await subscriber(['monthly'])
    const before = store.calls.length
    await told('customer.subscription.updated', root)
    assert.equal(store.calls.slice(before).filter(({ call }) => call === 'GET /v1/invoices').length, 1)
  })
})

describe('access by the state of a subscription', () => {
  const rows: [status: string, ended: boolean, access: boolean][] = [
    ['trialing', false, true],
    ['active', false, true],
    ['past_due', false, true],
    ['past_due', true, true],
    ['canceled', false, true],
    ['canceled', true, false],
    ['incomplete', false, false],
    ['incomplete_expired', false, false],
    ['unpaid', false, false],
    ['paused', false, false],
  ]
  for (const [status, ended, access] of rows) {
    test(`${status}, ${ended ? 'after' : 'within'} what was paid: ${access ? 'access' : 'none'}`, async () => {
      const { who, root } = await subscriber(['monthly'], { trial: status === 'trialing' })
      assert.equal(await cards.entitled(who), true)
      if (ended) {
        const [invoice] = invoicesOf(root)
        const period = { start: Math.floor(Date.now() / 1000) - 2_592_000, end: Math.floor(Date.now() / 1000) - 3600 }
        store.change(String(invoice?.id), { lines: invoice?.lines?.map((line) => ({ ...line, period })) })
      }
      store.change(root, { status })
      await told(status === 'canceled' ? 'customer.subscription.deleted' : 'customer.subscription.updated', root)
      assert.equal(await cards.entitled(who), access)
      store.change(root, { status: 'active' })
      await told('customer.subscription.updated', root)
      assert.equal(await cards.entitled(who), true)
    })
  }

  test('grace is as long as it is set to', async () => {
    const hour = 3600_000
    const { who, root } = await subscriber(['monthly'], { from: Date.now() - 30 * dayMs, until: Date.now() - 5 * hour })
    store.change(root, { status: 'past_due' })
    await cards.settings({ card_grace_hours: 4 })
    await told('customer.subscription.updated', root)
    assert.equal(await cards.entitled(who), false)
    await cards.settings({ card_grace_hours: 6 })
    await told('customer.subscription.updated', root)
    assert.equal(await cards.entitled(who), true)
    await cards.settings({ card_grace_hours: 72 })
  })

  test('a state that Stripe does not document changes nothing, and is asked about again', async () => {
    const { who, root } = await subscriber(['monthly'])
    store.change(root, { status: 'dreaming' })
    await told('customer.subscription.updated', root, 'waiting')
    assert.equal(await cards.entitled(who), true)
  })
})

describe('what is taken back', () => {
  test('a refund of the whole ends access; of a part of a subscription it does not', async () => {
    const { who, root } = await subscriber(['monthly'])
    const charge = store.chargeOf(String(invoicesOf(root)[0]?.id))
    store.refund(charge, 100)
    await told('charge.refunded', charge)
    assert.equal(await cards.entitled(who), true)
    store.refund(charge)
    await told('charge.refunded', charge)
    assert.equal(await cards.entitled(who), false)
  })

  test('a refund of an older period leaves access as it is', async () => {
    const until = Date.now() - dayMs
    const { who, root } = await subscriber(['monthly'], { from: until - 30 * dayMs, until })
    await told('invoice.paid', store.invoice(root, until, until + 30 * dayMs))
    const charge = store.chargeOf(String(invoicesOf(root)[0]?.id))
    store.refund(charge)
    await told('charge.refunded', charge)
    assert.deepEqual([await cards.entitled(who), await cards.balance(who)], [true, 100])
  })

  test('a part of units that were bought once: its share of what is left, once', async () => {
    const who = someone()
    const { session, root: charge } = await buy(who, ['pack'])
    await told('checkout.session.completed', session)
    store.refund(charge, 2450)
    for (let n = 0; n < 2; n++) await told('charge.refunded', charge)
    assert.equal(await cards.balance(who), 5)
    store.refund(charge)
    await told('charge.refunded', charge)
    assert.equal(await cards.balance(who), 0)
  })

  test('a dispute ends access while its money is gone; one that was won gives it back', async () => {
    const { who, root } = await subscriber(['monthly'])
    const charge = store.chargeOf(String(invoicesOf(root)[0]?.id))
    const dispute = store.dispute(charge, 'warning_needs_response')
    await told('charge.dispute.created', dispute)
    assert.equal(await cards.entitled(who), true, 'an inquiry takes no money')
    for (const [status, type, access] of [
      ['needs_response', 'charge.dispute.funds_withdrawn', false],
      ['won', 'charge.dispute.closed', true],
      ['lost', 'charge.dispute.closed', false],
    ] as const) {
      store.change(dispute, { status })
      await told(type, dispute)
      assert.equal(await cards.entitled(who), access, status)
    }
  })
})

describe('events', () => {
  test('any order, any number of times: the same grants', async () => {
    const who = someone()
    const { session, root } = await buy(who, ['monthly'])
    const invoice = String(invoicesOf(root)[0]?.id)
    for (let round = 0; round < 2; round++) {
      await told('customer.subscription.updated', root)
      await told('invoice.paid', invoice)
      await told('checkout.session.completed', session)
    }
    assert.equal(await cards.balance(who), 100)
    assert.equal((await grantsOf(who)).length, 2)
  })

  test('all at once: one attach', async () => {
    const who = someone()
    const { session, root } = await buy(who, ['monthly'])
    const ids = Array.from({ length: 8 }, () => `evt_once_${++events}`)
    await Promise.all(
      ids.map((id, n) =>
        tell(n % 2 ? 'customer.subscription.updated' : 'checkout.session.completed', n % 2 ? root : session, id),
      ),
    )
    for (const id of ids) {
      await eventually(async () => (await outcome(id)).status === 'done', 15_000)
    }
    assert.equal((await grantsOf(who)).length, 2)
  })

  test('the same event is stored once', async () => {
    const who = someone()
    const { session } = await buy(who, ['pack'])
    const before = store.calls.length
    for (let n = 0; n < 3; n++)
      assert.equal(await tell('checkout.session.completed', session, `evt_same_${session}`), 200)
    await outcome(`evt_same_${session}`)
    const read = store.calls.slice(before).filter(({ call }) => call.endsWith('line_items'))
    assert.equal(read.length, 1)
  })

  test('what an event says is not believed: the object is read again', async () => {
    const who = someone()
    const { body } = await cards.checkout(who, ['pack'])
    const { id } = body.checkout
    const raw = JSON.stringify({
      ...{ id: `evt_lie_${id}`, type: 'checkout.session.completed' },
      data: { object: { id, payment_status: 'paid', status: 'complete' } },
    })
    assert.equal(await store.send(cards.webhook, { type: '', object: '', raw }), 200)
    assert.equal((await outcome(`evt_lie_${id}`)).status, 'ignored')
    assert.equal(await cards.balance(who), 0)
  })

  test('what the app did not sell, what is of the other mode, and other events give nothing', async () => {
    const who = someone()
    const { session, root } = await buy(who, ['monthly'])
    const { metadata } = store.get(root)
    store.change(root, { metadata: {} })
    await told('customer.subscription.updated', root, 'ignored')
    store.change(root, { metadata: { ...(metadata as object), app: 'app_other' } })
    await told('customer.subscription.updated', root, 'ignored')
    store.change(root, { metadata, livemode: true })
    await told('customer.subscription.updated', root, 'ignored')
    await told('customer.created', session, 'ignored')
    await told('invoice.paid', 'in_unknown', 'ignored')
    assert.equal(await cards.entitled(who), false)
  })

  test('a price that leads to no Product yet waits for the link', async () => {
    const who = someone()
    const { session, root } = await buy(who, ['monthly'])
    const { items } = store.get(root) as { items: { data: object[] } }
    store.change(root, { items: { data: items.data.map((item) => ({ ...item, price: { id: 'price_new' } })) } })
    await told('checkout.session.completed', session, 'waiting')
    await cards.project.post('/products', {
      ...{ project_id: cards.project.id, key: `new_${people}`, name: 'New', type: 'subscription' },
      ...{ grants: [{ feature: 'pro' }], stores: [{ store: 'stripe', product_id: 'price_new' }] },
    })
    await eventually(() => cards.entitled(who), 15_000)
  })

  test('while Stripe is silent an event waits, and is done when it speaks again', async () => {
    const who = someone()
    const { session } = await buy(who, ['pack'])
    store.fault = () => ({ status: 500 })
    await told('checkout.session.completed', session, 'waiting')
    assert.equal(await cards.balance(who), 0)
    store.fault = undefined
    await eventually(async () => (await cards.balance(who)) === 10, 15_000)
  })

  test('what the test secret signed reaches test data only', async () => {
    await service.workspace('PUT', `/apps/${cards.app.id}/store_credentials`, {
      environment: 'live',
      body: { kind: 'stripe', secret_key: 'sk_live_1', webhook_secret: 'whsec_live' },
    })
    const { who } = await subscriber(['monthly'])
    assert.equal(await cards.entitled(who), true)
    const rows = await service.pool.query<{ environment: string }>(
      `select distinct s.environment from store_inbox i join scope s on s.id = i.scope_id`,
    )
    assert.deepEqual(rows, [{ environment: 'test' }])
  })
})

describe('customers', () => {
  test('a page that was opened before two customers were merged pays for who is left', async () => {
    const [a, b] = [someone(), someone()]
    await cards.project.customer(a)
    const { session } = await buy(b, ['monthly'])
    await cards.project.post(`/customers/${await cards.project.customer(a)}/merge`, { source_distinct_id: b })
    await told('checkout.session.completed', session)
    assert.deepEqual([await cards.entitled(a), await cards.entitled(b)], [true, true])
  })

  test("a deleted customer: the page is forgotten, and what is paid on it is nobody's", async () => {
    const who = someone()
    const { session } = await buy(who, ['monthly'])
    const count = async () =>
      (await service.pool.query('select id from checkout_session where session_id = $1', [session])).length
    assert.equal(await count(), 1)
    await cards.project.delete(`/customers/${await cards.project.customer(who)}`)
    await eventually(async () => (await count()) === 0, 15_000)
    await told('checkout.session.completed', session)
    const [row] = await service.pool.query<{ owner_customer_id: string | null }>(
      'select owner_customer_id from store_lineage order by id desc limit 1',
    )
    assert.equal(row?.owner_customer_id, null)
  })

  test('an operator has a purchase read again', async () => {
    const { who, root } = await subscriber(['monthly'])
    const [purchase] = await purchasesOf(who)
    store.change(root, { status: 'unpaid' })
    const answer = await cards.project.post(`/purchases/${purchase.id}/reverify`)
    assert.equal(answer.status, 'billing_retry', JSON.stringify(answer))
    assert.equal(await cards.entitled(who), false)
  })
})
