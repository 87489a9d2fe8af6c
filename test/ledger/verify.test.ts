import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Finding, verifyLedger } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import fc from '../harness/random.ts'
import { type LedgerCommand, ledgerCommands } from './ledger-commands.ts'
import { ledgerWorld } from './random-ledger.ts'

const world = await ledgerWorld()
after(() => world[Symbol.asyncDispose]())
const { pool } = world

async function findingsIn(scope?: Scope): Promise<Finding[]> {
  const findings: Finding[] = []
  await verifyLedger(pool, {
    onFinding: (finding) => findings.push(finding),
    ...(scope ? { scopeId: scope.scopeId } : {}),
  })
  return findings
}

describe('a ledger made by the verbs', () => {
  test('is found right, whatever was granted, spent, reset, revoked, reversed, merged and registered', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(ledgerCommands, async (commands) => {
        const { scope, answers } = await world.run(commands)
        accepted += answers.filter((answer) => answer.accepted).length
        assert.deepEqual(await findingsIn(scope), [])
      }),
      { numRuns: 25 },
    )
    assert.ok(accepted > 0, 'something was spent')
    assert.deepEqual(await findingsIn(), [])
  })
})

/** A history in which every kind of row and every column means something; no merge and no entity hides a version. */
const history: LedgerCommand[] = [
  { kind: 'grant', who: 0, feature: 'exports', allowance: 10, every: true, rolls: 15, entity: null },
  { kind: 'grant', who: 0, feature: 'credits', allowance: 9, every: false, rolls: null, entity: null },
  { kind: 'spend', who: 0, feature: 'exports', units: 3, total: false, entity: null },
  { kind: 'spend', who: 0, feature: 'exports', units: 11, total: false, entity: null },
  { kind: 'pass', hours: 2 },
  { kind: 'spend', who: 0, feature: 'exports', units: 5, total: true, entity: null },
  { kind: 'spend', who: 0, feature: 'exports', units: 1, total: false, entity: null },
  { kind: 'spend', who: 0, feature: 'reports', units: 900, total: false, entity: null },
  { kind: 'reverse', which: 3 },
  { kind: 'grant', who: 0, feature: 'reports', allowance: 4, every: false, rolls: null, entity: null },
  { kind: 'spend', who: 0, feature: 'reports', units: 2, total: false, entity: null },
  { kind: 'revoke', which: 2, later: false },
  { kind: 'grant', who: 1, feature: 'exports', allowance: 20, every: false, rolls: null, entity: 'a' },
  { kind: 'spend', who: 1, feature: 'exports', units: 7, total: false, entity: 'a' },
  { kind: 'spend', who: 1, feature: 'exports', units: 2, total: true, entity: 'a' },
]

const tables = ['account', 'account_entity', 'ledger_grant', 'entry', 'refill', 'operation']

/** What one table may be made to say. Each row that it can hit is hit on its own. */
const corruptions: { name: string; table: string; rows?: string; set?: string; run?: string }[] = [
  { name: 'remaining less', table: 'ledger_grant', rows: 'remaining > 0', set: 'remaining = remaining - 1' },
  { name: 'remaining more', table: 'ledger_grant', rows: 'remaining < amount', set: 'remaining = remaining + 1' },
  { name: 'amount', table: 'ledger_grant', set: 'amount = amount + 1' },
  { name: 'amount less', table: 'ledger_grant', rows: 'remaining < amount', set: 'amount = amount - 1' },
  { name: 'period of a grant', table: 'ledger_grant', set: 'period_no = period_no + 1' },
  { name: 'revoked', table: 'ledger_grant', rows: 'revoked_at_ms is null', set: 'revoked_at_ms = created_at_ms' },
  { name: 'not revoked', table: 'ledger_grant', rows: 'revoked_at_ms is not null', set: 'revoked_at_ms = null' },
  {
    name: 'settled',
    table: 'ledger_grant',
    rows: 'revoked_at_ms is null and expires_at_ms is null and remaining > 0',
    set: 'settled = true',
  },
  {
    name: 'account of a grant',
    table: 'ledger_grant',
    set: 'account_id = (select max(id) from account where id <> account_id)',
  },
  { name: 'account of a grant that is none', table: 'ledger_grant', set: 'account_id = 999999999' },
  { name: 'scope of a grant', table: 'ledger_grant', set: 'scope_id = scope_id + 1' },
  { name: 'Feature of a grant', table: 'ledger_grant', set: 'feature_id = feature_id + 1' },
  { name: 'entity of a grant', table: 'ledger_grant', rows: `entity_id is not null`, set: `entity_id = 'b'` },
  {
    name: 'unlimited by itself',
    table: 'operation',
    rows: 'kind = 0 and accepted',
    set: 'unlimited = true, balance = null, active = true',
  },
  { name: 'grant missing', table: 'ledger_grant', run: 'delete from ledger_grant' },
  { name: 'delta', table: 'entry', set: 'delta = delta + 1' },
  { name: 'remaining_after', table: 'entry', set: 'remaining_after = remaining_after + 1' },
  { name: 'version of an entry', table: 'entry', set: 'version = version + 1' },
  { name: 'line twice', table: 'entry', rows: 'line > 0', set: 'line = 0' },
  { name: 'kind of an entry', table: 'entry', set: `kind = case kind when 'draw' then 'reverse' else 'draw' end` },
  { name: 'grant of an entry', table: 'entry', set: 'grant_id = grant_id + 1' },
  { name: 'period of an entry', table: 'entry', set: 'period_no = period_no + 1' },
  { name: 'operation of an entry', table: 'entry', rows: 'operation_id is not null', set: `operation_id = 'another'` },
  { name: 'account of an entry', table: 'entry', set: 'account_id = 999999999' },
  { name: 'scope of an entry', table: 'entry', set: 'scope_id = scope_id + 1' },
  { name: 'entry missing', table: 'entry', run: 'delete from entry' },
  { name: 'entry doubled', table: 'entry', run: 'insert into entry select entry.* from entry' },
  { name: 'version of an account', table: 'account', set: 'version = version - 1', rows: 'version > 0' },
  {
    name: 'version of an account ahead',
    table: 'account',
    rows: 'id not in (select account_id from account_entity)',
    set: 'version = version + 1',
  },
  { name: 'clock of an account', table: 'account', rows: 'version > 0', set: 'last_at_ms = last_at_ms - 86400000' },
  { name: 'used_total', table: 'account', set: 'used_total = used_total + 1' },
  { name: 'used_total less', table: 'account', rows: 'used_total > 0', set: 'used_total = used_total - 1' },
  { name: 'merged by itself', table: 'account', rows: 'version > 0', set: 'merged_into = 999999999' },
  { name: 'account missing', table: 'account', rows: 'version > 0', run: 'delete from account' },
  { name: 'used_total of an entity', table: 'account_entity', set: 'used_total = used_total + 1' },
  { name: 'entity missing', table: 'account_entity', run: 'delete from account_entity' },
  { name: 'quantity', table: 'operation', rows: `kind = 0 and accepted and mode = 0`, set: 'quantity = quantity + 1' },
  {
    name: 'quantity of a total',
    table: 'operation',
    rows: `kind = 0 and accepted and mode = 1 and quantity > 10`,
    set: 'quantity = quantity + 1',
  },
  { name: 'a denial that fits', table: 'operation', rows: `code = 'insufficient_balance'`, set: 'quantity = 1' },
  { name: 'accepted taken back', table: 'operation', rows: `kind = 0 and accepted`, set: `accepted = false` },
  { name: 'accepted given', table: 'operation', rows: `kind = 0 and not accepted`, set: `accepted = true` },
  {
    name: 'decision turned',
    table: 'operation',
    rows: `kind = 0 and not accepted`,
    set: `accepted = true, code = 'consumed'`,
  },
  { name: 'balance', table: 'operation', rows: 'kind = 0', set: 'balance = -1' },
  { name: 'active', table: 'operation', rows: 'kind = 0', set: 'active = not active' },
  {
    name: 'version of an operation',
    table: 'operation',
    rows: `kind = 0 and accepted and mode = 0`,
    set: 'account_version = account_version + 1',
  },
  {
    name: 'entity of an operation',
    table: 'operation',
    rows: `kind = 0 and accepted and mode = 0`,
    set: `entity_id = 'b'`,
  },
  {
    name: 'Feature of an operation',
    table: 'operation',
    rows: `kind = 0 and accepted`,
    set: `feature_key = 'nothing'`,
  },
  {
    name: 'time of an operation',
    table: 'operation',
    rows: `kind = 0 and accepted and mode = 0`,
    set: 'occurred_at_ms = occurred_at_ms + 1',
  },
  {
    name: 'customer of an operation',
    table: 'operation',
    rows: `kind = 0 and accepted`,
    set: `customer_id = gen_random_uuid()`,
  },
  {
    name: 'operation missing',
    table: 'operation',
    rows: `kind = 0 and accepted and mode = 0`,
    run: 'delete from operation',
  },
  { name: 'reversal missing', table: 'operation', rows: `kind = 1`, run: 'delete from operation' },
  {
    name: 'answer of a reversal',
    table: 'operation',
    rows: `kind = 1`,
    set: `result = jsonb_set(result, '{returned}', '[]')`,
  },
  { name: 'refill missing', table: 'refill', run: 'delete from refill' },
  { name: 'lapsed', table: 'refill', set: 'lapsed = lapsed + 1' },
  { name: 'rolled', table: 'refill', set: 'rolled = rolled + 1' },
  { name: 'period of a refill', table: 'refill', set: 'period_no = period_no + 9' },
  {
    name: 'refill of nothing',
    table: 'refill',
    run: 'insert into refill select grant_id, period_no + 9, lapsed, rolled, at_ms from refill',
  },
]

describe('a corrupted ledger', () => {
  before(async () => {
    for (const table of tables) await pool.query(`truncate ${table}`)
    await world.run(history)
    for (const table of tables) await pool.query(`create table right_${table} as table ${table}`)
    assert.deepEqual(await findingsIn(), [])
  })

  for (const { name, table, rows = 'true', set, run } of corruptions) {
    test(`is found out: ${name}`, async () => {
      const change = run ?? `update ${table} set ${set}`
      const hit = `tableoid = $1::oid and ctid = $2::tid`
      const places = () =>
        pool.query<{ table: string; place: string; row: string }>(
          `select tableoid::text as table, ctid::text as place, ${table}::text as row
           from ${table}
           where ${rows}
           order by 3`,
        )
      const count = (await places()).length
      assert.ok(count > 0, 'there is something to corrupt')
      for (let i = 0; i < count; i++) {
        const at = must((await places())[i], 'as many as before')
        await pool.query(`${change} where ${hit}`, [at.table, at.place])
        const findings = await findingsIn()
        await pool.query(`truncate ${table}`)
        await pool.query(`insert into ${table} overriding system value select * from right_${table}`)
        assert.notDeepEqual(findings, [], at.row)
      }
    })
  }
})
