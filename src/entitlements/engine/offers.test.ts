import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, EntityOffer } from '../types.ts'
import { decideAccess } from './access.ts'
import { applyChanges } from './apply.ts'
import { openings } from './offers.ts'
import { account, state } from './testing/build.ts'
import { decideUsage } from './usage.ts'

function offer(terms: Partial<EntityOffer> = {}): EntityOffer {
  const source = { id: 7n, productId: 'prod_1', origin: 'product' as const, rank: 0 }
  const units = { unlimited: false, amount: 5n, interval: null, rollover: null }
  return {
    ...source,
    ...units,
    effectiveAt: 0,
    expiresAt: null,
    paidUntil: null,
    max: 2,
    taken: 0,
    had: new Set(),
    ...terms,
  }
}

function seats(terms: Partial<EntityOffer> = {}, shared: bigint = 3n): Account {
  return account([{ amount: shared }], { offers: [offer(terms)] })
}

test('an entity opens one grant of each offer in which it has had none, while there are places, between start and end', () => {
  const opens = (terms: Partial<EntityOffer>, entity: string | null = 'seat') =>
    openings(seats(terms), entity, 1000).length
  assert.equal(opens({}), 1)
  assert.equal(opens({ taken: 1 }), 1)
  assert.equal(opens({ taken: 2 }), 0)
  assert.equal(opens({ max: 0 }), 0)
  assert.equal(opens({ had: new Set(['seat']) }), 0)
  assert.equal(opens({}, null), 0)
  assert.equal(opens({ effectiveAt: 1000 }), 1)
  assert.equal(opens({ effectiveAt: 1001 }), 0)
  assert.equal(opens({ expiresAt: 1000 }), 0)
  assert.equal(opens({ expiresAt: 1001 }), 1)
})

test('the first spend writes the grant before it draws on it, and then on what is shared', () => {
  const own = seats({ interval: 'month' })
  const { changes, decision } = decideUsage(state({ own, entity: 'seat' }), { mode: 'consume', quantity: 7n })
  assert.deepEqual(
    changes.map((change) => [change.kind, change.kind === 'draw' ? change.delta : null]),
    [
      ['grant', null],
      ['draw', -5n],
      ['draw', -2n],
      ['used', null],
    ],
  )
  assert.equal(decision.balance, 1)
  applyChanges(new Map([[own.id, own]]), changes)
  assert.deepEqual(own.offers, [{ ...offer({ interval: 'month' }), taken: 1, had: new Set(['seat']) }])
  assert.deepEqual(own.grants.at(-1)?.cycle, { unit: 'month', count: 1, anchor: 1000 })
  assert.equal(openings(own, 'seat', 1000).length, 0)
})

test('an unlimited offer is opened by the spend that it covers; one that is not unlimited is left for later', () => {
  const own = seats({ unlimited: true, amount: 0n })
  const { changes } = decideUsage(state({ own, entity: 'seat' }), { mode: 'consume', quantity: 70n })
  assert.deepEqual(
    changes.map(({ kind }) => kind),
    ['grant', 'used'],
  )
  const covered = account([{ unlimited: true, amount: 0n }], { offers: [offer()] })
  const other = decideUsage(state({ own: covered, entity: 'seat' }), { mode: 'consume', quantity: 70n })
  assert.deepEqual(
    other.changes.map(({ kind }) => kind),
    ['used'],
  )
})

test('ids that nobody registered never raise what a customer can get beyond the places of the offer, and a check says the same as a spend', () => {
  const ids = fc.constantFrom(null, 'a', 'b', 'c', 'd', 'e', 'f')
  const spends = fc.array(fc.record({ entity: ids, quantity: fc.bigInt(1n, 6n) }), { maxLength: 30 })
  fc.assert(
    fc.property(
      fc.nat(3),
      fc.nat(3),
      fc.bigInt(0n, 4n),
      fc.bigInt(0n, 5n),
      spends,
      (max, taken, amount, shared, sent) => {
        const own = seats({ max, taken, amount }, shared)
        const opened = new Set<string>()
        let spent = 0n
        for (const { entity, quantity } of sent) {
          const current = state({ own, entity })
          const { allowed } = decideAccess(current, quantity)
          const { decision, changes } = decideUsage(current, { mode: 'consume', quantity })
          assert.equal(allowed, decision.accepted)
          applyChanges(new Map([[own.id, own]]), changes)
          if (decision.accepted) spent += quantity
          else assert.equal(changes.length, 0)
          for (const change of changes) if (change.kind === 'grant') opened.add(change.grant.entityId ?? '')
        }
        const places = Math.max(0, max - taken)
        assert.ok(opened.size <= places)
        assert.equal(own.grants.length, 1 + opened.size, 'each entity once')
        assert.equal(new Set(own.grants.map(({ id }) => id)).size, own.grants.length)
        assert.ok(spent <= shared + BigInt(places) * amount, `${spent}`)
      },
    ),
  )
})
