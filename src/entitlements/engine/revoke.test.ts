import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, Change } from '../types.ts'
import { withChanges } from './apply.ts'
import { available } from './draw.ts'
import { decideRetire, decideRevoke } from './revoke.ts'
import { settled } from './settle.ts'
import { entities, instants, spentTerms } from './testing/arbitrary.ts'
import { account, feature } from './testing/build.ts'

const minute = 60_000
const hourly = { amount: 10n, cycle: { unit: 'minute' as const, count: 1, anchor: 0 } }

function revoked(terms: object, at: number | null, now = 1000): readonly Change[] {
  return decideRevoke(account([{ id: 1n, ...terms }]), 1n, { now, at })
}

describe('decideRevoke', () => {
  test('takes what is unspent and notes what was spent', () => {
    assert.deepEqual(revoked({ amount: 10n, remaining: 6n }, null), [
      {
        kind: 'revoke',
        account: 1n,
        grant: 1n,
        period: 0n,
        delta: -6n,
        remaining: 0n,
        revokedAt: 1000,
        uncollected: 4n,
      },
    ])
  })

  test('moves nothing before a later instant; one in the past is now', () => {
    const [later] = revoked({ remaining: 6n }, 5000)
    assert.deepEqual(later?.kind === 'revoke' && [later.delta, later.remaining, later.revokedAt], [0n, 6n, 5000])
    const [past] = revoked({ remaining: 6n }, 10)
    assert.deepEqual(past?.kind === 'revoke' && [past.delta, past.revokedAt], [-6n, 1000])
  })

  test('only ever brings a revocation forward', () => {
    const table: [revokedAt: number, at: number | null, changes: number][] = [
      [500, null, 0],
      [500, 5000, 0],
      [1000, null, 0],
      [3000, 3000, 0],
      [3000, 4000, 0],
      [3000, 2000, 1],
      [3000, null, 1],
    ]
    for (const [revokedAt, at, changes] of table) assert.equal(revoked({ revokedAt }, at).length, changes)
  })

  test('resets that are due come first, so that what they roll over is not lost', () => {
    const terms = { ...hourly, remaining: 3n, rollover: { max: null, periods: null } }
    const moves = revoked(terms, null, minute + 1).map((change) => [
      change.kind,
      change.kind === 'rollover' || change.kind === 'grant'
        ? change.grant.amount
        : change.kind === 'used'
          ? 0n
          : change.delta,
    ])
    assert.deepEqual(moves, [
      ['lapse', -3n],
      ['refill', 10n],
      ['rollover', 3n],
      ['revoke', -10n],
    ])
  })
})

test('revocation removes unspent units of that grant only; repeated it does nothing more', () => {
  fc.assert(
    fc.property(worlds, instants, fc.option(instants), (before, now, at) => {
      const id = before.grants[0]?.id ?? 0n
      const changes = decideRevoke(before, id, { now, at })
      const after = withChanges(before, changes)
      assert.deepEqual(decideRevoke(after, id, { now, at }), [])
      for (const change of changes) {
        if (change.kind !== 'revoke') continue
        assert.equal(change.grant, id)
        assert.ok(change.delta <= 0n && change.revokedAt >= now)
      }
      for (const grant of before.grants.filter((other) => other.id !== id)) {
        assert.deepEqual(
          after.grants.find((other) => other.id === grant.id),
          grant,
        )
      }
      conserved(before, after, changes)
    }),
  )
})

test('revoking never raises a balance, whoever asks', () => {
  fc.assert(
    fc.property(worlds, instants, instants, entities, (before, now, wait, entity) => {
      const after = withChanges(before, decideRevoke(before, before.grants[0]?.id ?? 0n, { now, at: null }))
      const [had, has] = [before, after].map((own) => offered(own, now + wait, entity))
      assert.ok(had && has && (had.unlimited || !has.unlimited) && (had.live || !has.live))
      if (!had.unlimited) assert.ok(has.units <= had.units)
    }),
  )
})

test('retiring an entity changes no grant of another entity and no shared one, and leaves it nothing of its own', () => {
  fc.assert(
    fc.property(worlds, instants, (before, now) => {
      const changes = decideRetire(before, 'a', now)
      const after = withChanges(before, changes)
      const others = (own: Account) => own.grants.filter((grant) => grant.entityId !== 'a')
      assert.deepEqual(others(after), others(before))
      assert.deepEqual(offered(after, now, 'a'), offered({ ...before, grants: others(before) }, now, 'a'))
      assert.deepEqual(decideRetire(after, 'a', now), [])
      conserved(before, after, changes)
    }),
  )
})

const worlds = fc.array(spentTerms(), { minLength: 1, maxLength: 4 }).map((grants) => account(grants))

function offered(own: Account, now: number, entity: string | null) {
  return available(settled({ now, feature: feature(), applies: true, entity, own, pools: [] }))
}

/** Per grant the movements add up to what it holds, which is never less than nothing or more than it was made for. */
function conserved(before: Account, after: Account, changes: readonly Change[]): void {
  const sums = new Map(before.grants.map((grant) => [grant.id, grant.remaining]))
  for (const change of changes) {
    if (change.kind === 'rollover' || change.kind === 'grant') sums.set(change.grant.id, change.grant.amount)
    else if (change.kind !== 'used') sums.set(change.grant, (sums.get(change.grant) ?? 0n) + change.delta)
  }
  for (const grant of after.grants) {
    assert.equal(grant.remaining, sums.get(grant.id))
    assert.ok(grant.remaining >= 0n && grant.remaining <= grant.amount)
  }
}
