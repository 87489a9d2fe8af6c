import fc from '../../../../test/harness/random.ts'
import type { Account, Feature, Grant, PoolState, Rollover, State, UsageCommand } from '../../types.ts'
import { account, feature, pool } from './build.ts'

/**
 * After all instants below. Small numbers collide often: grants begin, end and reset at the same instants, and balances
 * are met exactly.
 */
export const horizonMs = 21 * 60_000

/** Instants on a coarse grid, one millisecond beside it now and then. */
export const instants = fc
  .tuple(fc.nat(60), fc.constantFrom(0, 0, 0, 1, -1))
  .map(([step, beside]) => Math.max(0, step * 20_000 + beside))

export const entities = fc.constantFrom(null, 'a', 'b')

const rollovers: fc.Arbitrary<Rollover> = fc.record(
  {
    max: fc.option(fc.bigInt(0n, 12n)),
    periods: fc.option(fc.integer({ min: 1, max: 3 })),
  },
  { noNullPrototype: true },
)

export interface GrantTerms {
  recurring?: boolean
  unlimited?: boolean
}

/** The terms of a grant as it stands when it is made: full, in its first period. */
export function grantTerms({ recurring = true, unlimited = true }: GrantTerms = {}): fc.Arbitrary<Partial<Grant>> {
  return fc
    .record({
      entityId: entities,
      rank: fc.nat(1),
      unlimited: unlimited ? fc.integer({ min: 0, max: 9 }).map((n) => n === 0) : fc.constant(false),
      amount: fc.bigInt(0n, 8n),
      effectiveAt: fc.oneof(fc.constant(0), instants),
      length: fc.option(instants),
      revokedAfter: fc.option(instants, { freq: 5 }),
      paidFor: fc.option(instants, { freq: 3 }),
      minutes: recurring ? fc.option(fc.integer({ min: 1, max: 4 })) : fc.constant(null),
      rollover: fc.option(rollovers),
      createdAt: fc.nat(2),
    })
    .map(({ length, revokedAfter, paidFor, minutes, rollover, effectiveAt, ...terms }) => ({
      ...terms,
      effectiveAt,
      expiresAt: length === null ? null : effectiveAt + length,
      revokedAt: revokedAfter === null ? null : effectiveAt + revokedAfter,
      paidUntil: minutes === null || paidFor === null ? null : effectiveAt + paidFor,
      cycle: minutes === null ? null : { unit: 'minute' as const, count: minutes, anchor: effectiveAt },
      rollover: minutes === null ? null : rollover,
    }))
}

/** The same, partly spent in its current period. */
export function spentTerms(terms: GrantTerms = {}): fc.Arbitrary<Partial<Grant>> {
  return fc.tuple(grantTerms(terms), fc.nat(100)).map(([grant, percent]) => {
    const amount = grant.amount ?? 0n
    return { ...grant, remaining: (amount * BigInt(percent)) / 100n }
  })
}

export const costs = fc.record({
  credits: fc.bigInt(1n, 4n),
  per: fc.bigInt(1n, 4n),
  scale: fc.nat(1),
})

/** A customer's accounts that concern one Feature: its own, and up to two credit systems that contain it. */
export interface World {
  feature: Feature
  own: Account
  pools: PoolState[]
}

export function worlds(grants: fc.Arbitrary<Partial<Grant>>): fc.Arbitrary<World> {
  const metered = fc
    .tuple(
      fc.array(grants, { maxLength: 4 }),
      fc.array(fc.tuple(costs, fc.array(grants, { maxLength: 3 })), { maxLength: 2 }),
    )
    .map(([own, pools]) => ({
      feature: feature(),
      own: account(own),
      pools: pools.map(([cost, inside], i) => pool(inside, { ...cost, id: i + 2 })),
    }))
  const credits = fc.tuple(fc.nat(1), fc.array(grants, { maxLength: 4 })).map(([scale, own]) => ({
    feature: feature({ type: 'creditSystem', scale }),
    own: account(own),
    pools: [],
  }))
  return fc.oneof({ arbitrary: metered, weight: 4 }, { arbitrary: credits, weight: 1 })
}

export const states: fc.Arbitrary<State> = fc
  .tuple(worlds(spentTerms()), instants, entities, fc.nat(9), fc.nat(9))
  .map(([world, now, entity, boolean, inapplicable]) => ({
    ...(boolean === 0 ? { ...world, feature: feature({ type: 'boolean' }), pools: [] } : world),
    now,
    entity,
    applies: inapplicable !== 0,
  }))

export const commands: fc.Arbitrary<UsageCommand> = fc.record({
  mode: fc.constantFrom('consume', 'consume', 'set_usage'),
  quantity: fc.bigInt(1n, 12n),
})

/** A command of a sequence: `at` is what the clock says. */
export const timedCommands = fc.array(fc.record({ at: instants, entity: entities, command: commands }), {
  maxLength: 14,
})
