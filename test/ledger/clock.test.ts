import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { writeUsage } from '../../src/entitlements/ledger/usage-write-store.ts'
import { openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const spender = await ledger.spender()
after(() => spender[Symbol.asyncDispose]())

async function customerWith(allowance: number, terms: { expiresAt?: number } = {}) {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  await ledger.grant(scope, await ledger.customer(scope, 'u'), exports, allowance, terms)
  return scope
}

test('no clock that went back moves the decisions of an account backwards or undoes an expiry', async () => {
  const hourMs = 3600_000
  const expiresAt = Date.now() + hourMs / 2
  const scope = await customerWith(10, { expiresAt })
  assert.equal((await spender.consume({ scope, distinctId: 'u', quantity: 1 })).code, 'consumed')
  // As if the database's clock had been an hour ahead when it decided last.
  const ahead = Date.now() + hourMs
  await pool.query('update account set last_at_ms = $2 where scope_id = $1', [scope.scopeId, ahead])
  for (const quantity of [1, 1]) {
    const { code, occurredAt } = await spender.consume({ scope, distinctId: 'u', quantity })
    assert.deepEqual([code, occurredAt], ['access_inactive', ahead])
  }
  const { allowed } = await spender.check({ scope, distinctId: 'u', feature: 'exports', required: 1 })
  assert.equal(allowed, false)
})

test('a denial written after another one that was decided later keeps the later clock of the two', async () => {
  const scope = await customerWith(0)
  const { occurredAt } = await spender.consume({ scope, distinctId: 'u', quantity: 1 })
  const [account] = await pool.query<{ id: bigint; version: bigint }>(
    'select id, version from account where scope_id = $1',
    [scope.scopeId],
  )
  const earlier = Number(occurredAt) - 1000
  const stale = {
    ...{ id: account?.id ?? 0n, featureId: 0, used: 0n, entities: new Map(), grants: [] },
    lastAt: earlier,
  }
  const { version = 0n } = account ?? {}
  const batch = { operations: [], entries: [], grants: [], entities: [] }
  await pool.connected((client) =>
    writeUsage(client, { ...batch, accounts: [{ ...stale, version }], readVersions: [version] }),
  )
  const [after] = await pool.query<{ at: bigint }>('select last_at_ms as at from account where scope_id = $1', [
    scope.scopeId,
  ])
  assert.equal(Number(after?.at), occurredAt)
})
