import fc from '../harness/random.ts'

/** One thing that happens to a ledger. Customers, grants and operations are named by their place, round and round. */
export type LedgerCommand =
  | {
      kind: 'grant'
      who: number
      feature: string
      allowance: number | null
      every: boolean
      rolls: number | null
      entity: string | null
    }
  | { kind: 'spend'; who: number; feature: string; units: number; total: boolean; entity: string | null }
  | { kind: 'revoke'; which: number; later: boolean }
  | { kind: 'reverse'; which: number }
  | { kind: 'register' | 'retire'; who: number; entity: string }
  | { kind: 'merge'; who: number; into: number }
  /** Time passes: all that has happened moves into the past. */
  | { kind: 'pass'; hours: number }

const who = fc.nat(2)
const entity = fc.constantFrom(null, null, 'a', 'b')
const feature = fc.constantFrom('exports', 'exports', 'reports', 'credits')

export const ledgerCommands: fc.Arbitrary<LedgerCommand[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('grant' as const),
        who,
        feature,
        allowance: fc.option(fc.integer({ min: 0, max: 30 }), { freq: 12 }),
        every: fc.boolean(),
        rolls: fc.option(fc.integer({ min: 1, max: 20 })),
        entity,
      }),
    },
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant('spend' as const),
        who,
        feature,
        units: fc.integer({ min: 1, max: 12 }),
        total: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
        entity,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('revoke' as const), which: fc.nat(9), later: fc.boolean() }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('reverse' as const), which: fc.nat(30) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom('register' as const, 'retire' as const),
        who,
        entity: fc.constantFrom('a', 'b'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('merge' as const), who, into: who }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 50 }) }) },
  ),
  { minLength: 20, maxLength: 45 },
)
