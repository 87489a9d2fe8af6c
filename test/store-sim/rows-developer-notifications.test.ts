import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { eventually } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** What each real-time developer notification of Google Play does to a purchase that somebody has. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('playstore')
const monthly = { productId: 'monthly', basePlanId: 'base' }
const lifetime = { productId: 'lifetime', purchaseOptionId: 'buy' }
const pack = { productId: 'pack', purchaseOptionId: 'buy' }

interface Bought {
  by: Counter
  who: string
  held: Body
  verb: (verb: string, body?: object) => Promise<Body>
}

async function bought(purchase: object = monthly, by = counter): Promise<Bought> {
  const who = someone()
  const held = await by.buy(who, purchase)
  assertAnswer(by, await by.bring(who, held), 'given')
  await shop.settled()
  const verb = async (name: string, body: object = {}) => {
    const now = await by.verb(held, name, body)
    await shop.settled()
    return now
  }
  return { by, who, held, verb }
}

const spend = ({ by, who }: Bought, quantity: number) =>
  by.app.post('/feature/consume', { customerId: who, featureId: 'exports', operationId: randomUUID(), quantity })

async function standing({ by, who }: Bought) {
  const [purchase] = await by.shown(who)
  return { pro: await by.entitled(who), exports: await by.balance(who), status: purchase?.status }
}

interface Row {
  row: string
  verbs: string[]
  leaves: { pro: boolean; exports?: number; status: string }
}

const rows: Row[] = [
  {
    row: 'IN_GRACE_PERIOD: access goes on',
    verbs: ['enter-grace'],
    leaves: { pro: true, exports: 100, status: 'grace' },
  },
  { row: 'ON_HOLD: none', verbs: ['hold'], leaves: { pro: false, status: 'on_hold' } },
  { row: 'RECOVERED: a new period', verbs: ['hold', 'recover'], leaves: { pro: true, exports: 100, status: 'active' } },
  { row: 'CANCELED: until its end', verbs: ['cancel'], leaves: { pro: true, exports: 100, status: 'active' } },
  { row: 'RESTARTED', verbs: ['cancel', 'restart'], leaves: { pro: true, exports: 100, status: 'active' } },
  { row: 'EXPIRED: none', verbs: ['cancel', 'expire'], leaves: { pro: false, status: 'expired' } },
  { row: 'REVOKED: none, from now on', verbs: ['revoke'], leaves: { pro: false, exports: 0, status: 'revoked' } },
  { row: 'DEFERRED: the same period, longer', verbs: ['defer'], leaves: { pro: true, exports: 100, status: 'active' } },
]

describe('subscriptionNotification', () => {
  for (const { row, verbs, leaves } of rows) {
    test(row, async () => {
      const one = await bought()
      for (const each of verbs) await one.verb(each)
      const now = await standing(one)
      assert.deepEqual(leaves.exports === undefined ? { pro: now.pro, status: now.status } : now, leaves)
    })
  }

  test('any number, known or not: the purchase is read', async () => {
    const one = await bought()
    let renews = true
    for (const number of [...Array(24).keys(), 999]) {
      await shop.silently(() => one.verb(renews ? 'cancel' : 'restart'))
      assert.equal((await counter.shown(one.who))[0].auto_renews, renews)
      renews = !renews
      await one.verb('notify', { number })
      assert.equal((await counter.shown(one.who))[0].auto_renews, renews, `number ${number}`)
    }
  })

  test('RENEWED: another order is another period, with its own units', async () => {
    const by = await shop.open('playstore')
    const one = await bought(monthly, by)
    await spend(one, 30)
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
    const [{ periods }] = await by.shown(one.who)
    assert.equal(new Set(periods.map(({ order_id: id }: Body) => id)).size, 2)
  })

  test('PAUSED and resumed', async () => {
    const by = await shop.open('playstore')
    const one = await bought(monthly, by)
    await one.verb('pause')
    assert.equal((await standing(one)).pro, true, 'until the end of the period')
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual(await standing(one), { pro: false, exports: 0, status: 'paused' })
    await one.verb('resume')
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
  })

  test('grace that moves on day by day, hold, and recovery', async () => {
    const by = await shop.open('playstore')
    const one = await bought(monthly, by)
    await one.verb('fail-billing')
    const pass = async (period: string) => {
      await by.move(period)
      await shop.settled()
      return standing(one)
    }
    assert.equal((await pass('P1M')).status, 'grace')
    for (let day = 0; day < 6; day++) {
      // Google says nothing when it moves the end on: it is asked five minutes after.
      await pass('P1DT6M')
      await eventually(async () => (await standing(one)).pro, 10_000)
    }
    assert.deepEqual(await pass('P2D'), { pro: false, exports: 0, status: 'on_hold' })
    await one.verb('recover')
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
  })

  test('PRICE_CHANGE_UPDATED: agreed to it goes on, else it ends with the period', async () => {
    const by = await shop.open('playstore')
    const [agreed, silent] = [await bought(monthly, by), await bought(monthly, by)]
    await agreed.verb('price-increase', { accepted: true })
    await silent.verb('price-increase')
    for (const one of [agreed, silent]) assert.equal((await standing(one)).pro, true)
    await by.move('P1M')
    await shop.settled()
    assert.deepEqual([(await standing(agreed)).pro, (await standing(silent)).pro], [true, false])
  })
})

describe('oneTimeProductNotification', () => {
  test('the purchase is read, whatever the number', async () => {
    for (const number of [1, 2, 999]) {
      const one = await bought(lifetime)
      await shop.silently(() => one.verb('refund'))
      assert.equal((await standing(one)).pro, true)
      await one.verb('notify', { number })
      assert.equal((await standing(one)).pro, false, `number ${number}`)
    }
  })
})

describe('voidedPurchaseNotification', () => {
  test('one-time, whole: revoked', async () => {
    const one = await bought(lifetime)
    await one.verb('refund')
    assert.equal((await standing(one)).pro, false)
  })

  test('one-time, a part: the difference to the last one seen', async () => {
    const one = await bought({ ...pack, quantity: 3 })
    await spend(one, 4)
    await one.verb('refund', { mode: 'quantity', quantity: 1 })
    assert.equal(await counter.balance(one.who), 16)
    await one.verb('refund', { mode: 'quantity', quantity: 1 })
    assert.equal(await counter.balance(one.who), 6)
    await one.verb('refund', { mode: 'quantity', quantity: 1 })
    assert.equal(await counter.balance(one.who), 0, 'what was spent stays spent')
  })

  test('a subscription’s latest order: this period ends, though the state says ACTIVE', async () => {
    const one = await bought()
    const now = await one.verb('refund')
    assert.equal(now.status, 'ACTIVE')
    assert.deepEqual(await standing(one), { pro: false, exports: 0, status: 'revoked' })
    await counter.unread(one.who)
    assertAnswer(counter, await counter.bring(one.who, one.held), 'replay')
    assert.equal((await standing(one)).pro, false)
  })

  test('a subscription’s latest order, where that does not end access', async () => {
    const by = await shop.open('playstore')
    await by.settings({ play_voided_order_ends_access: false })
    const one = await bought(monthly, by)
    await one.verb('refund')
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
  })

  test('a subscription’s older order: recorded only', async () => {
    const by = await shop.open('playstore')
    const one = await bought(monthly, by)
    await by.move('P1M')
    await shop.settled()
    await one.verb('refund', { order: one.held.orderId })
    assert.deepEqual(await standing(one), { pro: true, exports: 100, status: 'active' })
  })
})

describe('others', () => {
  test('testNotification, a pending review of a refund, and what nobody knows: stored', async () => {
    const one = await bought()
    const before = await standing(one)
    const names = ['testNotification', 'pendingRefundReviewNotification', 'ofTomorrowNotification']
    for (const name of names)
      await shop.sim.control('POST', '/sim/playstore/test-notification', { app: counter.name, name })
    await shop.settled()
    const stored = await shop.service.pool.query<{ kind: string }>('select kind from store_inbox where app_id = $1', [
      counter.app.id,
    ])
    for (const name of names)
      assert.ok(
        stored.some(({ kind }) => kind === name),
        name,
      )
    assert.deepEqual(await standing(one), before)
  })

  test('a push for another audience is not taken', async () => {
    const one = await bought()
    await shop.faults({ kind: 'wrong_audience', path: '/notify/*' })
    await one.verb('hold')
    await shop.faults()
    const log: Body[] = (await shop.sim.control('GET', '/sim/log?after=0')).log
    assert.match(String(log.findLast((entry) => entry.kind === 'delivery')?.status), / 401$/)
    assert.equal((await standing(one)).pro, true)
  })
})
