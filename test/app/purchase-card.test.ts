import assert from 'node:assert/strict'
import { after, afterEach, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { openCards, returnTo } from './card-world.ts'
import { assertRefused } from './project.ts'

const service = await startService()
const cards = await openCards(service)
after(async () => {
  await cards[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
afterEach(() => {
  cards.store.fault = undefined
})
const { store, checkout } = cards

let people = 0
const someone = () => `payer-${++people}`
const opened = () => store.calls.filter(({ call }) => call === 'POST /v1/checkout/sessions')

describe('200', () => {
  test('a page to pay on: nothing is attached yet', async () => {
    const who = someone()
    const { status, body } = await checkout(who, ['monthly'])
    assert.equal(status, 200, JSON.stringify(body))
    const { checkout: page, ...rest } = body
    assert.deepEqual(rest, {
      ...{ success: false, customer_id: await cards.project.customer(who), features: [], idempotent_replay: false },
    })
    const { url, expires_at } = store.get(page.id)
    assert.deepEqual(page, { id: page.id, url, expires_at: new Date(Number(expires_at) * 1000).toISOString() })
    assert.equal(await cards.entitled(who), false)
  })

  test('the page names the customer, and carries project, app, environment and Products', async () => {
    const who = someone()
    const { body } = await checkout(who, ['monthly', 'yearly', 'pack'])
    const session = store.get(body.checkout.id)
    assert.equal(session.client_reference_id, body.customer_id)
    const { checkout: id, product_0, ...metadata } = session.metadata as Record<string, string>
    assert.match(String(id), /^chk_/)
    assert.match(String(product_0), /^prod_/)
    assert.deepEqual(Object.keys(metadata).toSorted(), ['app', 'environment', 'product_1', 'product_2', 'project'])
    assert.deepEqual([metadata.project, metadata.app, metadata.environment], [cards.project.id, cards.app.id, 'test'])
    assert.deepEqual(session.carried, session.metadata)
    const sent = opened().at(-1)
    assert.equal(sent?.form.get('mode'), 'subscription')
    assert.equal(sent?.form.get('success_url'), returnTo)
    assert.equal(sent?.form.has('cancel_url'), false)
    // A page is all that a publishable key can start: no customer of Stripe, no card, no price of its own.
    for (const name of ['customer', 'payment_method_types', 'line_items[0][price_data]']) {
      assert.equal(sent?.form.has(name), false, name)
    }
    assert.match(String(sent?.headers['idempotency-key']), /^[0-9a-f]{64}$/)
  })

  test('what is bought once is a payment; Products are named by id or key, from any platform', async () => {
    const who = someone()
    const first = await checkout(who, ['pack'])
    const session = store.get(first.body.checkout.id)
    assert.equal(session.mode, 'payment')
    const { product_0: id } = session.metadata as Record<string, string>
    for (const platform of ['ios', 'android'] as const) {
      const app = await cards.project.app(platform, 'test')
      const answer = await app.post('/purchase', { type: 'stripe', customerId: who, productIds: [id] })
      assertRefused(answer, 400, 'stripe_purchase_unsupported')
    }
    const again = await checkout(who, [String(id)])
    assert.equal(again.body.checkout.id, first.body.checkout.id)
  })

  test('the same command has the same page, in parallel too; another one has another', async () => {
    const who = someone()
    const answers = await Promise.all(Array.from({ length: 6 }, () => checkout(who, ['monthly'])))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ body }) => body.checkout.id)).size, 1)
    const again = await checkout(who, ['monthly'])
    assert.deepEqual([again.body.idempotent_replay, again.body.checkout], [true, answers[0]?.body.checkout])
    const others = [
      await checkout(who, ['yearly']),
      await checkout(someone(), ['monthly']),
      await checkout(who, ['monthly'], { idempotencyKey: 'k' }),
      await checkout(who, ['monthly'], { cancelUrl: returnTo }),
    ]
    const ids = [again, ...others].map(({ body }) => body.checkout.id)
    assert.equal(new Set(ids).size, 5)
  })

  /** The keys that a page was asked for with: by a command whose first try fails so, and by its second. */
  async function keysAfter(
    fault: ReturnType<NonNullable<typeof store.fault>>,
    code: string,
  ): Promise<[string, string]> {
    const who = someone()
    store.fault = () => fault
    const answer = await checkout(who, ['monthly'])
    assert.equal(answer.body.code, code)
    store.fault = undefined
    assert.equal((await checkout(who, ['monthly'])).status, 200)
    const [first, second] = opened()
      .slice(-2)
      .map(({ headers }) => String(headers['idempotency-key']))
    return [String(first), String(second)]
  }

  test('when Stripe was not heard, or would not listen, the same page is asked for again with the same key', async () => {
    for (const fault of ['silence', { status: 429 }, { status: 200, body: '{"id":' }] as const) {
      const [first, second] = await keysAfter(fault, 'stripe_purchase_unavailable')
      assert.equal(second, first)
    }
  })

  test('what Stripe refused or failed at it would say to that key for a day: the next try has another one', async () => {
    const [failed, after] = await keysAfter({ status: 500 }, 'stripe_purchase_unavailable')
    assert.notEqual(after, failed)
    const refusal = { status: 400, body: '{"error":{"code":"resource_missing"}}' }
    const [refused, mended] = await keysAfter(refusal, 'stripe_purchase_invalid')
    assert.notEqual(mended, refused)
  })

  test('of several prices the first by id is sold', async () => {
    const prices = ['price_several_c', 'price_several_a', 'price_several_b']
    const { id } = await cards.project.post('/products', {
      ...{ project_id: cards.project.id, key: 'several', name: 'Several', type: 'subscription' },
      ...{ grants: [{ feature: 'pro' }], stores: prices.map((price) => ({ store: 'stripe', product_id: price })) },
    })
    const sold = async () => {
      assert.equal((await checkout(someone(), ['several'])).status, 200)
      return opened().at(-1)?.form.get('line_items[0][price]')
    }
    assert.equal(await sold(), 'price_several_a')
    const stores = prices.toSpliced(1, 1).map((price) => ({ store: 'stripe', product_id: price }))
    await cards.project.patch(`/products/${id}`, { stores })
    assert.equal(await sold(), 'price_several_b')
  })

  test('people return to addresses on the list only, with any query', async () => {
    const who = someone()
    for (const url of [`${returnTo}?session={CHECKOUT_SESSION_ID}`, 'https://shop.example.com/b/c?d=1']) {
      const { status, body } = await checkout(who, ['monthly'], { successUrl: url, cancelUrl: url })
      assert.equal(status, 200, JSON.stringify(body))
      const { form } = opened().at(-1) ?? {}
      assert.deepEqual([form?.get('success_url'), form?.get('cancel_url')], [url, url])
    }
  })

  test('twenty Products', async () => {
    const keys = await Promise.all(
      Array.from({ length: 21 }, async (_, n) => {
        const { key } = await cards.project.post('/products', {
          ...{ project_id: cards.project.id, key: `many_${n}`, name: 'Many', type: 'one_time' },
          ...{ grants: [{ feature: 'pro' }], stores: [{ store: 'stripe', product_id: `price_many_${n}` }] },
        })
        return key
      }),
    )
    assert.equal((await checkout(someone(), keys.slice(0, 20))).status, 200)
    assertRefused(await checkout(someone(), keys), 400, 'invalid_request', 'productIds')
  })
})

describe('400', () => {
  test('not_configured: an app without credentials, and one without an address to return to', async () => {
    const app = await cards.project.app('ios', 'test')
    const ask = () => app.post('/purchase', { type: 'stripe', customerId: someone(), productIds: ['monthly'] })
    const before = await ask()
    assertRefused(before, 400, 'stripe_purchase_unsupported')
    assert.equal(before.body.detail, 'not_configured')
    await service.workspace('PUT', `/apps/${app.id}/store_credentials`, {
      body: { kind: 'stripe', secret_key: 'sk_test_1', webhook_secret: 'whsec_1' },
    })
    assert.equal((await ask()).body.detail, 'not_configured')
  })

  test('a refused command makes no customer', async () => {
    const who = someone()
    assertRefused(await checkout(who, ['unsold']), 400, 'stripe_purchase_invalid')
    assertRefused(await checkout(who, ['monthly'], { successUrl: 'https://evil.example.com/' }), 400, 'invalid_request')
    const { data } = await cards.project.get(`/customers?project_id=${cards.project.id}&distinct_id=${who}`)
    assert.deepEqual(data, [])
  })

  test('stripe_purchase_invalid: a Product that is unknown, archived or has no price; a price that Stripe refuses', async () => {
    const who = someone()
    const gone = await cards.project.post('/products', {
      ...{ project_id: cards.project.id, key: 'gone', name: 'Gone', type: 'one_time', grants: [{ feature: 'pro' }] },
      stores: [{ store: 'stripe', product_id: 'price_gone' }],
    })
    await cards.project.post(`/products/${gone.id}/archive`)
    for (const id of ['nothing', 'unsold', 'gone', gone.id]) {
      assertRefused(await checkout(who, ['monthly', id]), 400, 'stripe_purchase_invalid')
    }
    store.fault = () => ({ status: 400, body: '{"error":{"code":"resource_missing","message":"No such price"}}' })
    const answer = await checkout(who, ['lifetime'])
    assertRefused(answer, 400, 'stripe_purchase_invalid')
    assert.ok(!JSON.stringify(answer.body).includes('No such price'))
  })

  for (const url of [
    ...['https://evil.example.com/paid', 'https://shop.example.com/paid/more', 'https://shop.example.com/bx'],
    ...['http://shop.example.com/paid', 'https://a@shop.example.com/paid', 'javascript:alert(1)', '/paid', 'x'],
    ...[
      'https://shop.example.com/b/../c',
      'https://shop.example.com:444/paid',
      'https://shop.example.com.evil.com/paid',
    ],
  ]) {
    test(`nobody returns to ${url}`, async () => {
      assertRefused(await checkout(someone(), ['monthly'], { successUrl: url }), 400, 'invalid_request', 'successUrl')
      assertRefused(await checkout(someone(), ['monthly'], { cancelUrl: url }), 400, 'invalid_request', 'cancelUrl')
    })
  }

  test('each type has its form', async () => {
    const ask = (body: object) => cards.app.post('/purchase', body as Record<string, unknown>)
    assertRefused(
      await ask({ type: 'stripe', distinct_id: 'a', productIds: ['x'] }),
      400,
      'invalid_request',
      'customerId',
    )
    assertRefused(await ask({ type: 'stripe', customerId: 'a' }), 400, 'invalid_request', 'productIds')
    assertRefused(await checkout('a', []), 400, 'invalid_request', 'productIds')
    assertRefused(await checkout('a', ['monthly', 'monthly']), 400, 'invalid_request', 'productIds')
    assertRefused(await checkout('guest', ['monthly']), 400, 'invalid_request', 'customerId')
    assertRefused(await checkout('a', ['monthly'], { idempotencyKey: '' }), 400, 'invalid_request', 'idempotencyKey')
    assertRefused(await ask({ type: 'appstore', customerId: 'a' }), 400, 'invalid_request', 'distinct_id')
    assertRefused(await ask({ type: 'paypal', customerId: 'a' }), 400, 'invalid_request', 'type')
    assertRefused(await ask({ customerId: 'a' }), 400, 'invalid_request', 'type')
    const extra = await checkout(someone(), ['monthly'], { something: 1, distinct_id: 'b' })
    assert.equal(extra.status, 200, 'fields that nobody knows are ignored')
  })
})

test('410: a deleted customer', async () => {
  const who = someone()
  await cards.project.customer(who)
  await cards.project.tombstone(who)
  assertRefused(await checkout(who, ['monthly']), 410, 'customer_deleted')
})

describe('503', () => {
  for (const [name, fault] of [
    ['Stripe is down', { status: 503 }],
    ['the key is refused', { status: 401 }],
    ['Stripe wants us to wait', { status: 429, headers: { 'retry-after': '7' } }],
    ['the answer is no page', { status: 200, body: '{"id":1}' }],
    ['the page is no page', { status: 200, body: '{"id":"cs_1","url":"javascript:alert(1)","expires_at":2000000000}' }],
    ['the page is there for ever', { status: 200, body: '{"id":"cs_1","url":"https://a.example/","expires_at":9e15}' }],
    ['the answer is no JSON', { status: 200, body: '<html>' }],
  ] as const) {
    test(`stripe_purchase_unavailable: ${name}`, async () => {
      store.fault = () => fault
      const answer = await checkout(someone(), ['monthly'])
      assertRefused(answer, 503, 'stripe_purchase_unavailable')
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
      if (fault.status === 429) assert.equal(answer.headers.get('retry-after'), '7')
    })
  }
})

test('the credential is checked by asking for a page', async () => {
  const check = () => service.workspace('POST', `/apps/${cards.app.id}/store_credentials/stripe/check`)
  assert.deepEqual((await check()).body.ok, true)
  store.fault = () => ({ status: 401 })
  assert.match((await check()).body.problem, /does not take the key/)
})
