import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, Change, Grant } from '../types.ts'
import { applyChange, withChanges } from './apply.ts'
import { live } from './grant.ts'
import { decideReverse, type Payment } from './reverse.ts'
import { decideRevoke } from './revoke.ts'
import { commands, entities, instants, spentTerms, worlds } from './testing/arbitrary.ts'
import { account } from './testing/build.ts'
import { Ledger } from './testing/ledger.ts'

const minute = 60_000
const paid = (grant: bigint, units: bigint, part: Partial<Payment> = {}): Payment => {
  return { grant, units, period: 0n, line: 0, ...part }
}

function reversed(grants: Partial<Grant>[], payments: Payment[], now = 1000) {
  return decideReverse([account(grants.map((terms, i) => ({ id: BigInt(i + 1), ...terms })))], payments, {
    entity: null,
    now,
  })
}

describe('decideReverse', () => {
  test('gives back last drawn first', () => {
    const { returned, notReturned, changes } = reversed(
      [{ remaining: 0n }, { remaining: 5n }],
      [paid(1n, 10n), paid(2n, 3n, { line: 1 })],
    )
    assert.deepEqual(returned, [
      { grant: 2n, units: 3n },
      { grant: 1n, units: 10n },
    ])
    assert.deepEqual(notReturned, [])
    assert.deepEqual(
      changes.get(1n)?.map((change) => change.kind === 'reverse' && [change.grant, change.delta, change.remaining]),
      [
        [2n, 3n, 8n],
        [1n, 10n, 10n],
      ],
    )
  })

  test('says what cannot go back, and why', () => {
    const monthly = { cycle: { unit: 'minute' as const, count: 1, anchor: 0 } }
    const table: [terms: Partial<Grant>, reason: string][] = [
      [{ revokedAt: 1000 }, 'grant_revoked'],
      [{ expiresAt: 1000 }, 'grant_expired'],
      [{ ...monthly, remaining: 4n, periodNo: 1n }, 'period_reset'],
      [{ remaining: 10n }, 'grant_full'],
    ]
    for (const [terms, reason] of table) {
      const { returned, notReturned, changes } = reversed([{ remaining: 4n, ...terms }], [paid(1n, 6n)])
      assert.deepEqual([returned, notReturned, changes.size], [[], [{ grant: 1n, units: 6n, reason }], 0])
    }
    for (const terms of [{ revokedAt: 1001 }, { expiresAt: 1001 }, monthly]) {
      assert.equal(reversed([{ remaining: 4n, ...terms }], [paid(1n, 6n)]).returned[0]?.units, 6n)
    }
  })

  test('a reset that nobody has written yet is a reset too', () => {
    const terms = { remaining: 4n, cycle: { unit: 'minute' as const, count: 1, anchor: 0 } }
    const before = reversed([terms], [paid(1n, 6n)], minute - 1)
    assert.equal(before.returned[0]?.units, 6n)
    const { notReturned } = reversed([terms], [paid(1n, 6n)], minute)
    assert.deepEqual(notReturned, [{ grant: 1n, units: 6n, reason: 'period_reset' }])
  })

  test('a grant of rolled-over units that a newer one replaced is closed for good', () => {
    const parent = { cycle: { unit: 'minute' as const, count: 1, anchor: 0 }, rollover: { max: 20n, periods: null } }
    const rolled = { origin: 'rollover' as const, rolledFrom: 1n, amount: 5n }
    const older = { ...rolled, remaining: 0n, effectiveAt: minute }
    const newer = { ...rolled, remaining: 4n, effectiveAt: 2 * minute }
    const now = 2 * minute + 1
    const { returned, notReturned } = reversed([{ ...parent, periodNo: 2n }, older, newer], [paid(2n, 1n)], now)
    assert.deepEqual(returned, [])
    assert.deepEqual(notReturned, [{ grant: 2n, units: 1n, reason: 'period_reset' }])
    assert.equal(reversed([{ ...parent, periodNo: 2n }, newer], [paid(2n, 1n)], now).returned[0]?.units, 1n)
  })

  test('rolled-over units go back only as far as the cap has room', () => {
    const rollover = { max: 8n, periods: null }
    const parent = { cycle: { unit: 'minute' as const, count: 1, anchor: 0 }, rollover }
    const rolled = { origin: 'rollover' as const, rolledFrom: 1n }
    const { returned, notReturned } = reversed(
      [parent, { ...rolled, amount: 8n, remaining: 3n }, { ...rolled, amount: 4n, remaining: 4n }],
      [paid(2n, 5n)],
    )
    assert.deepEqual(returned, [{ grant: 2n, units: 1n }])
    assert.deepEqual(notReturned, [{ grant: 2n, units: 4n, reason: 'grant_full' }])
  })
})

test("reversal returns units only to the operation's own grants, last drawn first, and never beyond the amount", () => {
  fc.assert(
    fc.property(
      worlds(spentTerms()),
      instants,
      entities,
      commands,
      instants,
      fc.nat(3),
      (world, at, entity, command, wait, ended) => {
        const ledger = new Ledger(world)
        ledger.run(at, entity, command)
        const draws = drawn(ledger.written)
        for (const own of ledger.accounts.values()) {
          const id = draws[ended]?.grant
          if (!own.grants.some((grant) => grant.id === id)) continue
          for (const change of decideRevoke(own, id ?? 0n, { now: at, at: null })) applyChange(own, change)
        }
        const before = [...ledger.accounts.values()]
        const now = at + wait
        const { returned, notReturned, changes } = decideReverse(before, draws, { entity, now })

        const total = [...returned, ...notReturned]
        for (const { grant, units } of draws) {
          const parts = total.filter((part) => part.grant === grant)
          assert.equal(
            parts.reduce((sum, part) => sum + part.units, 0n),
            units,
          )
        }
        const lines = returned.map(({ grant }) => draws.find((draw) => draw.grant === grant)?.line ?? -1)
        assert.deepEqual(
          lines,
          lines.toSorted((a, b) => b - a),
        )
        for (const own of before) {
          const after = withChanges(own, changes.get(own.id) ?? [])
          assert.equal(after.used, own.used)
          assert.deepEqual(after.entities, own.entities)
          for (const grant of after.grants) assert.ok(grant.remaining >= 0n && grant.remaining <= grant.amount)
          assertWithinCaps(after, now)
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('reversed at once, a spend leaves every grant as it would have been without it', () => {
  fc.assert(
    fc.property(worlds(spentTerms()), instants, entities, commands, (world, at, entity, command) => {
      const [spent, idle] = [new Ledger(world), new Ledger(world)]
      spent.run(at, entity, command)
      const { notReturned, changes } = decideReverse([...spent.accounts.values()], drawn(spent.written), {
        entity,
        now: at,
      })
      for (const each of changes.values()) spent.write(each)
      assert.deepEqual(notReturned, [])
      assert.deepEqual(spent.standing(at).map(grantsOf), idle.standing(at).map(grantsOf))
    }),
    { numRuns: 300 },
  )
})

function grantsOf(standing: object): unknown {
  return 'grants' in standing ? standing.grants : []
}

function drawn(changes: readonly Change[]): Payment[] {
  return changes.flatMap((change, line) =>
    change.kind === 'draw' ? [{ grant: change.grant, period: change.period, units: -change.delta, line }] : [],
  )
}

/** Live rollovers of one grant together. A world's own rollovers have no cap of their own. */
function assertWithinCaps({ grants }: Account, now: number): void {
  for (const { id, rollover } of grants) {
    if (rollover === null || rollover.max === null) continue
    const held = grants.filter((each) => each.rolledFrom === id && live(each, now))
    assert.ok(held.reduce((sum, each) => sum + each.remaining, 0n) <= rollover.max)
  }
}
