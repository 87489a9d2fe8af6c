import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account } from '../types.ts'
import { decideMerge } from './merge.ts'
import { spentTerms } from './testing/arbitrary.ts'
import { account } from './testing/build.ts'

const seats = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.record({ used: fc.bigInt(0n, 2n ** 63n - 1n), registered: fc.boolean() }),
)
const accounts = fc
  .record({
    grants: fc.array(spentTerms(), { maxLength: 4 }),
    used: fc.bigInt(0n, 2n ** 63n - 1n),
    entities: seats,
    lastAt: fc.nat(),
  })
  .map(({ grants, entities, ...terms }) => ({
    grants,
    terms: { ...terms, entities: new Map(Object.entries(entities)) },
  }))

function capped(units: bigint): bigint {
  return units < 2n ** 63n ? units : 2n ** 63n - 1n
}

function used(of: Account, entity: string): bigint {
  return of.entities.get(entity)?.used ?? 0n
}

test('a merge conserves units and counters', () => {
  fc.assert(
    fc.property(accounts, accounts, (one, other) => {
      const source = account(one.grants, { ...one.terms, id: 7n, featureId: 1 })
      const target = account(other.grants, { ...other.terms, id: 8n, featureId: 1 })
      const merge = decideMerge(source, target)
      assert.deepEqual(
        merge.grants,
        source.grants.map((each) => ({ ...each, accountId: 8n })),
      )
      assert.equal(merge.used, capped(source.used + target.used))
      assert.deepEqual(
        merge.entities.map((each) => each.entityId),
        [...source.entities.keys()],
      )
      for (const { entityId, ...counter } of merge.entities) {
        const registered = source.entities.get(entityId)?.registered || target.entities.get(entityId)?.registered
        assert.deepEqual(counter, {
          used: capped(used(source, entityId) + used(target, entityId)),
          registered: registered ?? false,
        })
      }
      assert.equal(merge.lastAt, Math.max(source.lastAt, target.lastAt))
    }),
  )
})

test('an account joins neither itself nor one of another Feature', () => {
  const one = account([], { id: 7n, featureId: 1 })
  assert.throws(() => decideMerge(one, one))
  assert.throws(() => decideMerge(one, account([], { id: 8n, featureId: 2 })))
})
