import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { eventually } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** Each row of Google Play's decision tables, against the simulator. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('playstore')

interface State {
  row: string
  purchase: object
  later?: (held: Body, by: Counter) => Promise<unknown>
  /** While it is brought. */
  faults?: object[]
  first: string
  access: boolean
  exports?: number
  status: string
  /** What is so once somebody has it, where that is something else. */
  held?: Partial<Pick<State, 'access' | 'exports' | 'status'>>
  onlyFirst?: true
  /** Time has to pass: in an app of its own. */
  moves?: true
}

const monthly = { productId: 'monthly', basePlanId: 'base' }
const pack = { productId: 'pack', purchaseOptionId: 'buy' }
const lifetime = { productId: 'lifetime', purchaseOptionId: 'buy' }
const verb =
  (...verbs: string[]) =>
  async (held: Body, by: Counter) => {
    for (const each of verbs) await by.verb(held, each)
  }
/** The service's clock goes on to an hour after the end, and the store's does not. */
const pastItsEnd = ({ expiresAt }: Body, by: Counter) => by.setClock(Date.parse(expiresAt) - Date.now() + hourMs)
const consumedByApp = async (held: Body, by: Counter) => {
  const path = `/purchases/products/pack/tokens/${held.purchaseToken}:consume`
  const { status } = await shop.sim.play('POST', path, {}, by.name)
  assert.equal(status, 200)
}
const hourMs = 3600_000

const states: State[] = [
  { row: 'ACTIVE', purchase: monthly, first: 'given', access: true, exports: 100, status: 'active' },
  {
    ...{
      row: 'ACTIVE, its end has passed: a lease',
      purchase: monthly,
      moves: true,
      later: pastItsEnd,
    },
    ...{ first: 'given', access: true, status: 'active', onlyFirst: true },
  },
  {
    ...{ row: 'IN_GRACE_PERIOD', purchase: monthly, later: verb('enter-grace'), first: 'given' },
    ...{ access: true, status: 'grace' },
  },
  {
    ...{ row: 'CANCELED, its end ahead', purchase: monthly, later: verb('cancel'), first: 'given' },
    ...{ access: true, status: 'active' },
  },
  {
    ...{ row: 'CANCELED, its end has passed', purchase: monthly, moves: true, onlyFirst: true },
    later: async (held, by) => {
      await by.verb(held, 'cancel')
      await pastItsEnd(held, by)
    },
    ...{ first: 'unsupported expired', access: false, status: '' },
  },
  {
    ...{ row: 'EXPIRED', purchase: monthly, later: verb('cancel', 'expire'), first: 'unsupported expired' },
    ...{ access: false, status: 'expired' },
  },
  {
    ...{ row: 'ON_HOLD', purchase: monthly, later: verb('hold'), first: 'unsupported on_hold' },
    ...{ access: false, status: 'on_hold' },
  },
  {
    ...{ row: 'PAUSED', purchase: monthly, moves: true, first: 'unsupported paused', access: false, status: 'paused' },
    later: async (held, by) => {
      await by.acknowledge(held)
      await by.verb(held, 'pause')
      await by.move('P1M')
    },
  },
  {
    ...{ row: 'PENDING', purchase: { ...monthly, pending: true }, first: 'unsupported purchase_pending' },
    ...{ access: false, status: '', onlyFirst: true },
  },
  {
    ...{ row: 'PENDING_PURCHASE_CANCELED', purchase: { ...monthly, pending: true }, later: verb('cancel') },
    ...{ first: 'unsupported purchase_canceled', access: false, status: '', onlyFirst: true },
  },
  {
    ...{ row: 'a state that nobody knows', purchase: monthly, faults: [{ kind: 'unknown_state' }] },
    ...{ first: 'reconciliation_retryable', access: false, status: '' },
    held: { access: true, exports: 100, status: 'active' },
  },
  { row: 'one-time PURCHASED, not consumable', purchase: lifetime, first: 'given', access: true, status: 'active' },
  {
    ...{ row: 'one-time PURCHASED, consumable', purchase: { ...pack, quantity: 3 }, first: 'given' },
    ...{ access: false, exports: 30, status: 'active' },
  },
  {
    ...{ row: 'one-time PURCHASED, one of three given back', purchase: { ...pack, quantity: 3 }, first: 'given' },
    later: (held, by) => by.verb(held, 'refund', { mode: 'quantity', quantity: 1 }),
    ...{ access: false, exports: 20, status: 'active' },
  },
  {
    ...{ row: 'one-time, CONSUMED and unknown to us', purchase: pack, later: consumedByApp, first: 'conflict' },
    ...{ access: false, exports: 0, status: '' },
    held: { exports: 10, status: 'active' },
  },
  {
    ...{ row: 'one-time PENDING', purchase: { ...lifetime, pending: true }, first: 'unsupported purchase_pending' },
    ...{ access: false, status: '', onlyFirst: true },
  },
  {
    ...{
      row: 'one-time CANCELLED before it was paid',
      purchase: { ...lifetime, pending: true },
      later: verb('cancel'),
    },
    ...{ first: 'unsupported purchase_canceled', access: false, status: '', onlyFirst: true },
  },
  {
    ...{ row: 'one-time CANCELLED: refunded', purchase: lifetime, later: verb('refund') },
    ...{ first: 'unsupported purchase_canceled', access: false, status: 'purchase_canceled' },
  },
  {
    ...{ row: 'a one-time state that nobody knows', purchase: lifetime, faults: [{ kind: 'unknown_state' }] },
    ...{ first: 'reconciliation_retryable', access: false, status: '', held: { access: true, status: 'active' } },
  },
  {
    ...{ row: 'a preorder that is not released', purchase: { ...lifetime, purchaseOptionId: 'preorder' } },
    ...{ first: 'unsupported preorder', access: false, status: '', onlyFirst: true },
  },
  {
    ...{ row: 'a preorder that was released', purchase: { ...lifetime, purchaseOptionId: 'preorder' } },
    ...{ later: verb('release'), first: 'given', access: true, status: 'active', onlyFirst: true },
  },
  {
    ...{ row: 'a rental', purchase: { ...lifetime, purchaseOptionId: 'rent' }, first: 'unsupported rental' },
    ...{ access: false, status: '', onlyFirst: true },
  },
]

async function assertShown(by: Counter, who: string, { access, exports, status }: State): Promise<void> {
  assert.equal(await by.entitled(who), access)
  if (exports !== undefined) assert.equal(await by.balance(who), exports)
  const [purchase, ...more] = await by.shown(who)
  const isOpen = access || (exports ?? 0) > 0
  assert.deepEqual([purchase?.status, purchase?.active, more.length], [status, isOpen, 0])
}

/** `orders` are told, and an answer of success always names the product. */
function assertNamed({ body }: Body, held: Body): void {
  const { catalog_product: product, purchase_token: token } = body
  const { purchase } = held
  assert.equal(token, held.purchaseToken)
  assert.equal(body.order_id, held.orderId ?? undefined)
  assert.deepEqual(
    { ...product, id: '' },
    {
      ...{ id: '', store_product_id: purchase.product_id, base_plan_id: purchase.base_plan_id ?? null },
      ...{ purchase_option_id: purchase.purchase_option_id ?? null, offer_id: purchase.offer_id ?? null },
      store_product_type: purchase.product_type,
    },
  )
}

describe('at first sight', () => {
  for (const state of states) {
    const { row, purchase, later = async () => {}, faults = [], first, moves } = state
    test(row, async () => {
      const [who, other] = [someone(), someone()]
      const by = moves ? await shop.open('playstore') : counter
      const held = await shop.silently(async () => {
        const bought = await by.buy(who, purchase)
        await later(bought, by)
        return by.verb(bought, 're-sign')
      })
      await shop.faults(...faults)
      const answer = await by.bring(who, held)
      await shop.faults()
      assertAnswer(by, answer, first, row)
      if (first === 'given') {
        assertNamed(answer, held)
        await assertShown(by, who, state)
        assertAnswer(by, await by.bring(other, held), 'conflict', row)
        const again = await by.bring(who, held)
        assertAnswer(by, again, 'replay', row)
        assertNamed(again, held)
      } else {
        assert.deepEqual([await by.entitled(who), await by.isKnown(who)], [false, false])
        if (faults.length === 0) assertAnswer(by, await by.bring(who, held), first, row)
        if (faults.length === 0 && first !== 'conflict')
          assertAnswer(by, await by.bring(other, held), 'owner_unverified', row)
      }
    })
  }
})

describe('once it is the caller’s', () => {
  for (const state of states.filter(({ onlyFirst }) => !onlyFirst)) {
    const { row, purchase, later = async () => {}, faults = [], moves } = state
    test(row, async () => {
      const [who, other] = [someone(), someone()]
      const by = moves ? await shop.open('playstore') : counter
      const held = await by.buy(who, purchase)
      assertAnswer(by, await by.bring(who, held), 'given', row)
      await shop.settled()
      await later(held, by)
      await shop.settled()
      await by.unread(who)
      const expected = { ...state, ...state.held }
      await shop.faults(...faults)
      assertAnswer(by, await by.bring(who, held), 'replay', row)
      assertAnswer(by, await by.bring(other, held), 'conflict', row)
      await shop.faults()
      await assertShown(by, who, expected)
    })
  }
})

describe('claims', () => {
  const claims: [string, object, (held: Body) => Promise<unknown>, (held: Body) => Promise<unknown>, string][] = [
    [
      'ON_HOLD: the claim comes true when the card is good again',
      monthly,
      (held) => counter.verb(held, 'hold'),
      (held) => counter.verb(held, 'recover'),
      'unsupported on_hold',
    ],
    [
      'PENDING: the claim comes true when it is paid',
      { ...monthly, pending: true },
      async () => {},
      (held) => counter.verb(held, 'complete-pending'),
      'unsupported purchase_pending',
    ],
    [
      'one-time PENDING: the claim comes true when it is paid',
      { ...lifetime, pending: true },
      async () => {},
      (held) => counter.verb(held, 'complete-pending'),
      'unsupported purchase_pending',
    ],
  ]
  for (const [row, purchase, before, later, refused] of claims) {
    test(row, async () => {
      const who = someone()
      const held = await shop.silently(async () => {
        const bought = await counter.buy(who, purchase)
        await before(bought)
        return bought
      })
      assertAnswer(counter, await counter.bring(who, held), refused)
      await later(held)
      await shop.settled()
      assert.equal(await counter.entitled(who), true)
      // Kept alive at the store too: what nobody acknowledges is taken back.
      await eventually(async () => (await counter.verb(held, 're-sign')).acknowledged, 10_000)
    })
  }

  test('PAUSED: the claim comes true when it is resumed', async () => {
    const [by, who] = [await shop.open('playstore'), someone()]
    const held = await shop.silently(async () => {
      const bought = await by.buy(who, monthly)
      await by.acknowledge(bought)
      await by.verb(bought, 'pause')
      await by.move('P1M')
      return bought
    })
    assertAnswer(by, await by.bring(who, held), 'unsupported paused')
    await by.verb(held, 'resume')
    await shop.settled()
    assert.equal(await by.entitled(who), true)
  })
})

test('used up elsewhere: no binding and no notification gives it', async () => {
  const [who, accountToken] = [someone(), createHash('sha256').update(someone()).digest('hex')]
  const held = await counter.buy(who, { ...pack, customer: undefined, accountToken })
  await shop.silently(() => consumedByApp(held, counter))
  assertAnswer(counter, await counter.bring(who, held), 'owner_unverified')
  await counter.bind(who, accountToken)
  await counter.verb(held, 'notify', { number: 1 })
  await shop.settled()
  assert.equal(await counter.balance(who), 0)
  assertAnswer(counter, await counter.bring(who, held), 'conflict')
})

describe('line items', () => {
  test('each line item has its own grant', async () => {
    const who = someone()
    const held = await counter.buy(who, { ...monthly, addOns: ['addon'] })
    assertAnswer(counter, await counter.bring(who, held), 'given')
    assert.deepEqual([await counter.entitled(who), await counter.balance(who)], [true, 107])
  })

  test('a promo code has no order, and its first renewal has one', async () => {
    const who = someone()
    const held = await counter.buy(who, { ...monthly, promoCode: true })
    const answer = await counter.bring(who, held)
    assertAnswer(counter, answer, 'given')
    assertNamed(answer, held)
    await shop.settled()
    await counter.verb(held, 'renew')
    await shop.settled()
    const [purchase] = await counter.shown(who)
    assert.deepEqual(
      purchase.periods.map((period: Body) => period.order_id !== null),
      [true, false],
    )
  })

  test('the most specific link is the one that counts', async () => {
    const by = await shop.open('playstore')
    const link = (key: string, allowance: number, more: object) =>
      by.project.post('/products', {
        ...{ project_id: by.project.id, key, name: key, type: 'subscription' },
        ...{
          grants: [{ feature: 'exports', allowance }],
          stores: [{ store: 'playstore', product_id: 'monthly', ...more }],
        },
      })
    await link('of_plan', 1, { base_plan_id: 'base' })
    await link('of_offer', 2, { base_plan_id: 'base', offer_id: 'trial' })
    const given = async (purchase: object) => {
      const who = someone()
      assertAnswer(by, await by.bring(who, await by.buy(who, purchase)), 'given')
      return by.balance(who)
    }
    assert.equal(await given({ ...monthly, offer: 'trial' }), 2)
    assert.equal(await given(monthly), 1)
    assert.equal(await given({ ...monthly, basePlanId: 'strict' }), 100)
  })
})
