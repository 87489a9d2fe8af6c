import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { FeatureType, State, UsageCommand, UsageDecision } from '../types.ts'
import { applyChanges } from './apply.ts'
import { available } from './draw.ts'
import { live } from './grant.ts'
import { settled } from './settle.ts'
import { commands, states } from './testing/arbitrary.ts'
import { account, accountsById, feature, pool, state } from './testing/build.ts'
import { decideUsage, usageWithoutCustomer } from './usage.ts'

const consume = (quantity: bigint): UsageCommand => ({ mode: 'consume', quantity })
const setUsage = (quantity: bigint): UsageCommand => ({ mode: 'set_usage', quantity })
const accepted = { accepted: true, code: 'consumed', unlimited: false } as const
const denied = { accepted: false, unlimited: false } as const
const boolean = feature({ type: 'boolean' })
const unlimited = account([{ unlimited: true, amount: 0n }])
const none = account()
const over = account([{ expiresAt: 1_000 }])

const table: [what: string, terms: Partial<State>, command: UsageCommand, decision: UsageDecision][] = [
  ['spent, units remain', {}, consume(7n), { ...accepted, balance: 3, active: true }],
  ['spent the last unit', {}, consume(10n), { ...accepted, balance: 0, active: false }],
  [
    'spent one credit of two left',
    { pools: [pool([{ amount: 2n }])], own: none },
    consume(1n),
    { ...accepted, balance: 1, active: true },
  ],
  ['unlimited', { own: unlimited }, consume(7n), { ...accepted, balance: null, unlimited: true, active: true }],
  [
    'set_usage, higher total',
    { own: account([{ amount: 10n, remaining: 3n }], { used: 7n }) },
    setUsage(10n),
    { ...accepted, balance: 0, active: false },
  ],
  [
    'set_usage, equal total',
    { own: account([{ amount: 10n, remaining: 3n }], { used: 7n }) },
    setUsage(7n),
    { ...accepted, balance: 3, active: true },
  ],
  [
    'set_usage, lower total at balance 0',
    { own: account([{ remaining: 0n }], { used: 7n }) },
    setUsage(2n),
    { ...accepted, balance: 0, active: false },
  ],
  [
    'set_usage, equal total, unlimited',
    { own: { ...unlimited, used: 7n } },
    setUsage(7n),
    { ...accepted, balance: null, unlimited: true, active: true },
  ],
  [
    'set_usage, equal total, nothing live',
    { own: { ...over, used: 7n } },
    setUsage(7n),
    { ...denied, code: 'access_inactive', balance: 0, active: false },
  ],
  ['live, too little', {}, consume(11n), { ...denied, code: 'insufficient_balance', balance: 10, active: true }],
  [
    'live, nothing left',
    { own: account([{ remaining: 0n }]) },
    consume(1n),
    { ...denied, code: 'insufficient_balance', balance: 0, active: false },
  ],
  [
    'set_usage, too little for the increase',
    { own: account([{}], { used: 7n }) },
    setUsage(18n),
    { ...denied, code: 'insufficient_balance', balance: 10, active: true },
  ],
  ['no live grant', { own: over }, consume(1n), { ...denied, code: 'access_inactive', balance: 0, active: false }],
  ['no account', { own: null }, consume(1n), { ...denied, code: 'access_inactive', balance: 0, active: false }],
  [
    'boolean, live',
    { feature: boolean, own: account([{ amount: 0n }]) },
    consume(1n),
    { ...denied, code: 'feature_not_consumable', balance: null, active: true },
  ],
  [
    'boolean, not live',
    { feature: boolean, own: none },
    consume(1n),
    { ...denied, code: 'feature_not_consumable', balance: null, active: false },
  ],
  [
    'other platform',
    { applies: false },
    consume(1n),
    { ...denied, code: 'feature_inapplicable', balance: 0, active: false },
  ],
  [
    'other platform, unlimited',
    { applies: false, own: unlimited },
    consume(1n),
    { ...denied, code: 'feature_inapplicable', balance: 0, active: false },
  ],
  [
    'other platform, boolean',
    { applies: false, feature: boolean },
    consume(1n),
    { ...denied, code: 'feature_inapplicable', balance: null, active: false },
  ],
]
for (const [what, terms, command, decision] of table) {
  test(`${what}: ${decision.code}`, () => assert.deepEqual(decideUsage(state(terms), command).decision, decision))
}

const missing: [FeatureType, number | null][] = [
  ['metered', 0],
  ['creditSystem', 0],
  ['boolean', null],
]
for (const [type, balance] of missing) {
  test(`no customer record, ${type}: customer_missing`, () => {
    assert.deepEqual(usageWithoutCustomer(type), { ...denied, code: 'customer_missing', balance, active: false })
  })
}

test('a consume writes the due resets, the draws and the counter, in this order', () => {
  const cycle = { unit: 'minute', count: 1, anchor: 0 } as const
  const own = account([{ cycle, remaining: 1n }, { amount: 5n }], { used: 9n })
  assert.deepEqual(decideUsage(state({ now: 60_000, own }), consume(12n)).changes, [
    { kind: 'lapse', account: 1n, grant: 1000n, period: 0n, delta: -1n, remaining: 0n, rolled: 0n },
    { kind: 'refill', account: 1n, grant: 1000n, period: 1n, delta: 10n, remaining: 10n },
    { kind: 'draw', account: 1n, grant: 1000n, period: 1n, delta: -10n, remaining: 0n },
    { kind: 'draw', account: 1n, grant: 1001n, period: 0n, delta: -2n, remaining: 3n },
    { kind: 'used', account: 1n, entity: null, used: 21n },
  ])
})

test('what a pool pays raises the counter of the Feature, not of the credit system', () => {
  const from = state({ entity: 'seat', own: none, pools: [pool([{ amount: 9n }], { credits: 2n })] })
  assert.deepEqual(decideUsage(from, consume(3n)).changes, [
    { kind: 'draw', account: 2n, grant: 2000n, period: 0n, delta: -6n, remaining: 3n },
    { kind: 'used', account: 1n, entity: 'seat', used: 3n },
  ])
})

test('nothing is spent without an account to count it in', () => {
  const from = state({ own: null, pools: [pool([{ amount: 9n }])] })
  assert.throws(() => decideUsage(from, consume(3n)), /account of the Feature/)
})

test('an unlimited grant in a pool absorbs the draw before own finite units', () => {
  const from = state({ pools: [pool([{ unlimited: true, amount: 0n }])] })
  assert.deepEqual(decideUsage(from, consume(3n)).changes, [{ kind: 'used', account: 1n, entity: null, used: 3n }])
})

test('the counter saturates instead of wrapping', () => {
  const max = 2n ** 63n - 1n
  const near = account([{ unlimited: true, amount: 0n }], { used: max - 1n })
  assert.deepEqual(decideUsage(state({ own: near }), consume(5n)).changes, [
    { kind: 'used', account: 1n, entity: null, used: max },
  ])
  assert.deepEqual(decideUsage(state({ own: { ...near, used: max } }), consume(5n)).changes, [])
})

test('a balance beyond what JSON holds exactly is capped, what is spent is not', () => {
  const own = account([{ amount: 2n ** 63n - 1n }])
  const { decision, changes } = decideUsage(state({ own }), consume(2n ** 53n - 1n))
  assert.equal(decision.balance, Number.MAX_SAFE_INTEGER)
  assert.equal(changes[0]?.kind === 'draw' && changes[0].remaining, 2n ** 63n - 2n ** 53n)
})

test('an accepted finite draw debits exactly the required cost, a denial nothing', () => {
  fc.assert(
    fc.property(states, commands, (from, command) => {
      const current = settled(from)
      const before = held(current)
      const { decision, changes } = decideUsage(from, command)
      if (!decision.accepted) {
        assert.deepEqual(changes, [])
        return
      }
      const draws = changes.flatMap((change) => (change.kind === 'draw' ? [change.delta] : []))
      applyChanges(accountsById(from), changes)
      assert.equal(held(settled(from)), before + draws.reduce((sum, delta) => sum + delta, 0n))
      if (decision.unlimited) assert.deepEqual(draws, [])
      else if (from.pools.length === 0) {
        const used = changes.find((change) => change.kind === 'used')?.used ?? 0n
        assert.equal(-draws.reduce((sum, delta) => sum + delta, 0n), used * 10n ** BigInt(from.feature.scale))
      }
    }),
  )
})

/** Stored units of all grants the caller sees. */
function held({ own, pools, entity, now }: State): bigint {
  const accounts = [own, ...pools.map((each) => each.account)].flatMap((each) => (each ? [each] : []))
  return accounts
    .flatMap((each) => each.grants)
    .filter((each) => live(each, now) && (each.entityId === null || each.entityId === entity))
    .reduce((sum, each) => sum + each.remaining, 0n)
}

test('a command for one entity changes neither another entity’s grants nor its counter, one without entity changes no entity', () => {
  fc.assert(
    fc.property(states, commands, (from, command) => {
      const { changes } = decideUsage(from, command)
      const grants = [...accountsById(from).values()].flatMap((each) => each.grants)
      const made = changes.flatMap((change) => (change.kind === 'rollover' ? [change.grant] : []))
      const owners = new Map([...grants, ...made].map((each) => [each.id, each.entityId]))
      for (const change of changes) {
        if (change.kind === 'used') assert.equal(change.entity, from.entity)
        else {
          const owner = owners.get(
            change.kind === 'rollover' || change.kind === 'grant' ? change.grant.id : change.grant,
          )
          assert.ok(owner === null || owner === from.entity)
        }
      }
    }),
  )
})

test('a decision has exactly its fields; its balance is null only when unlimited or boolean; active is what a check says next', () => {
  fc.assert(
    fc.property(states, commands, (from, command) => {
      const { decision, changes } = decideUsage(from, command)
      assert.deepEqual(Object.keys(decision).toSorted(), ['accepted', 'active', 'balance', 'code', 'unlimited'])
      assert.equal(decision.balance === null, decision.unlimited || from.feature.type === 'boolean')
      assert.ok(decision.balance === null || Number.isSafeInteger(decision.balance))
      applyChanges(accountsById(from), changes)
      const offer = available(settled(from))
      if (!from.applies) assert.equal(decision.active, false)
      else if (from.feature.type === 'boolean') assert.equal(decision.active, offer.live)
      else assert.equal(decision.active, offer.unlimited || offer.units >= 1n)
    }),
  )
})
