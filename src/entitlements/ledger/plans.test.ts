import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type pg from 'pg'
import { testDatabase } from '../../../test/harness/database.ts'
import { Pool } from '../../db/pool.ts'
import { selectStandings } from './standing-store.ts'
import { ledgerSettings, selectDeleted, selectEntityCounts, selectOffers, selectState } from './state-store.ts'
import { lockAccounts, selectOperations } from './usage-store.ts'
import { writeUsage } from './usage-write-store.ts'

/**
 * Plans are made once, when the tables may still be empty and nobody has analysed them, and then kept. So each look-up must
 * take the index that holds all its columns from the start: an index that shares only its first column costs the same on an
 * empty table and everything on a full one.
 */
const database = await testDatabase()
const pool = new Pool(database.url, { name: 'plans', max: 1, settings: ledgerSettings })
after(async () => {
  await pool[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** `PLAN_ROWS=1000000` for the tables of a large installation; it takes minutes. */
const rows = Number(process.env.PLAN_ROWS ?? 20_000)

type Send = (client: pg.PoolClient) => Promise<unknown>

/** The statement that `send` sends, explained instead of run. */
async function planOf(send: Send): Promise<string> {
  return pool.connected(async (client) => {
    let plan = ''
    const explaining = {
      async query({ text, values }: { text: string; values: unknown[] }) {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values)
        plan = rows.map((row) => row['QUERY PLAN']).join('\n')
        return { rows: [] }
      },
    }
    await send(explaining as unknown as pg.PoolClient) // of a client the stores use query() alone
    return plan
  })
}

const id = { scopeId: 1, distinctId: 'u', customerId: null }
const nothing = { operations: [], entries: [], grants: [], accounts: [], readVersions: [], entities: [] }

/** Each hot statement and the conditions its look-ups must have, in full. */
const statements: [string, Send, RegExp[]][] = [
  [
    'the state of a decision',
    (client) => selectState(client, [{ scopeId: 1, distinctId: 'u', featureId: 1, entityId: 'e' }]),
    [
      /customer_alias_pkey.*\n.*\(scope_id = q\.scope_id\) AND \(distinct_id = q\.distinct_id\)/,
      /account_scope_id_customer_id_feature_id_key.*\n.*\(customer_id = .*\) AND \(feature_id = q\.feature_id\)/,
      /account_entity_pkey.*\n.*\(account_id = .*\) AND \(entity_id = q\.entity_id\)/,
      /ledger_grant_account/,
    ],
  ],
  [
    'what is offered to an entity',
    (client) => selectOffers(client, [{ scopeId: 1, distinctId: 'u', featureId: 1, entityId: 'e' }]),
    [
      /customer_alias_pkey.*\n.*\(scope_id = q\.scope_id\) AND \(distinct_id = q\.distinct_id\)/,
      /account_scope_id_customer_id_feature_id_key.*\n.*\(customer_id = .*\) AND \(feature_id = q\.feature_id\)/,
      /entity_terms_account.*\n.*\(account_id = /,
      /ledger_grant_scope_id_source_ref.*\n.*\(source_ref = t\.source_ref\).* AND \(entity_id = q\.entity_id\)/,
    ],
  ],
  [
    'the saved operations',
    (client) => selectOperations(client, [{ scopeId: 1, operationId: 'o' }]),
    [/operation_pkey.*\n.*\(scope_id = q\.scope_id\) AND \(kind = 0\) AND \(operation_id = q\.operation_id\)/],
  ],
  [
    'the write of a batch',
    (client) => writeUsage(client, nothing),
    [/account_pkey.*\n.*\(id = /, /ledger_grant_pkey.*\n.*\(id = /],
  ],
  ['locks that do not wait', (client) => lockAccounts(client, [1n], false), [/account_pkey/]],
  ['locks that wait', (client) => lockAccounts(client, [1n], true), [/account_pkey/]],
  [
    'the whole of a profile',
    (client) => selectStandings(client, [id]),
    [/customer_alias_pkey/, /customer_p0_pkey.*\n.*\(id = /, /ledger_grant_account/],
  ],
  ['deleted ids', (client) => selectDeleted(client, [id], Buffer.alloc(32)), [/customer_tombstone_pkey.*\n.*id_hash/]],
  ['entities of an account', (client) => selectEntityCounts(client, [1n]), [/account_entity_pkey/]],
]

async function checkPlans(): Promise<void> {
  for (const [name, send, conditions] of statements) {
    const plan = await planOf(send)
    assert.doesNotMatch(plan, /Seq Scan|Hash Join|Merge Join|Memoize/, `${name}\n${plan}`)
    for (const condition of conditions) assert.match(plan, condition, `${name}\n${plan}`)
  }
}

test('on empty tables every hot look-up takes the index that holds all its columns', checkPlans)

test('on full tables that nobody has analysed it still does', async () => {
  await fill(rows)
  await pool.query('discard plans')
  await checkPlans()
})

test('with fresh and with stale statistics it still does', async () => {
  await database.pool.query('analyze')
  await checkPlans()
  await fill(1000)
  await checkPlans()
})

let filled = 0

/** Customers with an id, an account, a grant, an entity and an operation each. */
async function fill(customers: number): Promise<void> {
  const range = [filled + 1, filled + customers]
  filled += customers
  const series = `from generate_series($1::int, $2::int) as n`
  const customerId = `md5(n::text)::uuid`
  const rows = [
    `insert into customer (scope_id, id, created_at) select 1, ${customerId}, now() ${series}`,
    `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at) select 1, 'u' || n, ${customerId}, 0, now() ${series}`,
    `insert into account (scope_id, customer_id, feature_id) select 1, ${customerId}, 1 ${series}`,
    `insert into ledger_grant (scope_id, account_id, feature_id, source_ref, origin, amount, remaining, effective_at_ms, anchor_ms, created_at_ms)
     select 1, a.id, 1, 'm' || n, 'manual', 9, 9, 0, 0, 0 ${series} join account a on a.customer_id = ${customerId}`,
    `insert into entity_terms (scope_id, account_id, feature_id, source_ref, origin, rank, template, effective_at_ms, created_at_ms, max_entities)
     select 1, a.id, 1, 'm' || n, 'product', 0, '{}', 0, 0, 1 ${series} join account a on a.customer_id = ${customerId}`,
    `insert into account_entity (account_id, entity_id) select a.id, 'e' ${series} join account a on a.customer_id = ${customerId}`,
    `insert into operation (scope_id, kind, operation_id, customer_id, feature_key, mode, quantity, http_status, accepted, code,
       feature_type, unlimited, active, occurred_at_ms, account_version)
     select 1, 0, 'o' || n, ${customerId}, 'f', 0, 1, 200, true, 'consumed', 1, false, true, n, 1 ${series}`,
  ]
  for (const text of rows) await database.pool.query(text, range)
}
