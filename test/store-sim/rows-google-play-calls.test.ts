import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { assertRefused, eventually } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** What Google answers, what clients say of it, what Google is told, and tokens that follow each other. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('playstore')
const monthly = { productId: 'monthly', basePlanId: 'base' }
const pack = { productId: 'pack', purchaseOptionId: 'buy' }
const lifetime = { productId: 'lifetime', purchaseOptionId: 'buy' }
const acknowledged = async (by: Counter, held: Body) => (await by.verb(held, 're-sign')).acknowledged
const quietly = (by: Counter, who: string, purchase: object): Promise<Body> =>
  shop.silently(() => by.buy(who, purchase))

interface Upstream {
  row: string
  faults: object[]
  expected: string
  retryAfter?: string
  calls?: number
}

const path = '*/purchases/subscriptionsv2/*'
const upstream: Upstream[] = [
  { row: 'asked: 401 once', faults: [{ kind: 'unauthorized', path, count: 1 }], expected: 'given', calls: 2 },
  { row: 'asked: 401 twice', faults: [{ kind: 'unauthorized', path, count: 2 }], expected: 'unavailable', calls: 2 },
  { row: 'asked: 403', faults: [{ kind: 'forbidden', path }], expected: 'unavailable', calls: 1 },
  {
    ...{ row: 'asked: 429', faults: [{ kind: 'rate_limited', path, seconds: 7 }], expected: 'limited' },
    ...{ retryAfter: '7', calls: 1 },
  },
  { row: 'asked: 5xx once', faults: [{ kind: 'server_error', path, count: 1 }], expected: 'given', calls: 2 },
  { row: 'asked: 5xx', faults: [{ kind: 'server_error', path }], expected: 'unavailable', calls: 2 },
  { row: 'asked: no answer', faults: [{ kind: 'hang', path, seconds: 60 }], expected: 'unavailable' },
  { row: 'asked: a truncated answer', faults: [{ kind: 'truncated_json', path }], expected: 'unavailable' },
  {
    ...{ row: 'asked: 404 once, then it is there', expected: 'given', calls: 2 },
    faults: [{ kind: 'not_found', path, seconds: 604_800, count: 1 }],
  },
]

describe('what Google answers', () => {
  for (const { row, faults, expected, retryAfter, calls } of upstream) {
    test(row, async () => {
      const who = someone()
      const held = await quietly(counter, who, monthly)
      const from = await shop.logged()
      await shop.faults(...faults)
      const answer = await counter.bring(who, held)
      await shop.faults()
      assertAnswer(counter, answer, expected, row)
      if (retryAfter !== undefined) assert.equal(answer.headers.get('retry-after'), retryAfter)
      if (calls !== undefined) assert.equal(await shop.calls(/GET .*subscriptionsv2/, from), calls)
      assert.equal(await counter.entitled(who), expected === 'given')
      if (expected !== 'given') assertAnswer(counter, await counter.bring(who, held), 'given', 'later')
    })
  }

  test('404: asked once more, then invalid, and not asked again for a while', async () => {
    const who = someone()
    const held = await quietly(counter, who, monthly)
    const more = { purchase_token: `${held.purchaseToken}x` }
    const from = await shop.logged()
    assertAnswer(counter, await counter.bring(who, held, more), 'invalid')
    assert.equal(await shop.calls(/GET .*subscriptionsv2/, from), 2)
    assertAnswer(counter, await counter.bring(someone(), held, more), 'limited')
    assert.equal(await shop.calls(/GET .*subscriptionsv2/, from), 2)
  })

  test('400: a token of another package', async () => {
    const [other, who] = [await shop.open('playstore'), someone()]
    const held = await quietly(other, who, monthly)
    assertAnswer(counter, await counter.bring(who, held, { package_name: undefined }), 'invalid')
  })

  for (const [row, by, fault] of [
    ['410', 'P4M', []],
    ['400 FAILED_PRECONDITION', 'PT1S', [{ kind: 'dead_token' }]],
  ] as const) {
    test(`${row}: a dead token of a purchase that nobody knows`, async () => {
      const [app, who] = [await shop.open('playstore'), someone()]
      const held = await shop.silently(async () => {
        const bought = await app.buy(who, monthly)
        await app.move(by)
        return bought
      })
      await shop.faults(...fault)
      const answer = await app.bring(who, held)
      await shop.faults()
      assertAnswer(app, answer, 'unsupported evidence_expired', row)
    })

    test(`${row}: a dead token of a purchase that is known`, async () => {
      const [app, who, other] = [await shop.open('playstore'), someone(), someone()]
      const held = await app.buy(who, monthly)
      assertAnswer(app, await app.bring(who, held), 'given')
      await shop.settled()
      await app.verb(held, 'cancel')
      await app.move(by)
      await shop.settled()
      await app.unread(who)
      await shop.faults(...fault)
      assertAnswer(app, await app.bring(who, held), 'replay', row)
      assertAnswer(app, await app.bring(other, held), 'conflict', row)
      await shop.faults()
    })
  }

  test('a real purchase under a test key', async () => {
    const who = someone()
    const held = await quietly(counter, who, { ...monthly, test: false })
    assertAnswer(counter, await counter.bring(who, held), 'invalid')
  })

  test('a key of an iOS app, and an app without a package name', async () => {
    const who = someone()
    const { purchase } = await quietly(counter, who, monthly)
    const ios = await counter.project.app('ios')
    assertRefused(await ios.post('/purchase', { distinct_id: who, ...purchase }), 403, 'scope_mismatch')
    const bare = await counter.project.app('android')
    assertAnswer(counter, await bare.post('/purchase', { distinct_id: who, ...purchase }), 'unavailable')
  })

  test('a token of 16,384 characters, and one more', async () => {
    const who = someone()
    const held = await counter.buy(who, { ...lifetime, tokenLength: 16_384 })
    assertAnswer(counter, await counter.bring(who, held), 'given')
    const longer = { purchase_token: `${held.purchaseToken}x` }
    assertRefused(await counter.bring(who, held, longer), 400, 'invalid_request')
  })
})

describe('what the client says', () => {
  const wrong: [string, object, object][] = [
    ['another product', monthly, { product_id: 'yearly' }],
    ['another base plan', monthly, { base_plan_id: 'strict' }],
    ['an offer that it was not', monthly, { offer_id: 'trial' }],
    ['another type', monthly, { product_type: 'one_time' }],
    ['another package', monthly, { package_name: 'com.example.other' }],
    ['another purchase option', lifetime, { purchase_option_id: 'rent' }],
    ['consume what is not consumable', lifetime, { consume_purchase: true }],
    ['consume a subscription', monthly, { consume_purchase: true }],
  ]
  for (const [row, purchase, more] of wrong) {
    test(row, async () => {
      const who = someone()
      const held = await quietly(counter, who, purchase)
      assertAnswer(counter, await counter.bring(who, held, more), 'invalid', row)
      assert.equal(await counter.isKnown(who), false)
    })
  }

  test('nothing at all: the store says what it is', async () => {
    for (const purchase of [monthly, lifetime, pack]) {
      const who = someone()
      const { purchaseToken } = await quietly(counter, who, purchase)
      const held = { purchase: { type: 'playstore', purchase_token: purchaseToken } }
      assertAnswer(counter, await counter.bring(who, held), 'given')
    }
  })

  test('a product that leads to no Product', async () => {
    const who = someone()
    const held = await quietly(counter, who, { productId: 'unsold', purchaseOptionId: 'buy' })
    assertAnswer(counter, await counter.bring(who, held), 'invalid')
  })
})

describe('what Google is told', () => {
  const consumed = async (held: Body) => {
    const { apps } = await shop.sim.control('GET', '/sim/state')
    const all = apps.flatMap(({ oneTimes = [] }: Body) => oneTimes)
    return all.find(({ id }: Body) => id === held.id).consumed
  }

  test('a subscription is acknowledged, after it was given', async () => {
    const who = someone()
    const held = await counter.buy(who, monthly)
    assert.equal(await acknowledged(counter, held), false)
    assertAnswer(counter, await counter.bring(who, held), 'given')
    await eventually(() => acknowledged(counter, held), 10_000)
  })

  test('a consumable is acknowledged, and consumed where that is asked for', async () => {
    const [who, other] = [someone(), someone()]
    const [first, second] = [await counter.buy(who, pack), await counter.buy(other, pack)]
    assertAnswer(counter, await counter.bring(who, first), 'given')
    assertAnswer(counter, await counter.bring(other, second, { consume_purchase: true }), 'given')
    await shop.settled()
    assert.deepEqual([await acknowledged(counter, first), await consumed(first)], [true, false])
    assert.deepEqual([await acknowledged(counter, second), await consumed(second)], [true, true])
    // It can be bought again, and is another purchase.
    const third = await counter.buy(other, pack)
    assertAnswer(counter, await counter.bring(other, third, { consume_purchase: true }), 'given')
    assert.equal(await counter.balance(other), 20)
  })

  test('a consumable that a notification attached is acknowledged, not consumed', async () => {
    const who = someone()
    await counter.bind(who, createHash('sha256').update(who).digest('hex'))
    const held = await counter.buy(who, pack)
    await eventually(() => acknowledged(counter, held), 10_000)
    assert.deepEqual([await counter.balance(who), await consumed(held)], [10, false])
  })

  test('what the app acknowledged meanwhile is done', async () => {
    const who = someone()
    const held = await counter.buy(who, monthly)
    await shop.faults({ kind: 'server_error', path: '*:acknowledge', count: 2 })
    assertAnswer(counter, await counter.bring(who, held), 'given')
    await eventually(async () => (await shop.calls(/:acknowledge/, 0)) > 0, 10_000)
    await shop.faults()
    await counter.acknowledge(held)
    await shop.settled()
    const rows = await shop.service.pool.query<{ status: string }>(
      'select status from store_outbox where status <> $1',
      ['done'],
    )
    assert.deepEqual(rows, [])
  })

  test('what gives nothing is not acknowledged: the store takes it back', async () => {
    const [by, who] = [await shop.open('playstore'), someone()]
    const held = await by.buy(who, { ...lifetime, purchaseOptionId: 'rent' })
    assertAnswer(by, await by.bring(who, held), 'unsupported rental')
    await shop.settled()
    await by.move('PT4M')
    assert.equal((await by.verb(held, 're-sign')).status, 'CANCELLED')
  })
})

describe('tokens that follow each other', () => {
  const begin = async (by = counter, purchase: object = monthly) => {
    const who = someone()
    const held = await by.buy(who, purchase)
    assertAnswer(by, await by.bring(who, held), 'given')
    await shop.settled()
    return { who, held }
  }

  test('an upgrade: one purchase, the new product’s units, acknowledged too', async () => {
    const { who, held } = await begin()
    const next = await counter.verb(held, 'upgrade', { productId: 'yearly', basePlanId: 'base' })
    // It is the lineage that is owned, whoever told of the new token first.
    assertAnswer(counter, await counter.bring(who, next), 'replay')
    await shop.settled()
    assert.equal(await counter.balance(who), 500)
    assert.equal(await acknowledged(counter, next), true)
    const [purchase, ...more] = await counter.shown(who)
    assert.deepEqual([purchase.active, more.length], [true, 0])
    // At the store both read ACTIVE for a while: the old one does not come back.
    assert.equal((await counter.verb(held, 're-sign')).status, 'ACTIVE')
    await counter.unread(who)
    assertAnswer(counter, await counter.bring(who, held), 'replay', 'the old one')
    assert.equal(await counter.balance(who), 500)
    await counter.verb(next, 'expire')
    await shop.settled()
    await counter.unread(who)
    assertAnswer(counter, await counter.bring(who, held), 'replay', 'the old one')
    assert.equal(await counter.entitled(who), false)
  })

  test('an upgrade that names another account stays with its owner', async () => {
    const { who, held } = await begin()
    const other = someone()
    const accountToken = createHash('sha256').update(other).digest('hex')
    const next = await counter.verb(held, 'upgrade', { productId: 'yearly', basePlanId: 'base', accountToken })
    assertAnswer(counter, await counter.bring(other, next), 'conflict')
    assertAnswer(counter, await counter.bring(who, next), 'replay')
    assert.deepEqual([await counter.balance(who), await counter.balance(other)], [500, 0])
  })

  test('a pending upgrade replaces nothing; canceled, the old one goes on', async () => {
    const { who, held } = await begin()
    const change = { productId: 'yearly', basePlanId: 'base', pending: true }
    const next = await counter.verb(held, 'upgrade', change)
    assert.equal((await counter.bring(who, next)).status, 200)
    assert.equal(await counter.balance(who), 100)
    await counter.verb(next, 'cancel')
    await shop.settled()
    assert.deepEqual([await counter.entitled(who), await counter.balance(who)], [true, 100])
  })

  test('a pending upgrade that is paid', async () => {
    const { who, held } = await begin()
    const next = await counter.verb(held, 'upgrade', { productId: 'yearly', basePlanId: 'base', pending: true })
    await counter.verb(next, 'complete-pending')
    await shop.settled()
    assert.equal(await counter.balance(who), 500)
  })

  test('a downgrade waits for the end: what it brings is not owned yet', async () => {
    const by = await shop.open('playstore')
    const { who, held } = await begin(by, { productId: 'yearly', basePlanId: 'base' })
    const next = await by.verb(held, 'downgrade', { productId: 'basic', basePlanId: 'base' })
    await by.bring(who, next)
    await shop.settled()
    assert.equal(await by.balance(who), 500)
    const [purchase] = await by.shown(who)
    assert.ok(purchase.periods.every((period: Body) => period.store_product_id === 'yearly'))
    await by.move('P1Y')
    await shop.settled()
    assert.deepEqual([await by.entitled(who), await by.balance(who)], [true, 0])
  })

  test('a resubscription in the app is a purchase of its own', async () => {
    const { who, held } = await begin()
    await counter.verb(held, 'cancel')
    await counter.verb(held, 'expire')
    const next = await counter.verb(held, 'resubscribe')
    assertAnswer(counter, await counter.bring(who, next), 'given')
    await shop.settled()
    assert.deepEqual([await counter.entitled(who), await acknowledged(counter, next)], [true, true])
    assert.equal((await counter.shown(who)).length, 2)
  })

  test('a resubscription in the Play app belongs to whom the expired one belonged', async () => {
    const { who, held } = await begin()
    const other = someone()
    await counter.verb(held, 'cancel')
    await counter.verb(held, 'expire')
    const next = await counter.verb(held, 'resubscribe', { in_app: false })
    await shop.settled()
    assert.deepEqual([await counter.entitled(who), await acknowledged(counter, next)], [true, true])
    assertAnswer(counter, await counter.bring(other, next), 'conflict')
    assertAnswer(counter, await counter.bring(who, next), 'replay')
  })

  test('one token that names two predecessors', async () => {
    const [{ who, held }, { held: another }] = [await begin(), await begin()]
    await counter.verb(held, 'cancel')
    await counter.verb(held, 'expire')
    const next = await shop.silently(() => counter.verb(held, 'resubscribe', { in_app: false, linked: another.id }))
    await shop.settled()
    assertAnswer(counter, await counter.bring(who, next), 'conflict')
    assert.equal(await counter.entitled(who), false)
  })

  test('a top-up adds its time once', async () => {
    const by = await shop.open('playstore')
    const prepaid = { productId: 'monthly', basePlanId: 'days' }
    const { who, held } = await begin(by, prepaid)
    const next = await by.buy(who, prepaid)
    for (let n = 0; n < 2; n++) assert.equal((await by.bring(who, next)).status, 200)
    await shop.settled()
    assert.notEqual(next.purchaseToken, held.purchaseToken)
    assert.equal(await acknowledged(by, next), true)
    await by.move('P5D')
    assert.equal(await by.entitled(who), true, 'the fifth day')
    await by.move('P2D')
    await shop.settled()
    assert.equal(await by.entitled(who), false, 'the seventh day')
  })
})
