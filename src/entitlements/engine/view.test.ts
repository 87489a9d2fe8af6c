import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Account, Feature, Grant, PoolState } from '../types.ts'
import { decideAccess } from './access.ts'
import { stateOf } from './state.ts'
import { horizonMs, instants, spentTerms, type World, worlds } from './testing/arbitrary.ts'
import { account, feature, pool } from './testing/build.ts'
import { type ActiveFeatures, activeFeatures } from './view.ts'

const minute = 60_000

/** The view of a customer who has `grants` of each Feature. */
function view(have: { feature: Feature; grants: Partial<Grant>[] }[], now = 1_000): ActiveFeatures {
  const published = new Map(have.map((each) => [each.feature.key, each.feature]))
  const accounts = new Map(have.map(({ feature: { id }, grants }) => [id, account(grants, { id: BigInt(id) })]))
  return activeFeatures({ published, poolsOf: new Map() }, 'ios', { now, accounts })
}

function entry(terms: Partial<Grant>, of: Partial<Feature> = {}): object | undefined {
  return view([{ feature: feature(of), grants: [terms] }]).features[0]
}

test('a Feature with live access is listed, with the same balance a check gives', () => {
  const nulls = { nextResetAt: null, interval: null }
  assert.deepEqual(entry({ remaining: 4n }), { id: 'exports', type: 'metered', balance: 4, unlimited: false, ...nulls })
  assert.deepEqual(entry({ remaining: 0n }), { id: 'exports', type: 'metered', balance: 0, unlimited: false, ...nulls })
  assert.deepEqual(entry({ unlimited: true }), {
    id: 'exports',
    type: 'metered',
    balance: null,
    unlimited: true,
    ...nulls,
  })
  assert.deepEqual(entry({ unlimited: true }, { type: 'boolean' }), {
    id: 'exports',
    type: 'boolean',
    balance: null,
    unlimited: false,
    ...nulls,
  })
  assert.deepEqual(entry({ amount: 250n }, { type: 'creditSystem', scale: 2 }), {
    id: 'exports',
    type: 'creditSystem',
    balance: 2,
    unlimited: false,
    ...nulls,
  })
})

test('a Feature is absent without live access and on other platforms', () => {
  assert.equal(entry({ expiresAt: 1_000 }), undefined)
  assert.equal(entry({ entityId: 'seat' }), undefined)
  assert.equal(entry({}, { platforms: ['android', 'web'] }), undefined)
  assert.notEqual(entry({}, { platforms: ['ios'] }), undefined)
})

test('entries come in UTF-16 code unit order of their keys', () => {
  const keys = ['b', 'B', 'a-b', 'a.b', 'ab', 'é', '\u{1F600}', '\uFF01']
  const have = keys.map((key, i) => ({ feature: feature({ id: i + 1, key }), grants: [{}] }))
  const order = view(have).features.map((each) => each.id)
  assert.deepEqual(order, ['B', 'a-b', 'a.b', 'ab', 'b', 'é', '\u{1F600}', '\uFF01'])
})

test('a member Feature is listed when only a credit system pays for it', () => {
  const chat = feature({ id: 1, key: 'chat' })
  const credits: PoolState = pool([{ amount: 9n }], { credits: 2n })
  const catalogue = {
    published: new Map([chat, credits.feature].map((each) => [each.key, each])),
    poolsOf: new Map([[1, [credits]]]),
  }
  const { features } = activeFeatures(catalogue, 'ios', { now: 0, accounts: new Map([[2, credits.account]]) })
  assert.deepEqual(
    features.map(({ id, balance }) => [id, balance]),
    [
      ['chat', 4],
      ['credits-2', 9],
    ],
  )
})

const cycle = { unit: 'minute' as const, count: 1, anchor: 0 }
const turns: [what: string, terms: Partial<Grant>, turn: number | null][] = [
  ['never, when nothing ends', {}, null],
  ['at the expiry', { expiresAt: 5_000 }, 5_000],
  ['at a revocation to come', { expiresAt: 5_000, revokedAt: 4_000 }, 4_000],
  ['at the start', { effectiveAt: 3_000, expiresAt: 5_000 }, 3_000],
  ['at the reset', { cycle, remaining: 3n }, minute],
  ['never for a grant that resets full', { cycle }, null],
  ['at the reset of a full grant that rolls over', { cycle, rollover: { max: 5n, periods: 1 } }, minute],
  ['at the expiry before the reset', { cycle, remaining: 3n, expiresAt: 5_000 }, 5_000],
  [
    'at the expiry when the next period is not paid',
    { cycle, remaining: 3n, paidUntil: minute, expiresAt: 9 * minute },
    9 * minute,
  ],
  ['never for what is over', { expiresAt: 1_000 }, null],
  ['never for another’s', { entityId: 'seat', expiresAt: 5_000 }, null],
]
for (const [what, terms, turn] of turns) {
  test(`time alone changes the view ${what}`, () => {
    assert.equal(view([{ feature: feature(), grants: [terms] }]).validUntil, turn)
  })
}

test('until validUntil the view stays, and it always agrees with checks', () => {
  fc.assert(
    fc.property(worlds(spentTerms()), instants, fc.nat(1_000_000), (world, now, part) => {
      const { features, validUntil } = viewOf(world, now)
      const last = Math.min(validUntil ?? now + horizonMs, now + horizonMs) - 1
      const later = now + Math.floor(((last - now) * part) / 1_000_000)
      for (const t of [later, last]) assert.deepEqual(viewOf(world, t).features, features)
      assert.ok(validUntil === null || validUntil > now)
      for (const each of [world.feature, ...world.pools.map(({ feature: one }) => one)]) {
        const listed = features.find(({ id }) => id === each.key)
        const check = decideAccess(
          stateOf(catalogueOf(world), each, { ...standingOf(world, now), platform: 'ios', entity: null }),
          1n,
        )
        assert.equal(listed?.balance ?? 0, check.balance ?? 0)
        assert.equal(listed?.unlimited ?? false, check.unlimited)
        assert.ok(listed !== undefined || !check.allowed)
      }
    }),
    { numRuns: 300 },
  )
})

function catalogueOf({ feature: own, pools }: World): Parameters<typeof activeFeatures>[0] {
  const all = [own, ...pools.map((each) => each.feature)]
  return { published: new Map(all.map((each) => [each.key, each])), poolsOf: new Map([[own.id, pools]]) }
}

function standingOf({ own, pools }: World, now: number): { now: number; accounts: Map<number, Account> } {
  return { now, accounts: new Map([own, ...pools.map((each) => each.account)].map((each) => [each.featureId, each])) }
}

function viewOf(world: World, now: number): ActiveFeatures {
  return activeFeatures(catalogueOf(world), 'ios', standingOf(world, now))
}
