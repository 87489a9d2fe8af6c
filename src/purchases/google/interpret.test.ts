import assert from 'node:assert/strict'
import test from 'node:test'
import { dayMs } from '../../kernel/limits.ts'
import type { Evidence, MappedProduct, PeriodAccess, VerifiedPurchase } from '../types.ts'
import { tokenKeyOf } from './chain.ts'
import { interpret, type Reading } from './interpret.ts'
import type { PlayItem, PlayPurchase } from './purchase.ts'

const now = Date.UTC(2026, 10, 20)
const hour = 3600_000

const link = { store: 'playstore', productId: 'pro', basePlanId: null, purchaseOptionId: null, offerId: null } as const
const mapped = (consumable = false): MappedProduct => ({
  product: {
    ...{
      scopeId: 1,
      publicId: 'prod_1',
      key: 'pro',
      name: 'Pro',
      type: 'subscription',
      grants: [],
      stores: [],
      preview: null,
    },
    ...{ status: 'active', createdAt: new Date(0), updatedAt: new Date(0) },
  },
  link: { ...link, consumable, duration: null, familySharing: false },
})
const item = (more: Partial<PlayItem> = {}): PlayItem => ({
  ...{ productId: 'pro', basePlanId: 'monthly', purchaseOptionId: null, offerId: null, orderId: 'GPA.1' },
  ...{ expiresAt: now + dayMs, autoRenews: true, isPrepaid: false, quantity: 1, refundable: 1 },
  ...{ isConsumed: false, isRefunded: false },
  standing: { kind: 'access', until: now + dayMs, isLate: false },
  ...more,
})
const bought = (more: Partial<PlayPurchase> = {}): PlayPurchase => ({
  ...{ kind: 'subscription', status: 'active', isTest: false, accountId: 'abc', linkedToken: null, outOfApp: null },
  ...{ isAcknowledged: false, startsAt: now - dayMs, items: [item()] },
  ...more,
})
const coins = (more: Partial<PlayItem> = {}, purchase: Partial<PlayPurchase> = {}) =>
  bought({
    kind: 'one_time',
    status: 'purchased',
    items: [
      item({
        ...{ productId: 'coins', basePlanId: null, purchaseOptionId: 'buy', expiresAt: null, autoRenews: null },
        standing: { kind: 'access', until: null, isLate: false },
        ...more,
      }),
    ],
    ...purchase,
  })
const reading = (purchase: PlayPurchase, more: Partial<Reading> = {}): Reading => ({
  ...{ packageName: 'app.example', token: 'token', purchase, mapped: purchase.items.map(() => mapped()) },
  chain: { rootKey: tokenKeyOf('token'), linked: [] },
  ...{ readAt: now + 3, now, leaseMs: dayMs, voided: new Map(), isKnown: false },
  ...more,
})
const wish = (more: Partial<Pick<Evidence, 'claims' | 'consume'>> = {}) => ({ claims: {}, consume: false, ...more })

function verified(given: Reading, wished = wish()): VerifiedPurchase {
  const verdict = interpret(given, wished)
  assert.equal(verdict.kind, 'verified', JSON.stringify(verdict))
  return verdict.kind === 'verified' ? verdict.purchase : assert.fail()
}
function refusal(given: Reading, wished = wish()): [string, string] {
  const verdict = interpret(given, wished)
  return verdict.kind === 'refused' ? [verdict.suffix, verdict.detail] : assert.fail(JSON.stringify(verdict))
}
const accesses = (given: Reading): PeriodAccess[] =>
  verified(given).transactions.flatMap(({ periods }) => periods.map(({ access }) => access))

test('access lasts until the end that the store names; a late renewal gets the lease', () => {
  assert.deepEqual(accesses(reading(bought())), [{ kind: 'open', until: now + dayMs }])
  const late = item({ expiresAt: now - hour, standing: { kind: 'access', until: now - hour, isLate: true } })
  assert.deepEqual(accesses(reading(bought({ items: [late] }))), [{ kind: 'open', until: now - hour + dayMs }])
  assert.deepEqual(accesses(reading(coins())), [{ kind: 'open', until: null }])
})

test('what gives no access says why, and whether a claim to it is kept', () => {
  const claims = {
    expired: false,
    on_hold: true,
    paused: true,
    purchase_pending: true,
    purchase_canceled: false,
  } as const
  for (const [detail, claim] of Object.entries(claims)) {
    const standing = { kind: 'none', detail: detail as keyof typeof claims } as const // the keys of the literal
    assert.deepEqual(accesses(reading(bought({ items: [item({ standing })] }))), [
      { kind: 'closed', detail, claim, revocation: null },
    ])
  }
})

test('an order that was voided is refunded, whatever the state says', () => {
  const voided = new Map([['GPA.1', now - hour]])
  assert.deepEqual(accesses(reading(bought(), { voided })), [
    {
      ...{ kind: 'closed', detail: 'revoked', claim: false },
      revocation: { at: now - hour, reason: null, share: 1, kind: 'refund' },
    },
  ])
  assert.deepEqual(accesses(reading(bought(), { voided: new Map([['GPA.0', now]]) })), [
    { kind: 'open', until: now + dayMs },
  ])
})

test('what was bought once and given back is a refund', () => {
  const given = coins({ isRefunded: true, standing: { kind: 'none', detail: 'purchase_canceled' } })
  const [access] = accesses(reading(given))
  assert.deepEqual(access?.kind === 'closed' && access.revocation?.share, 1)
  // Whether its order was heard to be voided before changes nothing of what is said.
  const [heard] = accesses(reading(given, { voided: new Map([['GPA.1', now - hour]]) }))
  assert.equal(heard?.kind === 'closed' && heard.detail, 'purchase_canceled')
})

test('an unsettled purchase, or one without items, is asked for again', () => {
  assert.deepEqual(refusal(reading(bought({ items: [item({ standing: { kind: 'unsettled' } })] }))), [
    'reconciliation_retryable',
    'unsettled',
  ])
  assert.deepEqual(refusal(reading(bought({ items: [] }))), ['reconciliation_retryable', 'unsettled'])
})

test('whatever the client says must be what the store says', () => {
  const right: Evidence['claims'] = {
    ...{ productId: 'pro', basePlanId: 'monthly', packageName: 'app.example' },
    productType: 'subscription',
  }
  verified(reading(bought()), wish({ claims: right }))
  const wrong: Evidence['claims'][] = [
    { ...right, productId: 'max' },
    { ...right, basePlanId: 'yearly' },
    { ...right, offerId: 'intro' },
    { ...right, purchaseOptionId: 'buy' },
    { ...right, productType: 'one_time' },
    { ...right, packageName: 'app.other' },
  ]
  for (const claims of wrong) {
    assert.deepEqual(refusal(reading(bought()), wish({ claims })), ['invalid', 'contradicted'], JSON.stringify(claims))
  }
})

test('claims are held against one item, not against several together', () => {
  const two = bought({ items: [item(), item({ productId: 'extra', basePlanId: 'yearly', orderId: 'GPA.2' })] })
  verified(reading(two), wish({ claims: { productId: 'extra', basePlanId: 'yearly' } }))
  assert.deepEqual(refusal(reading(two), wish({ claims: { productId: 'extra', basePlanId: 'monthly' } })), [
    'invalid',
    'contradicted',
  ])
})

test('a store product without a Product is told with what is needed to claim it later', () => {
  const verdict = interpret(reading(bought({ isTest: true }), { mapped: [null] }), wish())
  assert.deepEqual(verdict, {
    ...{ kind: 'refused', suffix: 'invalid', detail: 'unmapped_product' },
    unmapped: { storeEnvironment: 'sandbox', evidenceKey: tokenKeyOf('token'), storeProductId: 'pro' },
  })
})

test('only what is sold as consumable may be consumed', () => {
  const consume = wish({ consume: true })
  assert.deepEqual(refusal(reading(coins()), consume), ['invalid', 'not_consumable'])
  assert.deepEqual(refusal(reading(bought(), { mapped: [mapped(true)] }), consume), ['invalid', 'not_consumable'])
  const { outbox } = verified(reading(coins(), { mapped: [mapped(true)] }), consume)
  assert.deepEqual(
    outbox.map(({ kind, key, payload }) => ({ kind, key, payload })),
    [{ kind: 'consume', key: tokenKeyOf('token'), payload: { productId: 'coins', kind: 'one_time' } }],
  )
})

test('the store is told of what gives access, once, in time, and of nothing else', () => {
  const told = (purchase: PlayPurchase, wished = wish(), consumable = false) =>
    verified(reading(purchase, { mapped: [mapped(consumable)] }), wished).outbox.map(({ kind, deadline }) => [
      kind,
      deadline,
    ])
  assert.deepEqual(told(bought()), [['ack', now + 2 * dayMs]])
  assert.deepEqual(told(bought({ isTest: true })), [['ack', now - dayMs + 180_000]])
  assert.deepEqual(told(bought({ isAcknowledged: true })), [])
  assert.deepEqual(told(bought({ items: [item({ standing: { kind: 'none', detail: 'on_hold' } })] })), [])
  assert.deepEqual(told(coins(), wish(), true), [['ack', now + 2 * dayMs]])
  assert.deepEqual(told(coins({ isConsumed: true }), wish({ consume: true }), true), [])
  assert.deepEqual(told(coins({}, { isAcknowledged: true }), wish({ consume: true }), true), [
    ['consume', now + 2 * dayMs],
  ])
})

test('a consumable that something else used up is told apart from one that we know', () => {
  const used = coins({ isConsumed: true })
  assert.equal(verified(reading(used)).consumedElsewhere, true)
  assert.equal(verified(reading(used, { isKnown: true })).consumedElsewhere, false)
  assert.equal(verified(reading(coins())).consumedElsewhere, false)
  // The word stays with it, so that bringing it again makes it no other.
  assert.equal(verified(reading(used)).status, 'consumed_elsewhere')
  assert.equal(verified(reading(used, { isKnown: true })).status, 'active')
})

test('each order of a subscription is a period; what is bought once has one', () => {
  const keys = (purchase: PlayPurchase) =>
    verified(reading(purchase)).transactions.flatMap(({ periods }) => periods.map(({ line, key }) => [line, key]))
  assert.deepEqual(keys(bought()), [['pro', 'GPA.1']])
  assert.deepEqual(keys(bought({ items: [item({ orderId: null })] })), [['pro', 'promo']])
  assert.deepEqual(keys(coins()), [['coins', 'once']])
  assert.deepEqual(keys(coins({ orderId: null })), [['coins', 'once']])
})

test('a paid token takes the place of those it links to; an unpaid one takes none', () => {
  const chain = {
    rootKey: tokenKeyOf('a'),
    linked: [
      { key: tokenKeyOf('b'), token: 'b' },
      { key: tokenKeyOf('a'), token: 'a' },
    ],
  }
  const places = (status: string) => {
    const purchase = verified(reading(bought({ status, linkedToken: 'b' }), { chain }))
    assert.equal(purchase.rootKey, tokenKeyOf('a'))
    assert.deepEqual(purchase.linkedKeys, [tokenKeyOf('b'), tokenKeyOf('a')])
    return purchase.transactions.map(({ evidenceKey, supersededBy }) => [evidenceKey, supersededBy])
  }
  const own = [tokenKeyOf('token'), null]
  for (const status of ['active', 'grace', 'canceled', 'hold', 'paused', 'expired']) {
    assert.deepEqual(
      places(status),
      [own, [tokenKeyOf('b'), tokenKeyOf('token')], [tokenKeyOf('a'), tokenKeyOf('b')]],
      status,
    )
  }
  for (const status of ['pending', 'pending_canceled']) assert.deepEqual(places(status), [own], status)
})

test('a resubscription from the Play app names whose subscription it continues', () => {
  const purchase = verified(reading(bought({ accountId: null, outOfApp: { accountId: 'def', token: 'ended' } })))
  assert.deepEqual(purchase.linkedKeys, [tokenKeyOf('ended')])
  assert.deepEqual([purchase.accountToken, purchase.renewalAccountToken], [null, 'def'])
  assert.equal(purchase.rootKey, tokenKeyOf('token'))
  assert.deepEqual(
    purchase.transactions.map(({ evidenceKey, supersededBy }) => [evidenceKey, supersededBy]),
    [
      [tokenKeyOf('token'), null],
      [tokenKeyOf('ended'), tokenKeyOf('token')],
    ],
  )
})

test('one token that names two predecessors is a conflict', () => {
  const two = bought({ linkedToken: 'b', outOfApp: { accountId: null, token: 'x' } })
  assert.deepEqual(refusal(reading(two)), ['conflict', 'two_predecessors'])
  verified(reading(bought({ linkedToken: 'b', outOfApp: { accountId: null, token: 'b' } })))
})

test('what is answered comes from the store, also where the client said less', () => {
  assert.deepEqual(verified(reading(coins({ orderId: null, offerId: 'sale' }))).result, {
    catalogProduct: {
      ...{ id: 'prod_1', store_product_id: 'coins', base_plan_id: null, purchase_option_id: 'buy', offer_id: 'sale' },
      store_product_type: 'one_time',
    },
  })
  assert.equal(verified(reading(bought())).result.orderId, 'GPA.1')
})

test('the word for the whole is that of the decision table', () => {
  const word = (purchase: PlayPurchase, voided = new Map<string, number>()) =>
    verified(reading(purchase, { voided })).status
  assert.equal(word(bought()), 'active')
  assert.equal(word(bought({ status: 'canceled' })), 'active')
  assert.equal(word(bought({ status: 'grace' })), 'grace')
  assert.equal(
    word(bought({ status: 'hold', items: [item({ standing: { kind: 'none', detail: 'on_hold' } })] })),
    'on_hold',
  )
  assert.equal(word(bought(), new Map([['GPA.1', now]])), 'revoked')
})

test('nothing that is kept of the answer holds a token', () => {
  const chain = { rootKey: tokenKeyOf('secret-b'), linked: [{ key: tokenKeyOf('secret-b'), token: 'secret-b' }] }
  const { transactions, ...rest } = verified(
    reading(bought({ accountId: null, linkedToken: 'secret-b', outOfApp: { accountId: 'd', token: 'secret-b' } }), {
      ...{ chain, token: 'secret-token' },
    }),
  )
  assert.doesNotMatch(JSON.stringify([rest, transactions.map(({ claims, periods }) => [claims, periods])]), /secret/)
})
