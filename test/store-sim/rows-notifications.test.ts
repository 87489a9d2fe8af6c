import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** What each App Store Server Notification does to a purchase that somebody has. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('appstore')

interface Bought {
  by: Counter
  who: string
  held: Body
  verb: (verb: string, body?: object) => Promise<Body>
}

async function bought(productId = 'monthly', by = counter, more: object = {}): Promise<Bought> {
  const who = someone()
  const held = await by.buy(who, { productId, ...more })
  assertAnswer(by, await by.bring(who, held), 'given')
  await shop.settled()
  const verb = async (name: string, body: object = {}) => {
    const now = await by.verb(held, name, body)
    await shop.settled()
    return now
  }
  return { by, who, held, verb }
}

/** Access to `pro`, units of `exports`, and what the workspace says of it. */
async function standing({ by, who }: Bought) {
  const [purchase] = await by.shown(who)
  return { pro: await by.entitled(who), exports: await by.balance(who), status: purchase?.status }
}

const spend = ({ by, who }: Bought, quantity: number) =>
  by.app.post('/feature/consume', { customerId: who, featureId: 'exports', operationId: randomUUID(), quantity })

const dayMs = 24 * 3600_000
const untilOf = async ({ by, who }: Bought) => Date.parse((await by.shown(who))[0].periods[0].access_until)

interface Row {
  row: string
  productId?: string
  /** Each in its turn, with its notification. */
  verbs: (string | [string, object])[]
  leaves: { pro: boolean; exports?: number; status: string }
}

const gone = (status: string) => ({ pro: false, status })
const rows: Row[] = [
  {
    ...{ row: 'SUBSCRIBED RESUBSCRIBE', verbs: ['expire', 'resubscribe'] },
    leaves: { pro: true, exports: 100, status: 'active' },
  },
  {
    ...{ row: 'DID_RENEW BILLING_RECOVERY', verbs: ['hold', 'recover'] },
    leaves: { pro: true, exports: 100, status: 'active' },
  },
  { row: 'DID_FAIL_TO_RENEW GRACE_PERIOD', verbs: ['enter-grace'], leaves: { pro: true, status: 'grace' } },
  { row: 'DID_FAIL_TO_RENEW', productId: 'strict', verbs: ['hold'], leaves: gone('billing_retry') },
  { row: 'GRACE_PERIOD_EXPIRED', verbs: ['enter-grace', 'hold'], leaves: gone('billing_retry') },
  { row: 'EXPIRED VOLUNTARY', verbs: ['cancel', 'expire'], leaves: gone('expired') },
  { row: 'EXPIRED BILLING_RETRY', verbs: ['hold', 'expire'], leaves: gone('expired') },
  {
    ...{ row: 'DID_CHANGE_RENEWAL_PREF UPGRADE', verbs: [['upgrade', { productId: 'yearly' }]] },
    leaves: { pro: true, exports: 500, status: 'active' },
  },
  {
    ...{ row: 'DID_CHANGE_RENEWAL_PREF DOWNGRADE', verbs: [['downgrade', { productId: 'basic' }]] },
    leaves: { pro: true, exports: 100, status: 'active' },
  },
  { row: 'REFUND of the present period', verbs: ['refund'], leaves: { pro: false, exports: 0, status: 'revoked' } },
  {
    ...{ row: 'REFUND of something bought once', productId: 'lifetime', verbs: ['refund'], leaves: gone('revoked') },
  },
  {
    ...{ row: 'REFUND_REVERSED of the present period', verbs: ['refund', 'reverse-refund'] },
    leaves: { pro: true, exports: 100, status: 'active' },
  },
  {
    ...{ row: 'REFUND_REVERSED of something bought once', productId: 'lifetime', verbs: ['refund', 'reverse-refund'] },
    leaves: { pro: true, status: 'active' },
  },
]

describe('App Store: what follows', () => {
  for (const { row, productId, verbs, leaves } of rows) {
    test(row, async () => {
      const one = await bought(productId)
      for (const each of verbs) await (typeof each === 'string' ? one.verb(each) : one.verb(...each))
      const { exports, ...now } = await standing(one)
      assert.deepEqual(leaves.exports === undefined ? now : { ...now, exports }, leaves)
    })
  }

  for (const [row, productId, leaves] of [
    ['SUBSCRIBED INITIAL_BUY', 'monthly', { pro: true, exports: 100, status: 'active' }],
    ['ONE_TIME_CHARGE', 'lifetime', { pro: true, exports: 0, status: 'active' }],
  ] as const) {
    test(`${row}: given to whom its token names, and no call`, async () => {
      const [who, accountToken] = [someone(), randomUUID()]
      await counter.bind(who, accountToken)
      const held = await counter.buy(who, { productId, accountToken })
      await shop.settled()
      assert.deepEqual(await standing({ by: counter, who, held, verb: async () => ({}) }), leaves)
      assertAnswer(counter, await counter.bring(who, held), 'replay')
    })
  }

  test('DID_RENEW: a period of its own, with its own units', async () => {
    const by = await shop.open('appstore')
    const one = await bought('monthly', by)
    await spend(one, 30)
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
    const [{ periods }] = await by.shown(one.who)
    assert.equal(periods.length, 2)
    assert.equal(periods[1].access_until, periods[0].starts_at)
  })

  test('RENEWAL_EXTENDED: the period lasts longer, and brings no units', async () => {
    const one = await bought()
    await spend(one, 30)
    const before = await untilOf(one)
    await one.verb('extend', { days: 30 })
    assert.equal((await untilOf(one)) - before, 30 * dayMs)
    assert.deepEqual(await standing(one), { pro: true, exports: 70, status: 'active' })
  })

  test('OFFER_REDEEMED: access until its end', async () => {
    const one = await bought()
    const before = await untilOf(one)
    await shop.silently(() => one.verb('extend', { days: 20 }))
    assert.equal(await untilOf(one), before)
    await one.verb('notify', { type: 'OFFER_REDEEMED' })
    assert.equal((await untilOf(one)) - before, 20 * dayMs)
  })

  test('OFFER_REDEEMED UPGRADE: the new product now, the old one no more', async () => {
    const one = await bought()
    await shop.silently(() => one.verb('upgrade', { productId: 'yearly' }))
    assert.equal((await standing(one)).exports, 100)
    await one.verb('notify', { type: 'OFFER_REDEEMED', subtype: 'UPGRADE' })
    assert.equal((await standing(one)).exports, 500)
    const [{ periods }] = await counter.shown(one.who)
    assert.deepEqual(
      periods.map((period: Body) => [period.store_product_id, period.superseded_at !== null]),
      [
        ['yearly', false],
        ['monthly', true],
      ],
    )
  })

  test('a downgrade is a pending product, until it is taken back or renewed', async () => {
    const by = await shop.open('appstore')
    const one = await bought('monthly', by)
    const pending = async () => (await by.shown(one.who))[0].pending_product
    await one.verb('downgrade', { productId: 'basic' })
    assert.equal(await pending(), 'basic')
    await one.verb('downgrade', { productId: 'monthly' })
    assert.equal(await pending(), null, 'DID_CHANGE_RENEWAL_PREF without a subtype')
    await one.verb('downgrade', { productId: 'basic' })
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual(await standing(one), { pro: true, exports: 0, status: 'active' })
    assert.equal(await pending(), null)
  })

  test('DID_CHANGE_RENEWAL_STATUS: whether it renews, and nothing else', async () => {
    const one = await bought()
    const renews = async () => (await counter.shown(one.who))[0].auto_renews
    for (const [verb, expected] of [
      ['cancel', false],
      ['restart', true],
    ] as const) {
      await one.verb(verb)
      assert.equal(await renews(), expected)
      assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
    }
  })

  test('EXPIRED PRICE_INCREASE: nobody agreed', async () => {
    const by = await shop.open('appstore')
    const one = await bought('monthly', by)
    await one.verb('price-increase')
    assert.equal((await standing(one)).pro, true)
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual([(await standing(one)).pro, (await standing(one)).status], [false, 'expired'])
  })

  test('REFUND of a period that is over', async () => {
    const by = await shop.open('appstore')
    const one = await bought('monthly', by)
    await by.move('P1M')
    await shop.settled()
    await spend(one, 10)
    await one.verb('refund', { order: one.held.transactionId })
    assert.deepEqual(await standing(one), { pro: true, exports: 90, status: 'active' })
    const [{ periods }] = await by.shown(one.who)
    assert.deepEqual(
      periods.map(({ revoked_at: at }: Body) => at !== null),
      [false, true],
    )
  })

  test('REFUND of units takes what is left, REFUND_REVERSED brings exactly that back', async () => {
    const one = await bought('pack', counter, { quantity: 2 })
    const other = await counter.buy(one.who, { productId: 'pack' })
    assertAnswer(counter, await counter.bring(one.who, other), 'given')
    await spend(one, 5)
    await one.verb('refund')
    assert.equal(await counter.balance(one.who), 10)
    await one.verb('reverse-refund')
    assert.equal(await counter.balance(one.who), 25)
  })

  test('REFUND of a share of the units', async () => {
    const one = await bought('pack', counter, { quantity: 4 })
    await one.verb('refund', { mode: 'percent', percent: 25 })
    assert.equal(await counter.balance(one.who), 30)
    // Told again, it takes nothing more.
    await one.verb('notify', { type: 'REFUND' })
    assert.equal(await counter.balance(one.who), 30)
  })

  test('REVOKE: what the family gives no more', async () => {
    const [payer, member] = [someone(), someone()]
    await counter.settings({ unbound_purchases: 'first_claim' })
    const held = await counter.buy(payer, { productId: 'shared', family: [member] })
    assertAnswer(counter, await counter.bring(payer, held), 'given')
    assertAnswer(counter, await counter.bring(member, held.family[0]), 'given')
    await counter.verb(held.family[0], 'revoke')
    await shop.settled()
    assert.deepEqual([await counter.entitled(member), await counter.entitled(payer)], [false, true])
    assertAnswer(counter, await counter.bring(member, held.family[0]), 'replay')
    await counter.settings({ unbound_purchases: 'reject' })
  })

  test('grace, retry and recovery as time goes by', async () => {
    const by = await shop.open('appstore')
    const one = await bought('monthly', by)
    await one.verb('fail-billing')
    const pass = async (period: string) => {
      await by.move(period)
      await shop.settled()
      return standing(one)
    }
    assert.deepEqual(await pass('P1M'), { pro: true, exports: 100, status: 'grace' })
    assert.deepEqual(await pass('P17D'), { pro: false, exports: 0, status: 'billing_retry' })
    await one.verb('recover')
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
  })
})

describe('App Store: what says nothing of access', () => {
  const silent: [string, string?][] = [
    ...['REFUND_DECLINED', 'PRICE_INCREASE', 'PRICE_CHANGE', 'CONSUMPTION_REQUEST', 'RESCIND_CONSENT'].map(one),
    ...['METADATA_UPDATE', 'MIGRATION', 'EXTERNAL_PURCHASE_TOKEN', 'TEST', 'OF_TOMORROW'].map(one),
    ['RENEWAL_EXTENSION', 'SUMMARY'],
    ['RENEWAL_EXTENSION', 'FAILURE'],
  ]
  function one(type: string): [string] {
    return [type]
  }
  test('is stored, and changes nothing', async () => {
    const who = await bought()
    const before = await standing(who)
    // The store says otherwise by now: nobody looks.
    await shop.silently(() => who.verb('expire'))
    for (const [type, subtype] of silent) {
      await who.verb('notify', { type, ...(subtype === undefined ? {} : { subtype }) })
      assert.deepEqual(await standing(who), before, type)
    }
    const stored = await shop.service.pool.query<{ kind: string }>(
      'select distinct kind from store_inbox where app_id = $1',
      [counter.app.id],
    )
    const kinds = new Set(stored.map(({ kind }) => kind))
    for (const words of silent) assert.ok(kinds.has(words.join(' ')), words.join(' '))
    await who.verb('notify', { type: 'EXPIRED', subtype: 'VOLUNTARY' })
    assert.equal((await standing(who)).pro, false, 'those that tell do')
  })
})

describe('App Store: what nobody vouches for', () => {
  for (const kind of [
    'foreign_root',
    'forged_signature',
    'tampered_payload',
    'truncated_jws',
    'no_leaf_marker',
    'expired_leaf',
  ]) {
    test(`a notification: ${kind}`, async () => {
      const one = await bought()
      await shop.faults({ kind, path: '/notify/*' })
      await one.verb('expire')
      await shop.faults()
      const log: Body[] = (await shop.sim.control('GET', '/sim/log?after=0')).log
      assert.match(String(log.findLast((entry) => entry.kind === 'delivery')?.status), / 401$/)
      assert.equal((await standing(one)).pro, true)
    })
  }
})
