import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { reverseOperation, revokeGrant } from '../../src/entitlements/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { factsIn, findings, openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const spender = await ledger.spender()
after(() => spender[Symbol.asyncDispose]())

const by = { actor: 'key_test', note: null }

async function world() {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  return { scope, exports, customerId, told: async () => (await factsIn(pool, scope)).map(shown) }
}

/** Without what differs from run to run. */
function shown({ event, distinctId, properties }: Awaited<ReturnType<typeof factsIn>>[number]) {
  assert.equal(distinctId, 'u')
  assert.match(String(properties.version), /^\d+$/)
  const { version, feature, grant_id: grantId = 'grant_1', ...rest } = properties
  assert.ok(feature === 'exports' || feature === 'credits')
  assert.match(String(grantId), /^grant_\d+$/)
  return { event, version: Number(version), ...rest }
}

test('a grant, its last unit, its reversal and its revocation are told with the version they made, in the order they happened', async () => {
  const { scope, exports, customerId, told } = await world()
  const expiresAt = clock.now() + 3600_000
  const { grant } = await ledger.grant(scope, customerId, exports, 5, { expiresAt })
  await spender.consume({ scope, distinctId: 'u', quantity: 3 })
  await spender.consume({ scope, distinctId: 'u', quantity: 2, operationId: 'last' })
  await spender.consume({ scope, distinctId: 'u', quantity: 1 })
  await pool.transaction((tx) => reverseOperation(tx, scope, { operationId: 'last', customerId, ...by }))
  await pool.transaction((tx) => revokeGrant(tx, [scope], grant.id, { at: null, ...by }))
  const revoked = await told()
  const { revoked_at } = revoked[4] as { revoked_at?: string }
  const times = { starts_at: new Date(grant.effectiveAt).toISOString(), expires_at: new Date(expiresAt).toISOString() }
  const terms = { source: 'manual', product_id: null, allowance: 5, unlimited: false, interval: null, ...times }
  assert.deepEqual(revoked, [
    { event: '$feature_granted', version: 1, ...terms },
    { event: '$feature_access_changed', version: 1, intervals: [[grant.effectiveAt, expiresAt]] },
    { event: '$feature_exhausted', version: 3, operation_id: 'last' },
    { event: '$feature_reversed', version: 4, operation_id: 'last', units: 2 },
    { event: '$feature_revoked', version: 5, revoked_at, units: 2 },
    { event: '$feature_access_changed', version: 5, intervals: [] },
  ])
  assert.deepEqual(await findings(pool, scope), [])
})

test('access is told when its intervals change, and only then: joined, cut and drained grants included', async () => {
  const { scope, exports, customerId } = await world()
  const [start, hour] = [clock.now(), 3600_000]
  const intervals = async () => {
    const facts = (await factsIn(pool, scope)).filter(({ event }) => event === '$feature_access_changed')
    return facts.map(({ properties }) => properties.intervals)
  }
  const first = await ledger.grant(scope, customerId, exports, 1, { startsAt: start, expiresAt: start + 2 * hour })
  await ledger.grant(scope, customerId, exports, 1, { startsAt: start + hour, expiresAt: start + 3 * hour })
  await ledger.grant(scope, customerId, exports, 1, { startsAt: start + hour, expiresAt: start + 2 * hour })
  await ledger.grant(scope, customerId, exports, 1, { entityId: 'seat' })
  await ledger.grant(scope, customerId, exports, 1, { startsAt: start + 5 * hour })
  await spender.consume({ scope, distinctId: 'u', quantity: 1 })
  assert.deepEqual(await intervals(), [
    [[start, start + 2 * hour]],
    [[start, start + 3 * hour]],
    [
      [start, start + 3 * hour],
      [start + 5 * hour, null],
    ],
  ])
  await pool.transaction((tx) => revokeGrant(tx, [scope], first.grant.id, { at: start + hour / 2, ...by }))
  assert.deepEqual((await intervals()).at(-1), [
    [start, start + hour / 2],
    [start + hour, start + 3 * hour],
    [start + 5 * hour, null],
  ])
})

test('a reset is told by the spend that writes it, with the pool that paid, and an ordinary spend is not told', async () => {
  const { scope, customerId, told } = await world()
  const creditCosts = [{ feature: 'exports', cost: '0.5' }]
  const credits = await ledger.feature(scope, 'credits', { type: 'creditSystem', creditCosts })
  const startsAt = clock.now() - 45 * 24 * 3600_000
  await ledger.grant(scope, customerId, credits, 10, { interval: 'month', startsAt })
  const before = (await told()).length
  for (let i = 0; i < 3; i++) await spender.consume({ scope, distinctId: 'u', quantity: 2 })
  assert.deepEqual((await told()).slice(before), [{ event: '$feature_reset', version: 2, period: 1, units: 10 }])
})

test('a merge is told to the customer that goes on, as the access that both had together', async () => {
  const { scope, exports, customerId } = await world()
  const other = await ledger.customer(scope, 'v')
  const [start, hour] = [clock.now(), 3600_000]
  await ledger.grant(scope, customerId, exports, 1, { startsAt: start, expiresAt: start + hour })
  await ledger.grant(scope, other, exports, 1, { startsAt: start + hour, expiresAt: start + 2 * hour })
  const before = (await factsIn(pool, scope)).length
  await ledger.merge(scope, other, customerId)
  const facts = (await factsIn(pool, scope)).slice(before)
  assert.deepEqual(
    facts.map(({ event, properties }) => [event, properties.intervals]),
    [['$feature_access_changed', [[start, start + 2 * hour]]]],
  )
  assert.ok(['u', 'v'].includes(facts[0]?.distinctId ?? ''))
})
