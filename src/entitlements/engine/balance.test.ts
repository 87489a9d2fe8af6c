import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { decideAccess } from './access.ts'
import { type Balance, balanceOf, decimal } from './balance.ts'
import { states } from './testing/arbitrary.ts'
import { account, feature, pool, state } from './testing/build.ts'

const minute = 60_000
const cycle = { unit: 'minute' as const, count: 2, anchor: 0 }

function summary({ live, allowed, unlimited, balance, credits, used }: Balance): unknown[] {
  return [live, allowed, unlimited, balance, credits, used]
}

test('it tells balance, exact credits and use', () => {
  assert.deepEqual(summary(balanceOf(state())), [true, true, false, 10, null, 0n])
  assert.deepEqual(summary(balanceOf(state({ own: null }))), [false, false, false, 0, null, 0n])
  assert.deepEqual(summary(balanceOf(state({ own: account([{ remaining: 0n }], { used: 10n }) }))), [
    true,
    false,
    false,
    0,
    null,
    10n,
  ])
  assert.deepEqual(summary(balanceOf(state({ own: account([{ unlimited: true }]) }))), [
    true,
    true,
    true,
    null,
    null,
    0n,
  ])
  const credits = state({ feature: feature({ type: 'creditSystem', scale: 3 }), own: account([{ amount: 12_340n }]) })
  assert.deepEqual(summary(balanceOf(credits)), [true, true, false, 12, '12.34', 0n])
  const boolean = state({ feature: feature({ type: 'boolean' }), own: account([{ amount: 0n }]) })
  assert.deepEqual(summary(balanceOf(boolean)), [true, true, false, null, null, 0n])
})

test('an entity has its own counter', () => {
  const own = account([{}], { used: 5n, entities: new Map([['seat', { used: 3n, registered: false }]]) })
  const used = (entity: string | null): bigint => balanceOf(state({ own, entity })).used
  assert.deepEqual([used(null), used('seat'), used('other')], [5n, 3n, 0n])
})

test('grants come in the order in which they would be spent, resets done', () => {
  const own = account([{ amount: 4n }, { amount: 6n, remaining: 1n, cycle }, { expiresAt: 1 }, { entityId: 'seat' }])
  const pools = [pool([{ amount: 8n }, { unlimited: true }], { id: 2 }), pool([{ expiresAt: 9 * minute }], { id: 3 })]
  const { grants, nextResetAt, interval } = balanceOf(state({ own, pools, now: 2 * minute, entity: 'seat' }))
  assert.deepEqual(
    grants.map((each) => [each.grant.id, each.feature.id, each.grant.remaining, each.nextResetAt]),
    [
      [2001n, 2, 10n, null],
      [1003n, 1, 10n, null],
      [1001n, 1, 6n, 4 * minute],
      [1000n, 1, 4n, null],
      [3000n, 3, 10n, null],
      [2000n, 2, 8n, null],
    ],
  )
  assert.deepEqual([nextResetAt, interval], [4 * minute, { unit: 'minute', count: 2 }])
})

test('it agrees with a check for one unit and changes nothing', () => {
  fc.assert(
    fc.property(states, (from) => {
      const before = structuredClone(from)
      const balance = balanceOf(from)
      const { allowed, unlimited, balance: units } = decideAccess({ ...from, applies: true }, 1n)
      assert.deepEqual([balance.allowed, balance.unlimited, balance.balance], [allowed, unlimited, units])
      assert.deepEqual(from, before)
    }),
  )
})

const decimals: [stored: bigint, scale: number, text: string][] = [
  [0n, 0, '0'],
  [0n, 6, '0'],
  [100n, 0, '100'],
  [100n, 2, '1'],
  [105n, 2, '1.05'],
  [5n, 6, '0.000005'],
  [10_000_000n, 6, '10'],
  [9_223_372_036_854_775_807n, 6, '9223372036854.775807'],
]
for (const [stored, scale, text] of decimals) {
  test(`${stored} at scale ${scale} is ${text} credits`, () => assert.equal(decimal(stored, scale), text))
}
