import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, Change } from '../types.ts'
import { withChanges } from './apply.ts'
import { decideRestore, decideShrink } from './refund.ts'
import { decideRevoke } from './revoke.ts'
import { account, grant } from './testing/build.ts'

const now = Date.UTC(2026, 10, 20)
const two = (remaining: bigint, more: object = {}) =>
  account([grant({ id: 1n, amount: 100n, remaining, ...more }), grant({ id: 2n, amount: 50n, remaining: 50n })])
const left = (state: Account, id = 1n) => state.grants.find((each) => each.id === id)?.remaining
const shrunk = (state: Account, units: bigint, uncollected = 0n) => decideShrink(state, 1n, { units, uncollected, now })

test('a part is taken from what the grant has left; what was spent is uncollected', () => {
  const table: [remaining: bigint, units: bigint, after: bigint, uncollected: bigint][] = [
    [100n, 30n, 70n, 0n],
    [20n, 30n, 0n, 10n],
    [0n, 30n, 0n, 30n],
  ]
  for (const [remaining, units, after, uncollected] of table) {
    const changes = shrunk(two(remaining), units)
    assert.equal(left(withChanges(two(remaining), changes)), after)
    assert.deepEqual(
      changes.map((change) => change.kind === 'shrink' && change.uncollected),
      [uncollected],
    )
  }
  assert.deepEqual(
    shrunk(two(0n), 5n, 7n).map((change) => change.kind === 'shrink' && change.uncollected),
    [12n],
  )
})

test('nothing is taken from unlimited and revoked grants, and nothing of nothing', () => {
  assert.deepEqual(shrunk(two(0n, { unlimited: true, amount: 0n }), 5n), [])
  assert.deepEqual(shrunk(two(0n, { revokedAt: now - 1 }), 5n), [])
  assert.deepEqual(shrunk(two(50n), 0n), [])
})

test('a part of a recurring grant is taken after its reset', () => {
  const month = { unit: 'month', count: 1, anchor: Date.UTC(2026, 9, 1) } as const
  const state = two(10n, { cycle: month, effectiveAt: month.anchor })
  const changes = shrunk(state, 30n)
  assert.deepEqual(
    changes.map(({ kind }) => kind),
    ['lapse', 'refill', 'shrink'],
  )
  assert.equal(left(withChanges(state, changes)), 70n)
})

test('a reversed refund brings back what it took, no more than there is room for, and the grant lives', () => {
  const refunded = withChanges(two(60n), decideRevoke(two(60n), 1n, { now, at: null }))
  const restored = withChanges(refunded, decideRestore(refunded, 1n, { units: 60n, now }))
  assert.deepEqual([left(restored), restored.grants[0]?.revokedAt], [60n, null])
  const much = withChanges(refunded, decideRestore(refunded, 1n, { units: 500n, now }))
  assert.equal(left(much), 100n)
})

test('a grant that has ended meanwhile stays as it is, at the very millisecond', () => {
  const ended = (expiresAt: number) => decideRestore(two(0n, { revokedAt: now - 5, expiresAt }), 1n, { units: 9n, now })
  assert.deepEqual(ended(now), [])
  assert.equal(ended(now + 1).length, 1)
})

test('refunds never go below nothing, never touch other grants, and reversing them restores what was unspent', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 100n }),
      fc.array(fc.bigInt({ min: 1n, max: 60n }), { maxLength: 5 }),
      fc.boolean(),
      (remaining, refunds, whole) => {
        let state = two(remaining)
        let taken = 0n
        const take = (changes: readonly Change[]) => {
          const before = left(state) ?? 0n
          state = withChanges(state, changes)
          taken += before - (left(state) ?? 0n)
        }
        for (const units of refunds) take(shrunk(state, units))
        if (whole) take(decideRevoke(state, 1n, { now, at: null }))
        assert.ok((left(state) ?? -1n) >= 0n)
        assert.equal(left(state, 2n), 50n)
        state = withChanges(state, decideRestore(state, 1n, { units: taken, now }))
        assert.deepEqual([left(state), left(state, 2n)], [remaining, 50n])
      },
    ),
  )
})
