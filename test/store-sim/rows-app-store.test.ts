import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** Each row of the App Store's decision tables, against the simulator. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('appstore')
/** Believes what is signed: it has no key to ask with. */
const believing = await shop.open('appstore')
await believing.credentials({ kind: 'appstore' })

interface State {
  row: string
  productId?: string
  buy?: object
  /** What happens at the store after it was bought; gives what the device holds then. */
  later?: (held: Body) => Promise<Body>
  first: string
  access: boolean
  /** In the workspace, once somebody has it. */
  status: string
  exports?: number
  /** Nothing that happens to a purchase that somebody has: only seen first so. */
  onlyFirst?: true
  by?: Counter
}

const verb =
  (...verbs: string[]) =>
  async (held: Body) => {
    let now = held
    for (const each of verbs) now = await counter.verb(held, each)
    return now
  }
const claiming = (claims: object) => (held: Body) => counter.verb(held, 're-sign', { claims })
const upgraded = async (held: Body) => {
  await counter.verb(held, 'upgrade', { productId: 'yearly', accountToken: tokenIn(held) })
  return counter.verb(held, 're-sign', { order: held.transactionId })
}
const tokenIn = ({ signedTransaction }: Body) => claimsIn(signedTransaction).appAccountToken
const claimsIn = (jws: string): Body => JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
const monthAgo = Date.now() - 32 * 24 * 3600_000

const states: State[] = [
  { row: 'auto-renewable, active', first: 'given', access: true, status: 'active', exports: 100 },
  { row: 'auto-renewable, grace', later: verb('enter-grace'), first: 'given', access: true, status: 'grace' },
  {
    ...{ row: 'auto-renewable, billing retry', later: verb('hold'), first: 'unsupported billing_retry' },
    ...{ access: false, status: 'billing_retry' },
  },
  {
    ...{ row: 'auto-renewable, grace over', later: verb('enter-grace', 'hold'), first: 'unsupported billing_retry' },
    ...{ access: false, status: 'billing_retry' },
  },
  {
    ...{ row: 'auto-renewable, expired', later: verb('expire'), first: 'unsupported expired' },
    ...{ access: false, status: 'expired' },
  },
  {
    ...{ row: 'auto-renewable, refunded', later: verb('refund'), first: 'unsupported revoked' },
    ...{ access: false, status: 'revoked' },
  },
  {
    ...{ row: 'auto-renewable, nobody to ask: active', first: 'given', access: true, status: 'active' },
    ...{ by: believing, onlyFirst: true },
  },
  {
    ...{ row: 'auto-renewable, nobody to ask: its end has passed', later: verb('expire') },
    ...{ first: 'unsupported expired', access: false, status: 'expired', by: believing, onlyFirst: true },
  },
  {
    ...{ row: 'isUpgraded: judged by the newest', later: upgraded, first: 'given', access: true },
    ...{ status: 'active', exports: 500 },
  },
  {
    row: 'isUpgraded: and the newest expired',
    later: async (held) => {
      const before = await upgraded(held)
      await counter.verb(held, 'expire')
      return before
    },
    ...{ first: 'unsupported expired', access: false, status: 'expired' },
  },
  { row: 'non-consumable', productId: 'lifetime', first: 'given', access: true, status: 'active' },
  {
    ...{ row: 'non-consumable, revoked', productId: 'lifetime', later: verb('refund'), first: 'unsupported revoked' },
    ...{ access: false, status: 'revoked' },
  },
  {
    ...{ row: 'consumable: as often as it was bought', productId: 'pack', buy: { quantity: 3 }, first: 'given' },
    ...{ access: false, status: 'active', exports: 30 },
  },
  {
    ...{ row: 'consumable, refunded', productId: 'pack', later: verb('refund'), first: 'unsupported revoked' },
    ...{ access: false, status: 'revoked', exports: 0 },
  },
  { row: 'non-renewing, with a duration', productId: 'season', first: 'given', access: true, status: 'active' },
  {
    ...{ row: 'non-renewing, over', productId: 'season', later: claiming({ purchaseDate: monthAgo }) },
    ...{ first: 'unsupported expired', access: false, status: 'expired', onlyFirst: true },
  },
  {
    ...{ row: 'non-renewing, no duration set', productId: 'open_season' },
    ...{ first: 'unsupported duration_not_configured', access: false, status: '', onlyFirst: true },
  },
  {
    ...{ row: 'any other type', productId: 'lifetime', later: claiming({ type: 'Something New' }) },
    ...{ first: 'unsupported product_type', access: false, status: '', onlyFirst: true },
  },
]

async function assertShown(by: Counter, who: string, { access, status, exports }: State): Promise<void> {
  assert.equal(await by.entitled(who), access)
  if (exports !== undefined) assert.equal(await by.balance(who), exports)
  const [purchase, ...more] = await by.shown(who)
  const isOpen = access || (exports ?? 0) > 0
  assert.deepEqual([purchase?.status, purchase?.active, more.length], [status, isOpen, 0])
}

describe('at first sight', () => {
  for (const state of states) {
    const { row, productId = 'monthly', buy, later = async (held: Body) => held, first, by = counter } = state
    test(row, async () => {
      const [who, other] = [someone(), someone()]
      const held = await shop.silently(async () => later(await by.buy(who, { productId, ...buy })))
      assertAnswer(by, await by.bring(who, held), first, row)
      if (first === 'given') await assertShown(by, who, state)
      else assert.deepEqual([await by.entitled(who), await by.isKnown(who)], [false, false])
      assertAnswer(by, await by.bring(who, held), first === 'given' ? 'replay' : first, row)
      // Whoever it was not bought for learns nothing of how it stands.
      assertAnswer(by, await by.bring(other, held), first === 'given' ? 'conflict' : 'owner_unverified', row)
      assert.equal(await by.isKnown(other), false)
    })
  }
})

describe('once it is the caller’s', () => {
  for (const state of states.filter(({ onlyFirst }) => !onlyFirst)) {
    const { row, productId = 'monthly', buy, later = async (held: Body) => held } = state
    test(row, async () => {
      const [who, other] = [someone(), someone()]
      const held = await counter.buy(who, { productId, ...buy })
      assertAnswer(counter, await counter.bring(who, held), 'given')
      const now = await later(held)
      await shop.settled()
      await assertShown(counter, who, state)
      assertAnswer(counter, await counter.bring(who, now), 'replay', row)
      await assertShown(counter, who, state)
      assertAnswer(counter, await counter.bring(other, now), 'conflict', row)
    })
  }
})

describe('claims', () => {
  test('billing retry: the claim comes true with the renewal, and no call', async () => {
    const who = someone()
    const held = await shop.silently(async () => verb('hold')(await counter.buy(who, { productId: 'monthly' })))
    assertAnswer(counter, await counter.bring(who, held), 'unsupported billing_retry')
    await counter.verb(held, 'recover')
    await shop.settled()
    assert.equal(await counter.entitled(who), true)
    assertAnswer(counter, await counter.bring(who, await counter.verb(held, 're-sign')), 'replay')
  })

  test('no duration set: the claim comes true with the duration, and no call', async () => {
    const who = someone()
    const by = await shop.open('appstore')
    const held = await by.buy(who, { productId: 'open_season' })
    assertAnswer(by, await by.bring(who, held), 'unsupported duration_not_configured')
    const { data } = await by.project.get(`/products?project_id=${by.project.id}&limit=100`)
    const { id } = data.find(({ key }: Body) => key === 'open_season')
    const stores = [{ store: 'appstore', product_id: 'open_season', duration: 'P2M' }]
    await by.project.patch(`/products/${id}`, { stores })
    await eventually(() => by.entitled(who), 10_000)
    assertAnswer(by, await by.bring(who, held), 'replay')
  })

  test('unmapped: the claim comes true with the link, and no call', async () => {
    const who = someone()
    const by = await shop.open('appstore')
    const held = await by.buy(who, { productId: 'unsold' })
    assertAnswer(by, await by.bring(who, held), 'invalid')
    const stores = [{ store: 'appstore', product_id: 'unsold' }]
    const product = { project_id: by.project.id, key: 'unsold', name: 'Unsold', type: 'one_time', stores }
    await by.project.post('/products', { ...product, grants: [{ feature: 'pro' }] })
    await eventually(() => by.entitled(who), 10_000)
  })
})

describe('the family', () => {
  const shared: [string, string, string][] = [
    ['family: a subscription that the link shares', 'shared', 'given'],
    ['family: a non-consumable that the link shares', 'shared_lifetime', 'given'],
    ['family: a subscription that the link does not share', 'monthly', 'unsupported family_shared'],
    ['family: a non-consumable that the link does not share', 'lifetime', 'unsupported family_shared'],
  ]
  for (const [row, productId, expected] of shared) {
    test(row, async () => {
      const [payer, member] = [someone(), someone()]
      await counter.settings({ unbound_purchases: 'first_claim' })
      const held = await counter.buy(payer, { productId, family: [member] })
      assertAnswer(counter, await counter.bring(payer, held), 'given', 'the payer')
      assertAnswer(counter, await counter.bring(member, held.family[0]), expected, row)
      assert.equal(await counter.entitled(member), expected === 'given')
      if (expected === 'given') {
        const [purchase] = await counter.shown(member)
        assert.deepEqual([purchase.family_shared, purchase.active], [true, true])
      }
      await counter.settings({ unbound_purchases: 'reject' })
    })
  }
})

/** What the App Store Server API answers when it is asked about a subscription. */
interface Upstream {
  row: string
  faults: object[]
  /** Signed so long ago. */
  agoMs?: number
  expected: string
  /** How often it was asked. */
  calls?: number
  unpolled?: true
}

const path = '/appstore/inApps/v1/subscriptions/*'
const minuteMs = 60_000
const late = [4040010, 4040002, 4040004, 4040006]
const upstream: Upstream[] = [
  ...late.flatMap((code): Upstream[] => [
    {
      ...{ row: `asked: 404 ${code}, signed just now`, faults: [{ kind: 'not_found', path, seconds: 604_800, code }] },
      ...{ expected: 'reconciliation_retryable', calls: 2 },
    },
    {
      ...{ row: `asked: 404 ${code}, signed 16 minutes ago`, agoMs: 16 * minuteMs },
      ...{ faults: [{ kind: 'not_found', path, seconds: 604_800, code }], expected: 'given', calls: 2, unpolled: true },
    },
  ]),
  {
    ...{ row: 'asked: 404 once, then it is there', faults: [{ kind: 'not_found', path, seconds: 604_800, count: 1 }] },
    ...{ expected: 'given', calls: 2 },
  },
  {
    ...{ row: 'asked: 5000001, retryable', faults: [{ kind: 'server_error', path, code: 5000001 }] },
    expected: 'reconciliation_retryable',
  },
  { row: 'asked: 401', faults: [{ kind: 'unauthorized', path }], expected: 'unavailable' },
  { row: 'asked: 403', faults: [{ kind: 'forbidden', path }], expected: 'unavailable' },
  { row: 'asked: 429 is 503 here', faults: [{ kind: 'rate_limited', path, seconds: 7 }], expected: 'unavailable' },
  { row: 'asked: 5xx', faults: [{ kind: 'server_error', path }], expected: 'unavailable', calls: 2 },
  { row: 'asked: 5xx once', faults: [{ kind: 'server_error', path, count: 1 }], expected: 'given', calls: 2 },
  { row: 'asked: no answer', faults: [{ kind: 'hang', path, seconds: 60 }], expected: 'unavailable' },
  { row: 'asked: a truncated answer', faults: [{ kind: 'truncated_json', path }], expected: 'unavailable' },
  { row: 'asked: an answer under another root', faults: [{ kind: 'foreign_root', path }], expected: 'unavailable' },
  { row: 'asked: a forged answer', faults: [{ kind: 'forged_signature', path }], expected: 'unavailable' },
]

describe('what the App Store answers', () => {
  for (const { row, faults, agoMs = 0, expected, calls, unpolled } of upstream) {
    test(row, async () => {
      const who = someone()
      const held = await shop.silently(async () => {
        const bought = await counter.buy(who, { productId: 'monthly' })
        return counter.verb(bought, 're-sign', { claims: { signedDate: Date.now() - agoMs } })
      })
      const from = await shop.logged()
      await shop.faults(...faults, { kind: 'drop', path: '/notify/*' })
      const answer = await counter.bring(who, held)
      await shop.faults()
      assertAnswer(counter, answer, expected, row)
      // Others that were not answered are asked about as well, in the background.
      const its = new RegExp(`subscriptions/${held.transactionId}`)
      if (calls !== undefined) assert.equal(await shop.calls(its, from), calls)
      assert.equal(await counter.entitled(who), expected === 'given')
      if (expected === 'given') assert.equal((await counter.shown(who))[0].unpolled, unpolled ?? false)
      // No verdict is no refusal: it is taken as soon as the store says how it stands.
      else assertAnswer(counter, await counter.bring(who, held), 'given', 'later')
    })
  }
})
