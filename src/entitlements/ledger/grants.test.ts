import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import { must } from '../../kernel/assert.ts'
import { Refusal } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { createFeature } from '../catalogue/features.ts'
import type { FeatureRecord } from '../catalogue/types.ts'
import { listGrants } from './grant-record.ts'
import { grantUnits, type NewGrant } from './grants.ts'
import { mergeAccounts } from './merge-accounts.ts'
import { ensureEntryPartitions } from './partitions.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database
await ensureEntryPartitions(pool)

interface World {
  scope: Scope
  exports: FeatureRecord
  customer: () => Promise<string>
  give: (customerId: string, allowance: bigint, part?: Partial<NewGrant>) => NewGrant
}

let sources = 0

async function world(): Promise<World> {
  const scope = await testScope(pool)
  const exports = await pool.transaction((tx) =>
    createFeature(tx, scope, { key: 'exports', name: 'Exports', type: 'metered', published: true }),
  )
  return {
    scope,
    exports,
    customer: async () => {
      const id = crypto.randomUUID()
      await pool.query('insert into customer (scope_id, id, created_at) values ($1, $2, now())', [scope.scopeId, id])
      return id
    },
    give: (customerId, allowance, part = {}) => ({
      customerId,
      feature: exports,
      entityId: null,
      allowance,
      unlimited: false,
      interval: null,
      rollover: null,
      startsAt: null,
      expiresAt: null,
      source: { origin: 'manual', ref: `manual:${++sources}`, rank: 0, productId: null },
      note: null,
      ...part,
    }),
  }
}

async function sumOf(scope: Scope): Promise<{ grants: bigint; entries: bigint }> {
  const [row] = await pool.query<{ grants: bigint; entries: bigint }>(
    `select (select coalesce(sum(remaining), 0) from ledger_grant where scope_id = $1)::bigint as grants,
       (select coalesce(sum(delta), 0) from entry where scope_id = $1)::bigint as entries`,
    [scope.scopeId],
  )
  return must(row, 'sums are always there')
}

describe('grantUnits', () => {
  test('answers in the order it was asked, with one version per account and one line per grant', async () => {
    const { scope, customer, give } = await world()
    const [a, b] = [await customer(), await customer()]
    const wanted = [give(b, 1n), give(a, 2n), give(b, 3n), give(a, 4n, { entityId: 'seat' })]
    const made = await pool.transaction((tx) => grantUnits(tx, scope, wanted))
    assert.deepEqual(
      made.map(({ customerId, grant }) => [customerId, grant.amount, grant.entityId]),
      [
        [b, 1n, null],
        [a, 2n, null],
        [b, 3n, null],
        [a, 4n, 'seat'],
      ],
    )
    const entries = await pool.query(
      `select a.customer_id as customer, e.version, e.line, e.delta
       from entry e
       join account a on a.id = e.account_id
       where e.scope_id = $1
       order by e.delta`,
      [scope.scopeId],
    )
    assert.deepEqual(entries, [
      { customer: b, version: 1n, line: 0, delta: 1n },
      { customer: a, version: 1n, line: 0, delta: 2n },
      { customer: b, version: 1n, line: 1, delta: 3n },
      { customer: a, version: 1n, line: 1, delta: 4n },
    ])
    assert.deepEqual(await pool.transaction((tx) => grantUnits(tx, scope, [])), [])
  })

  test('never dates a grant before the last decision on its account, though the clock went back', async () => {
    const { scope, customer, give } = await world()
    const id = await customer()
    await pool.transaction((tx) => grantUnits(tx, scope, [give(id, 1n)]))
    const [account] = await pool.query<{ ahead: bigint }>(
      'update account set last_at_ms = last_at_ms + 3600000 where scope_id = $1 returning last_at_ms as ahead',
      [scope.scopeId],
    )
    const [made] = await pool.transaction((tx) => grantUnits(tx, scope, [give(id, 1n)]))
    assert.equal(made?.grant.createdAt, Number(account?.ahead))
    assert.equal(made?.grant.effectiveAt, Number(account?.ahead))
  })

  test('of one source there is one grant per Feature and entity, ever', async () => {
    const { scope, customer, give } = await world()
    const id = await customer()
    const source = { origin: 'purchase', ref: 'appstore:1', rank: 1, productId: null } as const
    await pool.transaction((tx) => grantUnits(tx, scope, [give(id, 1n, { source })]))
    await assert.rejects(
      pool.transaction((tx) => grantUnits(tx, scope, [give(id, 1n, { source })])),
      /duplicate key/,
    )
    const other = give(id, 1n, { source, entityId: 'seat' })
    assert.equal((await pool.transaction((tx) => grantUnits(tx, scope, [other]))).length, 1)
    assert.deepEqual(await sumOf(scope), { grants: 2n, entries: 2n })
  })

  test('an unknown customer is not found, one of another scope too, and nothing is written', async () => {
    const [here, there] = [await world(), await world()]
    const stranger = await there.customer()
    for (const id of [crypto.randomUUID(), stranger]) {
      const refused = pool.transaction((tx) => grantUnits(tx, here.scope, [here.give(id, 1n)]))
      await assert.rejects(refused, (error) => error instanceof Refusal && error.code === 'not_found')
    }
    assert.deepEqual(await sumOf(here.scope), { grants: 0n, entries: 0n })
  })

  test('while merges and grants run at the same time no unit is lost and all end with the survivor', async () => {
    const { scope, customer, give } = await world()
    const target = await customer()
    const ids = [target, ...(await Promise.all(Array.from({ length: 6 }, () => customer())))]
    const merge = (source: string) =>
      pool.transaction(async (tx) => {
        await tx.query('update customer set merged_into = $3 where scope_id = $1 and id = $2', [
          scope.scopeId,
          source,
          target,
        ])
        await mergeAccounts(tx, scope, [{ sourceCustomerId: source, targetCustomerId: target }])
      })
    const grants = ids.flatMap((id) =>
      Array.from({ length: 5 }, () => pool.transaction((tx) => grantUnits(tx, scope, [give(id, 1n)]))),
    )
    const merges = ids.slice(1).map((id) => merge(id))
    await Promise.all([...grants, ...merges])

    const all = await listGrants(pool, scope, target, { limit: 100, after: null })
    assert.equal(all.length, 35)
    assert.deepEqual(await sumOf(scope), { grants: 35n, entries: 35n })
  })
})
