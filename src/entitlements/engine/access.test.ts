import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { AccessDecision, Account, FeatureType, Grant, State } from '../types.ts'
import { accessWithoutCustomer, decideAccess } from './access.ts'
import { instants, spentTerms, states, worlds } from './testing/arbitrary.ts'
import { account, accountsById, feature, grant, pool, state } from './testing/build.ts'
import { decideUsage } from './usage.ts'

const found = { code: 'feature_found', unlimited: false } as const
const boolean = feature({ type: 'boolean' })
const over = account([{ expiresAt: 1_000 }])

const table: [what: string, terms: Partial<State>, required: bigint, decision: AccessDecision][] = [
  ['boolean, live', { feature: boolean }, 1n, { ...found, allowed: true, balance: null }],
  [
    'boolean, live and unlimited',
    { feature: boolean, own: account([{ unlimited: true }]) },
    1n,
    { ...found, allowed: true, balance: null },
  ],
  ['boolean, not live', { feature: boolean, own: over }, 1n, { ...found, allowed: false, balance: null }],
  ['finite, enough', {}, 10n, { ...found, allowed: true, balance: 10 }],
  ['finite, short', {}, 11n, { ...found, allowed: false, balance: 10 }],
  [
    'finite, with the help of a pool',
    { pools: [pool([{ amount: 5n }], { credits: 2n })] },
    12n,
    { ...found, allowed: true, balance: 12 },
  ],
  [
    'credits asked directly',
    { feature: feature({ type: 'creditSystem', scale: 1 }), own: account([{ amount: 29n }]) },
    2n,
    { ...found, allowed: true, balance: 2 },
  ],
  [
    'unlimited',
    { own: account([{ unlimited: true }, {}]) },
    99n,
    { ...found, allowed: true, unlimited: true, balance: null },
  ],
  [
    'unlimited in a pool',
    { own: null, pools: [pool([{ unlimited: true }])] },
    99n,
    { ...found, allowed: true, unlimited: true, balance: null },
  ],
  ['no live grant', { own: over }, 1n, { ...found, allowed: false, balance: 0 }],
  ['no account', { own: null }, 1n, { ...found, allowed: false, balance: 0 }],
  ['drained', { own: account([{ remaining: 0n }]) }, 1n, { ...found, allowed: false, balance: 0 }],
  [
    'drained, a period later',
    { now: 60_000, own: account([{ remaining: 0n, cycle: { unit: 'minute', count: 1, anchor: 0 } }]) },
    10n,
    { ...found, allowed: true, balance: 10 },
  ],
  ['other platform', { applies: false }, 1n, { ...found, code: 'feature_inapplicable', allowed: false, balance: 0 }],
  [
    'other platform, boolean',
    { applies: false, feature: boolean },
    1n,
    { ...found, code: 'feature_inapplicable', allowed: false, balance: null },
  ],
]
for (const [what, terms, required, decision] of table) {
  test(`${what}: ${decision.allowed ? 'allowed' : 'not allowed'}, ${decision.code}`, () => {
    assert.deepEqual(decideAccess(state(terms), required), decision)
  })
}

const missing: [FeatureType, number | null][] = [
  ['metered', 0],
  ['creditSystem', 0],
  ['boolean', null],
]
for (const [type, balance] of missing) {
  test(`no customer record, ${type}: customer_missing`, () => {
    const decision = { code: 'customer_missing', allowed: false, unlimited: false, balance }
    assert.deepEqual(accessWithoutCustomer(type), decision)
  })
}

test('a check is allowed exactly when a consume of the same units would be accepted', () => {
  fc.assert(
    fc.property(states, fc.bigInt(1n, 30n), (from, quantity) => {
      if (from.feature.type === 'boolean') return
      const check = decideAccess(from, quantity)
      const { decision } = decideUsage(from, { mode: 'consume', quantity })
      assert.equal(check.allowed, decision.accepted)
      assert.equal(check.unlimited, decision.unlimited)
      if (!decision.accepted) assert.equal(check.balance, decision.balance)
    }),
    { numRuns: 300 },
  )
})

test('a check changes nothing it was given', () => {
  fc.assert(
    fc.property(states, fc.bigInt(1n, 30n), (from, required) => {
      const before = structuredClone(from)
      decideAccess(from, required)
      assert.deepEqual(from, before)
    }),
  )
})

test('a decision has exactly its fields, and its balance is null only when unlimited or boolean', () => {
  fc.assert(
    fc.property(states, fc.bigInt(1n, 30n), (from, required) => {
      const decision = decideAccess(from, required)
      assert.deepEqual(Object.keys(decision).toSorted(), ['allowed', 'balance', 'code', 'unlimited'])
      assert.equal(decision.balance === null, decision.unlimited || from.feature.type === 'boolean')
      assert.ok(decision.balance === null || Number.isSafeInteger(decision.balance))
    }),
  )
})

test('effect and expiry are half-open at the exact millisecond', () => {
  const day = 86_400_000
  fc.assert(
    fc.property(
      fc.nat(9_000 * day),
      fc.integer({ min: 1, max: 9_000 * day }),
      fc.constantFrom('expiresAt', 'revokedAt'),
      (from, length, end) => {
        const own = account([{ effectiveAt: from, [end]: from + length }])
        const allowedAt = (now: number): boolean => decideAccess(state({ now, own }), 1n).allowed
        assert.deepEqual([from - 1, from, from + length - 1, from + length].map(allowedAt), [false, true, true, false])
      },
    ),
  )
})

/** Larger is more: unlimited above all numbers. */
function size({ balance, unlimited }: AccessDecision): number {
  return unlimited ? Number.POSITIVE_INFINITY : (balance ?? 0)
}

/** The state with other grants in one of its accounts. */
function withGrants(from: State, which: number, change: (own: Account) => Grant[]): State {
  const copy = structuredClone(from)
  const accounts = [...accountsById(copy).values()]
  const chosen = accounts[which % accounts.length]
  if (chosen) chosen.grants = change(chosen)
  return copy
}

test('adding a grant never lowers a balance or turns an allowed check into a denied one', () => {
  fc.assert(
    fc.property(states, fc.nat(2), spentTerms(), fc.bigInt(1n, 20n), (from, which, terms, required) => {
      const more = withGrants(from, which, ({ id, grants }) => [...grants, grant({ ...terms, id: 5n, accountId: id })])
      const [before, after] = [decideAccess(from, required), decideAccess(more, required)]
      assert.ok(size(after) >= size(before))
      assert.ok(after.allowed || !before.allowed)
    }),
    { numRuns: 300 },
  )
})

test('revoking a grant never raises a balance', () => {
  const worldAndPlace = fc.tuple(worlds(spentTerms()), instants, fc.nat(2), fc.nat(3))
  fc.assert(
    fc.property(worldAndPlace, fc.bigInt(1n, 20n), ([world, now, which, index], required) => {
      const from = state({ ...world, now })
      const less = withGrants(from, which, ({ grants }) =>
        grants.map((each, i) => (i === index ? { ...each, revokedAt: Math.min(each.revokedAt ?? now, now) } : each)),
      )
      const [before, after] = [decideAccess(from, required), decideAccess(less, required)]
      assert.ok(size(after) <= size(before))
      assert.ok(before.allowed || !after.allowed)
    }),
    { numRuns: 300 },
  )
})
