import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { reverseOperation, revokeGrant, sweepGrants } from '../../src/entitlements/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { findings, openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const spender = await ledger.spender()
after(() => spender[Symbol.asyncDispose]())

const by = { actor: 'key_test', note: null }
const dayMs = 24 * 3600_000

async function hiddenIn({ scopeId }: Scope): Promise<bigint[]> {
  const rows = await pool.query<{ id: bigint }>(
    'select id from ledger_grant where scope_id = $1 and settled order by id',
    [scopeId],
  )
  return rows.map(({ id }) => id)
}

/** One grant that ended long ago, one that is drained, one that ends later, and one that ended lately. */
async function world() {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  const now = clock.now()
  const give = async (allowance: number, startsAt: number, expiresAt: number) =>
    (await ledger.grant(scope, customerId, exports, allowance, { startsAt, expiresAt })).grant.id
  const old = await give(1, now - 60 * dayMs, now - 31 * dayMs)
  const drained = await give(2, now - dayMs, now + dayMs)
  const rest = await give(5, now - dayMs, now + 2 * dayMs)
  await give(1, now - 60 * dayMs, now - 29 * dayMs)
  await spender.consume({ scope, distinctId: 'u', quantity: 2, operationId: 'drain' })
  return { scope, customerId, old, drained, rest }
}

const check = (scope: Scope) => spender.check({ scope, distinctId: 'u', feature: 'exports', required: 1 })

test('a sweep hides what no decision needs, raises no version, and a second one finds nothing more', async () => {
  const { scope, old, drained } = await world()
  const versions = () => spender.standing({ scope, distinctId: 'u' }).then((standing) => standing.versions)
  const before = [await check(scope), await versions()]
  assert.equal(await sweepGrants(pool), 2)
  assert.deepEqual(await hiddenIn(scope), [old, drained])
  assert.deepEqual([await check(scope), await versions()], before)
  assert.equal(await sweepGrants(pool), 0)
  assert.deepEqual(await findings(pool, scope), [])
})

test('when what kept access live is revoked, the drained grant shows again: too little, not no access', async () => {
  const { scope, old, rest } = await world()
  await sweepGrants(pool)
  await pool.transaction((tx) => revokeGrant(tx, [scope], rest, { at: null, ...by }))
  assert.equal((await spender.consume({ scope, distinctId: 'u', quantity: 1 })).code, 'insufficient_balance')
  assert.deepEqual(await hiddenIn(scope), [old])
  assert.deepEqual(await findings(pool, scope), [])
})

test('what is reversed into a hidden grant can be spent again', async () => {
  const { scope, customerId, old } = await world()
  await sweepGrants(pool)
  await pool.transaction((tx) => reverseOperation(tx, scope, { operationId: 'drain', customerId, ...by }))
  assert.deepEqual(await hiddenIn(scope), [old])
  assert.equal((await check(scope)).balance, 7)
  assert.deepEqual(await findings(pool, scope), [])
})

test('an account that somebody holds is left for the next time', async () => {
  const { scope } = await world()
  await pool.transaction(async (tx) => {
    await tx.query('select id from account where scope_id = $1 for update', [scope.scopeId])
    assert.equal(await sweepGrants(pool), 0)
  })
  assert.equal(await sweepGrants(pool), 2)
})
