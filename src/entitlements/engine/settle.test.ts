import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { unreachable } from '../../kernel/assert.ts'
import type { Account, Change, Grant } from '../types.ts'
import { live } from './grant.ts'
import { settle } from './settle.ts'
import { entities, grantTerms, horizonMs, instants, timedCommands, worlds } from './testing/arbitrary.ts'
import { account, feature } from './testing/build.ts'
import { Ledger } from './testing/ledger.ts'

const minute = 60_000
/** Ten units a minute, counted from 0. */
const recurring: Partial<Grant> = { amount: 10n, cycle: { unit: 'minute', count: 1, anchor: 0 } }

/** The movements in short: who, what, by how much, in which period. */
function moves(changes: readonly Change[]): (string | bigint)[][] {
  return changes.map((change): (string | bigint)[] => {
    switch (change.kind) {
      case 'lapse':
        return ['lapse', change.grant, change.delta, change.period, `rolled ${change.rolled}`]
      case 'refill':
        return ['refill', change.grant, change.delta, change.period]
      case 'rollover':
        return ['rollover', change.from, change.grant.amount, `${change.grant.effectiveAt}..${change.grant.expiresAt}`]
      case 'draw':
      case 'grant':
      case 'used':
      case 'revoke':
      case 'extend':
      case 'shrink':
      case 'restore':
      case 'reverse':
        throw new Error('settling spends nothing')
      default:
        return unreachable(change)
    }
  })
}

function settled(grants: Partial<Grant>[], now: number): (string | bigint)[][] {
  return moves(settle(account(grants), null, now))
}

test('nothing is due, and nothing is allocated, while a period lasts', () => {
  const calm = account([recurring, {}, { amount: 3n }])
  assert.deepEqual(settle(calm, null, minute - 1), [])
  assert.equal(settle(calm, null, 0), settle(account(), null, 9e12))
})

test('at the boundary what is left lapses and the grant is full again', () => {
  assert.deepEqual(settled([{ ...recurring, remaining: 4n }], minute), [
    ['lapse', 1000n, -4n, 0n, 'rolled 0'],
    ['refill', 1000n, 10n, 1n],
  ])
})

test('many missed periods give one refill', () => {
  assert.deepEqual(settled([{ ...recurring, remaining: 4n }], 500 * minute + 1), [
    ['lapse', 1000n, -4n, 0n, 'rolled 0'],
    ['refill', 1000n, 10n, 500n],
  ])
})

const ends: [what: string, terms: Partial<Grant>, period: bigint | null][] = [
  ['paid to the boundary itself', { paidUntil: minute }, null],
  ['paid a millisecond past the boundary', { paidUntil: minute + 1 }, 1n],
  ['paid for three periods and asked in the ninth', { paidUntil: 3 * minute }, 2n],
  ['expired', { expiresAt: 3 * minute }, null],
  ['revoked', { revokedAt: 3 * minute }, null],
  ['to be revoked later', { revokedAt: 10 * minute }, 9n],
  ['unlimited', { unlimited: true }, null],
]
for (const [what, terms, period] of ends) {
  test(`a grant ${what} ${period === null ? 'does not refill' : `refills to period ${period}`}`, () => {
    const now = what.startsWith('paid') && period !== 2n ? minute + 1 : 9 * minute
    const refills = settled([{ ...recurring, remaining: 4n, ...terms }], now).filter(([kind]) => kind === 'refill')
    assert.deepEqual(refills, period === null ? [] : [['refill', 1000n, 10n, period]])
  })
}

test('a period that is not paid for takes nothing away either: what was left stays until the grant ends', () => {
  assert.deepEqual(settled([{ ...recurring, remaining: 4n, paidUntil: minute, expiresAt: 3 * minute }], 2 * minute), [])
})

test('periods before the grant took effect leave nothing', () => {
  const late: Partial<Grant> = { ...recurring, effectiveAt: 150_000, rollover: { max: null, periods: 9 } }
  assert.deepEqual(settled([late], 150_000), [
    ['lapse', 1000n, -10n, 0n, 'rolled 0'],
    ['refill', 1000n, 10n, 2n],
  ])
})

test('only grants the entity sees are settled', () => {
  const grants = [recurring, { ...recurring, entityId: 'a' }, { ...recurring, entityId: 'b' }]
  const seenBy = (entity: string | null): bigint[] =>
    settle(account(grants), entity, minute).flatMap((change) => (change.kind === 'refill' ? [change.grant] : []))
  assert.deepEqual([seenBy(null), seenBy('a'), seenBy('c')], [[1000n], [1000n, 1001n], [1000n]])
})

test('what a period leaves becomes a grant with its own end', () => {
  assert.deepEqual(settled([{ ...recurring, remaining: 4n, rollover: { max: null, periods: 2 } }], minute), [
    ['lapse', 1000n, -4n, 0n, 'rolled 4'],
    ['refill', 1000n, 10n, 1n],
    ['rollover', 1000n, 4n, '60000..180000'],
  ])
})

test('every missed period leaves its units, as far as they still live and fit', () => {
  assert.deepEqual(
    settled([{ ...recurring, remaining: 4n, rollover: { max: 15n, periods: 3 } }], 3 * minute).slice(2),
    [
      ['rollover', 1000n, 4n, '60000..240000'],
      ['rollover', 1000n, 10n, '120000..300000'],
      ['rollover', 1000n, 1n, '180000..360000'],
    ],
  )
})

test('units that never end are gathered in one grant as old as the oldest of them', () => {
  const parent: Partial<Grant> = { ...recurring, remaining: 4n, rollover: { max: 25n, periods: null } }
  assert.deepEqual(settled([parent], 2 * minute).slice(2), [['rollover', 1000n, 14n, '60000..null']])
  const held: Partial<Grant> = { amount: 14n, remaining: 3n, origin: 'rollover', rolledFrom: 1000n, createdAt: 60_000 }
  assert.deepEqual(settled([parent, held], 2 * minute), [
    ['lapse', 1000n, -4n, 0n, 'rolled 14'],
    ['refill', 1000n, 10n, 2n],
    ['lapse', 1001n, -3n, 0n, 'rolled 3'],
    ['rollover', 1000n, 17n, '60000..null'],
  ])
})

test('a grant that nobody asked for years rolls over in bounded work', () => {
  const years = 10 * 365 * 24 * 60
  const endless = settled([{ ...recurring, rollover: { max: null, periods: null } }], years * minute)
  assert.deepEqual(endless.slice(2), [['rollover', 1000n, BigInt(years) * 10n, '60000..null']])
  const capped = settled([{ ...recurring, rollover: { max: 25n, periods: 4 } }], years * minute)
  assert.deepEqual(
    capped.slice(2).map(([, , units]) => units),
    [10n, 10n, 5n],
  )
})

test('an ended grant still leaves the units of its last periods', () => {
  const ended: Partial<Grant> = {
    ...recurring,
    remaining: 4n,
    expiresAt: 2 * minute,
    rollover: { max: null, periods: 5 },
  }
  assert.deepEqual(settled([ended], 4 * minute).slice(2), [['rollover', 1000n, 4n, '60000..360000']])
  assert.deepEqual(settled([ended], 6 * minute).slice(2), [])
})

const histories = fc.record({ world: worlds(grantTerms()), commands: timedCommands })

test('settling at any moments in between ends in the same state as settling once', () => {
  const looks = fc.array(fc.record({ at: instants, entity: entities }), { maxLength: 10 })
  fc.assert(
    fc.property(histories, looks, ({ world, commands }, extra) => {
      const [lazy, eager] = [new Ledger(world), new Ledger(world)]
      const steps = [...commands, ...extra.map((look) => ({ ...look, command: null }))].toSorted((a, b) => a.at - b.at)
      for (const { at, entity, command } of steps) {
        if (command === null) eager.settle(at, entity)
        else assert.deepEqual(lazy.run(at, entity, command), eager.run(at, entity, command))
      }
      assert.deepEqual(lazy.standing(horizonMs), eager.standing(horizonMs))
    }),
    { numRuns: 300 },
  )
})

test('rollover settled once over many periods equals rollover settled at each boundary', () => {
  const terms = fc.record({
    amount: fc.bigInt(1n, 8n),
    spent: fc.bigInt(0n, 8n),
    max: fc.option(fc.bigInt(0n, 30n)),
    periods: fc.option(fc.integer({ min: 1, max: 5 })),
    boundaries: fc.integer({ min: 1, max: 40 }),
  })
  fc.assert(
    fc.property(terms, ({ amount, spent, max, periods, boundaries }) => {
      const remaining = amount > spent ? amount - spent : 0n
      const make = (): Account => account([{ ...recurring, amount, remaining, rollover: { max, periods } }])
      const [lazy, eager] = [make(), make()].map((own) => new Ledger(worldOf(own)))
      for (let no = 1; no <= boundaries; no++) eager?.settle(no * minute, null)
      assert.deepEqual(lazy?.standing(boundaries * minute), eager?.standing(boundaries * minute))
    }),
    { numRuns: 300 },
  )
})

test('no clock jump refills a period twice, undoes an expiry or moves the instants of an account back', () => {
  fc.assert(
    fc.property(histories, ({ world, commands }) => {
      const [jumping, steady] = [new Ledger(world), new Ledger(world)]
      let latest = 0
      for (const { at, entity, command } of commands) {
        latest = Math.max(latest, at)
        const decided = jumping.run(at, entity, command)
        assert.deepEqual(decided, steady.run(latest, entity, command))
        assert.equal(decided.occurredAt, latest)
      }
      const periods = new Map<bigint, bigint>()
      for (const change of jumping.written) {
        if (change.kind !== 'refill') continue
        assert.ok(change.period > (periods.get(change.grant) ?? 0n))
        periods.set(change.grant, change.period)
      }
    }),
  )
})

test('live rollover never exceeds its cap, and without rollover nothing crosses a reset', () => {
  fc.assert(
    fc.property(histories, ({ world, commands }) => {
      const ledger = new Ledger(world)
      for (const { at, entity, command } of commands.toSorted((a, b) => a.at - b.at)) {
        ledger.run(at, entity, command)
        const grants = [...ledger.accounts.values()].flatMap((each) => each.grants)
        for (const parent of grants.filter((each) => each.cycle !== null)) {
          const rolled = grants.filter((each) => each.rolledFrom === parent.id)
          if (parent.rollover === null) assert.deepEqual(rolled, [])
          for (const t of [at, at + minute, horizonMs]) {
            const units = rolled.filter((each) => live(each, t)).reduce((sum, each) => sum + each.remaining, 0n)
            assert.ok(parent.rollover?.max == null || units <= parent.rollover.max)
          }
        }
      }
      for (const [i, change] of ledger.written.entries()) {
        if (change.kind !== 'refill') continue
        const lapse = ledger.written[i - 1]
        assert.ok(lapse?.kind === 'lapse' && lapse.grant === change.grant && lapse.remaining === 0n)
      }
    }),
  )
})

function worldOf(own: Account): ConstructorParameters<typeof Ledger>[0] {
  return { feature: feature(), own, pools: [] }
}
