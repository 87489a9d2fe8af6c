import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Tx } from '../../src/db/pool.ts'
import {
  attachProduct,
  attachPurchase,
  createBalances,
  createProduct,
  endPurchase,
  getProduct,
  movePurchaseEnd,
  refundPart,
  registerEntity,
} from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { somebodyWaits } from '../harness/waits.ts'
import { factsIn, findings, openLedger, type Spender, totals, untilAnswered } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const all: Spender[] = await Promise.all([ledger.spender(), ledger.spender(), ledger.spender()])
after(async () => {
  for (const spender of all) await spender[Symbol.asyncDispose]()
})
const [one] = all as [Spender, Spender, Spender]

/** A customer `u` with `shared` exports, and an attached Product that gives 5 to each of the first `places` entities. */
async function team(places: number, { shared = 1, unlimited = false } = {}) {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  await ledger.grant(scope, customerId, exports, shared)
  const terms = { allowance: unlimited ? null : 5, unlimited, interval: null, rollover: null }
  const attach = () =>
    pool.transaction((tx) => attachProduct(tx, scope, { customerId, product: 'team', startsAt: null, expiresAt: null }))
  await pool.transaction((tx) =>
    createProduct(tx, scope, {
      ...{ key: 'team', name: 'Team', type: 'subscription', stores: [] },
      grants: [{ feature: 'exports', ...terms, entity_scoped: true, max_entities: places }],
    }),
  )
  await attach()
  return { scope, customerId, attach }
}

async function seats({ scopeId }: Scope): Promise<(string | null)[]> {
  const rows = await pool.query<{ entity_id: string | null }>(
    'select entity_id from ledger_grant where scope_id = $1 order by id',
    [scopeId],
  )
  return rows.map(({ entity_id }) => entity_id)
}

test('the first entities that spend get a grant each, checks show it before, and further ones draw on what is shared', async () => {
  const { scope, customerId } = await team(2)
  const balances = createBalances({ pool: one.pool, catalogues: one.catalogues, standing: one.standing })
  const balance = async (entity: string) => {
    const { balance: checked } = await one.check({ scope, distinctId: 'u', feature: 'exports', required: 1, entity })
    const [shown] = await balances({ scope, customerId, feature: 'exports', entityId: entity, platform: null })
    assert.equal(shown?.balance, checked)
    return checked
  }
  assert.equal(await balance('a'), 6)
  assert.deepEqual(await seats(scope), [null], 'a check opens nothing')
  const spend = async (entity: string, quantity: number) => {
    const { code, balance: left } = await one.consume({ scope, distinctId: 'u', quantity, entity })
    return [code, left]
  }
  assert.deepEqual(await spend('a', 7), ['insufficient_balance', 6])
  assert.deepEqual(await seats(scope), [null], 'nor does a denial')
  assert.deepEqual(await spend('a', 2), ['consumed', 4])
  assert.deepEqual(await spend('b', 5), ['consumed', 1])
  assert.deepEqual([await balance('a'), await balance('b'), await balance('c')], [4, 1, 1])
  assert.deepEqual(await spend('c', 2), ['insufficient_balance', 1])
  assert.deepEqual(await spend('c', 1), ['consumed', 0])
  assert.deepEqual(await seats(scope), [null, 'a', 'b'])
  const granted = (await factsIn(pool, scope)).filter(({ event }) => event === '$feature_granted')
  assert.deepEqual(
    granted.map(({ properties }) => [properties.source, properties.allowance, properties.product_id !== null]),
    [
      ['manual', 1, false],
      ['product', 5, true],
      ['product', 5, true],
    ],
  )
  assert.deepEqual(await findings(pool, scope), [])
})

test('however many unknown ids spend at once through several processes, only the places of the product are given', async () => {
  const { scope } = await team(3, { shared: 4 })
  const answers = await Promise.all(
    Array.from({ length: 120 }, (_, i) =>
      untilAnswered(must(all[i % 3], 'three').consume, {
        scope,
        distinctId: 'u',
        quantity: 1,
        entity: `seat ${i % 12}`,
      }),
    ),
  )
  const accepted = answers.filter((answer) => answer.accepted).length
  const given = await seats(scope)
  assert.equal(new Set(given).size, given.length)
  assert.equal(given.length, 1 + 3)
  assert.equal(accepted, 4 + 3 * 5, 'each seat spends ten: its own five, and shared ones while there are any')
  assert.deepEqual((await totals(pool, scope)).left, 0n)
  assert.deepEqual(await findings(pool, scope), [])
})

test('an unlimited place is taken by the spend that it covers', async () => {
  const { scope } = await team(1, { shared: 2, unlimited: true })
  const spend = (entity: string) => one.consume({ scope, distinctId: 'u', quantity: 50, entity })
  assert.deepEqual([(await spend('a')).unlimited, (await spend('a')).unlimited], [true, true])
  assert.equal((await spend('b')).code, 'insufficient_balance')
  assert.deepEqual(await findings(pool, scope), [])
})

test('registered entities take places too, whenever they are registered, but none is ever refused', async () => {
  const { scope, customerId, attach } = await team(1)
  const register = (entityId: string) =>
    pool.transaction((tx) => registerEntity(tx, scope, { customerId, feature: 'exports', entityId }, 'key_test'))
  await register('a')
  assert.equal((await one.consume({ scope, distinctId: 'u', quantity: 2, entity: 'b' })).code, 'insufficient_balance')
  await register('b')
  assert.equal((await one.consume({ scope, distinctId: 'u', quantity: 2, entity: 'b' })).code, 'consumed')
  await attach()
  assert.equal((await one.consume({ scope, distinctId: 'u', quantity: 2, entity: 'c' })).code, 'insufficient_balance')
  assert.deepEqual(await seats(scope), [null, 'a', 'b', 'a', 'b'])
  assert.deepEqual(await findings(pool, scope), [])
})

test('entities of what was bought get no period after what is paid, grace or not, and follow when more is paid', async () => {
  const scope = await ledger.scope()
  await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  const terms = { allowance: 5, unlimited: false, interval: 'day' as const, rollover: null }
  await pool.transaction((tx) =>
    createProduct(tx, scope, {
      ...{ key: 'team', name: 'Team', type: 'subscription', stores: [] },
      grants: [{ feature: 'exports', ...terms, entity_scoped: true, max_entities: 3 }],
    }),
  )
  const startsAt = Date.now() - 1000
  const [paidUntil, graceUntil, renewedUntil] = [startsAt + 5_000_000, startsAt + 9_000_000, startsAt + 20_000_000]
  await pool.transaction(async (tx) => {
    const product = await getProduct(tx, [scope], 'team', 'product')
    const about = { customerId, product, ref: 'purchase:1', rank: 0 as const, quantity: 1 }
    await attachPurchase(tx, scope, { ...about, startsAt, expiresAt: graceUntil, paidUntil })
  })
  const spend = (entity: string) => one.consume({ scope, distinctId: 'u', quantity: 1, entity })
  const ends = async () => {
    const rows = await pool.query<{ entity_id: string; paid_until_ms: bigint; expires_at_ms: bigint }>(
      'select entity_id, paid_until_ms, expires_at_ms from ledger_grant where scope_id = $1 order by entity_id',
      [scope.scopeId],
    )
    return rows.map((row) => [row.entity_id, Number(row.paid_until_ms), Number(row.expires_at_ms)])
  }
  assert.equal((await spend('a')).accepted, true)
  await pool.transaction((tx) =>
    registerEntity(tx, scope, { customerId, feature: 'exports', entityId: 'b' }, 'key_test'),
  )
  assert.deepEqual(await ends(), [
    ['a', paidUntil, graceUntil],
    ['b', paidUntil, graceUntil],
  ])
  await pool.transaction((tx) =>
    movePurchaseEnd(tx, scope, 'purchase:1', { expiresAt: renewedUntil, paidUntil: renewedUntil, note: null }),
  )
  assert.equal((await spend('c')).accepted, true)
  assert.deepEqual(
    await ends(),
    ['a', 'b', 'c'].map((entity) => [entity, renewedUntil, renewedUntil]),
  )
})

/** What the store said while a seat was being registered, its transaction not ended yet. */
const said = {
  ended: (tx: Tx, scope: Scope) => endPurchase(tx, scope, 'purchase:1', { note: 'revoked' }),
  moved: (tx: Tx, scope: Scope) =>
    movePurchaseEnd(tx, scope, 'purchase:1', { expiresAt: laterMs, paidUntil: laterMs, note: null }),
  refunded: (tx: Tx, scope: Scope) => refundPart(tx, scope, 'purchase:1', { parts: 1, of: 5, note: 'refunded' }),
}
const laterMs = Date.now() + 9_000_000

for (const seatsBefore of [0, 1]) {
  test(`what a store takes back of ${seatsBefore} seats, it takes of the one that is made meanwhile`, async () => {
    const made = {
      ended: await whileSeatIsMade(seatsBefore, said.ended),
      moved: await whileSeatIsMade(seatsBefore, said.moved),
      refunded: await whileSeatIsMade(seatsBefore, said.refunded),
    }
    for (const { revoked_at_ms: at, remaining } of made.ended) assert.deepEqual([at !== null, remaining], [true, 0n])
    for (const { expires_at_ms: at } of made.moved) assert.equal(Number(at), laterMs)
    for (const { remaining } of made.refunded) assert.equal(remaining, 4n)
  })
}

/** Gives the seats of a purchase of which the store said something while the last of them was registered. */
async function whileSeatIsMade(before: number, say: (tx: Tx, scope: Scope) => Promise<void>) {
  const scope = await ledger.scope()
  await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  const terms = { allowance: 5, unlimited: false, interval: null, rollover: null }
  await pool.transaction((tx) =>
    createProduct(tx, scope, {
      ...{ key: 'team', name: 'Team', type: 'subscription', stores: [] },
      grants: [{ feature: 'exports', ...terms, entity_scoped: true, max_entities: 3 }],
    }),
  )
  await pool.transaction(async (tx) => {
    const product = await getProduct(tx, [scope], 'team', 'product')
    const about = { customerId, product, ref: 'purchase:1', rank: 0 as const, quantity: 1 }
    await attachPurchase(tx, scope, { ...about, startsAt: Date.now(), expiresAt: laterMs - 1000, paidUntil: null })
  })
  const register = (tx: Tx, entityId: string) =>
    registerEntity(tx, scope, { customerId, feature: 'exports', entityId }, 'key_test')
  for (let i = 0; i < before; i++) await pool.transaction((tx) => register(tx, `before ${i}`))
  const saying = await pool.transaction(async (tx) => {
    await register(tx, 'meanwhile')
    const going = pool.transaction((other) => say(other, scope))
    await Promise.race([somebodyWaits(pool), going])
    return { going }
  })
  await saying.going
  assert.deepEqual(await findings(pool, scope), [])
  const made = await pool.query<{ revoked_at_ms: bigint | null; remaining: bigint; expires_at_ms: bigint }>(
    'select revoked_at_ms, remaining, expires_at_ms from ledger_grant where scope_id = $1',
    [scope.scopeId],
  )
  assert.equal(made.length, before + 1)
  return made
}
