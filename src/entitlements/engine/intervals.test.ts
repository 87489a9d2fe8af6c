import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { live } from './grant.ts'
import { accessIntervals, sameIntervals } from './intervals.ts'
import { spentTerms } from './testing/arbitrary.ts'
import { account, grant } from './testing/build.ts'

test('touching and overlapping grants are one interval, drained ones count, and what ended does not', () => {
  const grants = [
    grant({ effectiveAt: 50, expiresAt: 60 }),
    grant({ effectiveAt: 10, expiresAt: 20, remaining: 0n }),
    grant({ effectiveAt: 20, expiresAt: 30 }),
    grant({ effectiveAt: 55, expiresAt: null, revokedAt: 58 }),
    grant({ effectiveAt: 0, expiresAt: 9 }),
  ]
  assert.deepEqual(accessIntervals(grants, 9), [
    [10, 30],
    [50, 60],
  ])
  assert.deepEqual(accessIntervals(grants, 30), [[50, 60]])
  assert.deepEqual(accessIntervals([...grants, grant({ effectiveAt: 15 })], 9), [[10, null]])
})

test('grants of an entity, and grants revoked before they began, give nothing', () => {
  const none = [grant({ entityId: 'a' }), grant({ effectiveAt: 100, revokedAt: 40 })]
  assert.deepEqual(accessIntervals(none, 50), [])
})

test('at every instant from now on, access is live exactly inside the intervals, whatever order the rows come in', () => {
  fc.assert(
    fc.property(fc.array(spentTerms(), { maxLength: 6 }), fc.nat(400_000), fc.nat(900_000), (terms, now, ahead) => {
      const { grants } = account(terms)
      const intervals = accessIntervals(grants, now)
      const at = now + ahead
      const inside = intervals.some(([from, until]) => from <= at && (until === null || at < until))
      const shared = grants.filter((each) => each.entityId === null)
      assert.equal(
        inside,
        shared.some((each) => live(each, at)),
      )
      for (const [i, [from, until]] of intervals.entries()) {
        assert.ok(until === null || (until > now && until > from))
        const before = intervals[i - 1]
        assert.ok(before === undefined || (before[1] !== null && before[1] < from))
      }
      assert.ok(sameIntervals(intervals, accessIntervals(grants.toReversed(), now)))
    }),
  )
})
