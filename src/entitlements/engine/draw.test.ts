import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, Grant, State } from '../types.ts'
import { available, type Draw, planDraw } from './draw.ts'
import { live, visible } from './grant.ts'
import { order } from './order.ts'
import { settled } from './settle.ts'
import { states } from './testing/arbitrary.ts'
import { account, feature, grant, pool, state } from './testing/build.ts'

const minute = 60_000
const t = 90_000

/** Who pays how much, by grant id. */
function paid(from: State, need: bigint): [id: bigint, units: bigint][] | null {
  return planDraw(from, need)?.draws.map((draw): [bigint, bigint] => [draw.grant.id, draw.units]) ?? null
}

const lives: [what: string, terms: Partial<Grant>, live: boolean][] = [
  ['begins at this instant', { effectiveAt: t }, true],
  ['begins a millisecond later', { effectiveAt: t + 1 }, false],
  ['expires at this instant', { expiresAt: t }, false],
  ['expires a millisecond later', { expiresAt: t + 1 }, true],
  ['was revoked at this instant', { revokedAt: t }, false],
  ['will be revoked a millisecond later', { revokedAt: t + 1 }, true],
  ['is drained', { amount: 5n, remaining: 0n }, true],
  ['is unlimited', { unlimited: true, amount: 0n }, true],
]
for (const [what, terms, expected] of lives) {
  test(`a grant that ${what} is ${expected ? 'live' : 'not live'}`, () => assert.equal(live(grant(terms), t), expected))
}

test('an entity sees its own and the shared grants, a request without entity the shared ones only', () => {
  const ids = [null, 'a', 'b']
  const seenBy = (entity: string | null): (string | null)[] =>
    ids.filter((entityId) => visible(grant({ entityId }), entity))
  assert.deepEqual([seenBy(null), seenBy('a'), seenBy('c')], [[null], [null, 'a'], [null]])
})

const cycle = { unit: 'minute' as const, count: 1, anchor: 0 }
const precedence: [rule: string, first: Partial<Grant>, second: Partial<Grant>][] = [
  ['unlimited before the entity’s own', { unlimited: true }, { entityId: 'a' }],
  ['the entity’s own before shared, even if it ends later', { entityId: 'a' }, { expiresAt: t + 1 }],
  ['what ends earlier before what ends later', { expiresAt: t + 1 }, { expiresAt: t + 2 }],
  ['what ends before what does not', { expiresAt: t + 9e9, rank: 1 }, {}],
  ['a reset is an end', { cycle, periodNo: 1n, rank: 1 }, { expiresAt: 2 * minute + 1 }],
  ['an expiry before the reset is the end', { expiresAt: 2 * minute - 1, rank: 1 }, { cycle, periodNo: 1n }],
  [
    'a reset that is not paid for is no end',
    { expiresAt: 1e9, rank: 1 },
    { cycle, periodNo: 1n, paidUntil: 2 * minute },
  ],
  ['a revocation to come is an end', { revokedAt: t + 1, rank: 1 }, { expiresAt: t + 2 }],
  ['given before purchased', { rank: 0, createdAt: 9 }, { rank: 1 }],
  ['older before newer', { createdAt: 1, id: 9n }, { createdAt: 2, id: 8n }],
  ['the smaller id at last', { id: 8n }, { id: 9n }],
  ['a row before a grant that has none yet', { id: 9n }, { id: -8n }],
  ['the older of two that have no row yet', { id: -8n }, { id: -9n }],
]
for (const [rule, first, second] of precedence) {
  test(`draw order: ${rule}`, () => {
    const [a, b] = [grant({ id: 1n, ...first }), grant({ id: 2n, ...second })]
    assert.deepEqual(order([a, b], 'a', t), [a, b])
    assert.deepEqual(order([b, a], 'a', t), [a, b])
  })
}

test('one draw may span several grants and pools, own units first', () => {
  const from = state({
    entity: 'a',
    own: account([{ amount: 2n }, { amount: 3n, entityId: 'a' }, { amount: 9n, entityId: 'b' }]),
    pools: [pool([{ amount: 10n }, { amount: 5n, entityId: 'a' }], { credits: 2n })],
  })
  assert.deepEqual(available(from), { live: true, unlimited: false, units: 12n })
  assert.deepEqual(paid(from, 4n), [
    [1001n, 3n],
    [1000n, 1n],
  ])
  assert.deepEqual(paid(from, 9n), [
    [1001n, 3n],
    [1000n, 2n],
    [2001n, 5n],
    [2000n, 3n],
  ])
  assert.equal(planDraw(from, 12n)?.left, 0n)
  assert.equal(planDraw(from, 13n), null)
})

test('pools pay in the order of their earliest-ending grant that holds something, then by id', () => {
  const pools = [
    pool([{ amount: 5n }], { id: 2 }),
    pool([{ amount: 5n }], { id: 3 }),
    pool([{ amount: 1n, expiresAt: 5_000 }, { amount: 5n }], { id: 4 }),
    pool(
      [
        { amount: 1n, remaining: 0n, expiresAt: 2_000 },
        { amount: 5n, expiresAt: 9_000 },
      ],
      { id: 5 },
    ),
  ]
  for (const each of [pools, pools.toReversed()]) {
    const from = state({ own: null, pools: each })
    assert.deepEqual(
      paid(from, 21n)?.map(([id]) => id),
      [4000n, 4001n, 5001n, 2000n, 3000n],
    )
  }
})

const credits: [
  what: string,
  terms: { credits: bigint; per: bigint; scale: number; stored: bigint },
  units: bigint,
  need: bigint,
  charge: bigint,
][] = [
  ['one unit costs two credits', { credits: 2n, per: 1n, scale: 0, stored: 5n }, 2n, 2n, 4n],
  ['a third of a credit each, charged once on the total', { credits: 1n, per: 3n, scale: 0, stored: 10n }, 30n, 7n, 3n],
  ['a third of a credit, rounded up for one', { credits: 1n, per: 3n, scale: 0, stored: 1n }, 3n, 1n, 1n],
  ['exact at scale 6', { credits: 1n, per: 8n, scale: 6, stored: 1_000_000n }, 8n, 3n, 375_000n],
  ['seven thirds at scale 2', { credits: 7n, per: 3n, scale: 2, stored: 1_000n }, 4n, 4n, 934n],
]
for (const [what, { stored, ...terms }, units, need, charge] of credits) {
  test(`credit draw-down: ${what}`, () => {
    const from = state({ own: null, pools: [pool([{ amount: stored }], terms)] })
    assert.equal(available(from).units, units)
    assert.deepEqual(paid(from, need), [[2000n, charge]])
    assert.equal(planDraw(from, units + 1n), null)
  })
}

test('a unit may be paid by several grants of a pool but not by several pools', () => {
  const split = state({ own: null, pools: [pool([{ amount: 1n }, { amount: 2n }], { credits: 3n })] })
  assert.deepEqual(paid(split, 1n), [
    [2000n, 1n],
    [2001n, 2n],
  ])
  const apart = [pool([{ amount: 1n }], { id: 2, credits: 3n }), pool([{ amount: 2n }], { id: 3, credits: 3n })]
  assert.equal(available(state({ own: null, pools: apart })).units, 0n)
})

test('a credit system asked directly counts whole credits and draws them at its scale', () => {
  const from = state({
    feature: feature({ type: 'creditSystem', scale: 2 }),
    own: account([{ amount: 150n }, { amount: 149n }]),
  })
  assert.equal(available(from).units, 2n)
  assert.deepEqual(paid(from, 2n), [
    [1000n, 150n],
    [1001n, 50n],
  ])
  assert.equal(planDraw(from, 3n), null)
})

const finite = states.map(settled).filter((each) => !available(each).unlimited)

test('n units are available exactly when n is at most the balance, and debit exactly their cost', () => {
  fc.assert(
    fc.property(finite, fc.bigInt(1n, 40n), (from, need) => {
      const { units } = available(from)
      const plan = planDraw(from, need)
      assert.equal(plan !== null, need <= units)
      if (plan === null) return
      const charges = new Map<bigint, bigint>() // by account, in the order of paying
      for (const { account, units } of plan.draws) charges.set(account.id, (charges.get(account.id) ?? 0n) + units)
      let short = need
      for (const [id, charge] of charges) {
        const pool = from.pools.find((each) => each.account.id === id)
        const [credits, per, scale] = pool
          ? [pool.cost.credits, pool.cost.per, pool.feature.scale]
          : [1n, 1n, from.feature.scale]
        const perUnit = credits * 10n ** BigInt(scale)
        const bought = minimum((charge * per) / perUnit, short)
        // It pays for that many, and with one stored unit less it would not.
        assert.ok(charge * per >= bought * perUnit && (charge - 1n) * per < bought * perUnit)
        short -= bought
      }
      assert.equal(short, 0n)
    }),
  )
})

test('no unit leaves a grant while an earlier grant in the order could still pay it', () => {
  fc.assert(
    fc.property(finite, fc.bigInt(1n, 40n), (from, need) => {
      const plan = planDraw(from, need)
      if (plan === null) return
      for (const drawn of new Set<Account>(plan.draws.map((draw) => draw.account))) {
        const sequence = order(drawn.grants, from.entity, from.now).filter((each) => each.remaining > 0n)
        const draws: Draw[] = plan.draws.filter((draw) => draw.account === drawn)
        assert.deepEqual(
          draws.map((draw) => draw.grant.id),
          sequence.slice(0, draws.length).map((each) => each.id),
        )
        for (const draw of draws.slice(0, -1)) assert.equal(draw.units, draw.grant.remaining)
      }
      const pooled = plan.draws.some((draw) => draw.account !== from.own)
      if (pooled && from.own) {
        const own = order(from.own.grants, from.entity, from.now).reduce((sum, each) => sum + each.remaining, 0n)
        const drawn = plan.draws.filter((draw) => draw.account === from.own).reduce((sum, draw) => sum + draw.units, 0n)
        assert.equal(drawn, own)
      }
    }),
  )
})

test('the draw does not depend on the order in which rows were loaded', () => {
  const shuffled = finite.chain((from) => {
    const accounts = [from.own, ...from.pools.map((each) => each.account)].flatMap((each) => (each ? [each] : []))
    const grants = fc.tuple(
      ...accounts.map((each) => fc.shuffledSubarray(each.grants, { minLength: each.grants.length })),
    )
    const pools = fc.shuffledSubarray([...from.pools.keys()], { minLength: from.pools.length })
    return fc.tuple(grants, pools).map(([lists, indices]): [State, State] => {
      const moved = from.pools.map((each, i) => ({
        ...each,
        account: { ...each.account, grants: lists[i + (from.own ? 1 : 0)] ?? [] },
      }))
      const own = from.own && { ...from.own, grants: lists[0] ?? [] }
      return [from, { ...from, own, pools: indices.flatMap((i) => moved[i] ?? []) }]
    })
  })
  fc.assert(
    fc.property(shuffled, fc.bigInt(1n, 40n), ([one, other], need) => {
      assert.deepEqual(available(other), available(one))
      assert.deepEqual(paid(other, need), paid(one, need))
      assert.equal(planDraw(other, need)?.left, planDraw(one, need)?.left)
    }),
  )
})

test('a draw leaves what an independent look finds afterwards', () => {
  fc.assert(
    fc.property(finite, fc.bigInt(1n, 20n), (from, need) => {
      const plan = planDraw(from, need)
      if (plan === null) return
      for (const draw of plan.draws) draw.grant.remaining -= draw.units
      assert.equal(available(from).units, plan.left)
    }),
  )
})

test('results are exact over the whole range, credits at scale 6 included', () => {
  const stored = fc.bigInt(0n, 2n ** 63n - 1n)
  const cost = fc.record({
    credits: fc.bigInt(1n, 10n ** 9n),
    per: fc.bigInt(1n, 10n ** 9n),
    scale: fc.nat(6),
  })
  fc.assert(
    fc.property(
      fc.array(stored, { minLength: 1, maxLength: 4 }),
      stored,
      cost,
      fc.bigInt(1n, 2n ** 53n - 1n),
      (held, own, terms, need) => {
        const from = state({
          own: account([{ amount: own }]),
          pools: [
            pool(
              held.map((amount) => ({ amount })),
              terms,
            ),
          ],
        })
        const total = held.reduce((sum, each) => sum + each, 0n)
        const perUnit = terms.credits * 10n ** BigInt(terms.scale)
        const { units } = available(from)
        const pooled = units - own
        assert.ok(pooled * perUnit <= total * terms.per && total * terms.per < (pooled + 1n) * perUnit)
        const plan = planDraw(from, need)
        assert.equal(plan === null, need > units)
        if (plan === null) return
        const charge = plan.draws.filter((draw) => draw.account.id === 2n).reduce((sum, draw) => sum + draw.units, 0n)
        const bought = need > own ? need - own : 0n
        assert.ok(
          charge * terms.per >= bought * perUnit && (charge === 0n || (charge - 1n) * terms.per < bought * perUnit),
        )
      },
    ),
    { numRuns: 300 },
  )
})

function minimum(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
