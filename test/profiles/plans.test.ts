import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Pool } from '../../src/db/pool.ts'
import { ledgerSettings } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { selectRevisions, selectStates } from '../../src/profiles/state-store.ts'
import { selectUnchanged } from '../../src/profiles/unchanged-store.ts'
import { testDatabase } from '../harness/database.ts'
import { keepUnanalysed, nodesOf, plansOn } from '../harness/plans.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool, url } = database
const rows = Number(process.env.PLAN_ROWS ?? 20_000)
const customer = `md5('c' || n)::uuid`

/** As after a bulk load, everything in one scope. */
async function fill(): Promise<void> {
  await keepUnanalysed(pool)
  const load: [into: string, select: string][] = [
    ['customer (scope_id, id, created_at)', `1, ${customer}, now()`],
    [
      'customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)',
      `1, 'c' || n, ${customer}, 0, now()`,
    ],
    ['customer_rev (scope_id, customer_id, rev)', `1, ${customer}, n`],
    ['account (scope_id, customer_id, feature_id)', `1, ${customer}, 1`],
    ['membership (scope_id, version_id, customer_id, since, told)', `1, 1, ${customer}, now(), true`],
    [
      'membership_change (scope_id, pos, n, segment_id, customer_id, edge, cause, at)',
      `1, n, 1, 1, ${customer}, 'entered', 'event', now()`,
    ],
    ['experience_enrolment (scope_id, experience_id, customer_id, count, times)', `1, 1, ${customer}, 1, '{1}'`],
  ]
  for (const [into, select] of load) {
    await pool.query(`insert into ${into} select ${select} from generate_series(1, ${rows}) n`)
  }
}

test('what a profile asks is a chain of look-ups by key on large tables that nobody has analysed', async () => {
  await fill()
  await using one = new Pool(url, { name: 'test plans', max: 1, settings: ledgerSettings })
  const [id] = await pool.query<{ id: string }>(`select customer_id as id from customer_alias where distinct_id = 'c7'`)
  const customerId = must(id, 'it was made').id
  await one.connected(async (client) => {
    const query = { scopeId: 1, distinctId: 'c7', customerId: null, withProperties: true }
    const asked = { scopeId: 1, segmentVersions: [1], edgeSegments: [1], enrolments: [1] }
    const [state] = await selectStates(client, [query], [asked])
    assert.equal(state?.[1], customerId)
    assert.equal(state?.[2], '7')
    for (const column of [4, 5, 6]) assert.equal(JSON.parse(state?.[column] ?? '[]').length, 1)
    const known = { scopeId: 1, revision: 1n, customerId, rev: 7n, versions: 0, validUntil: null }
    assert.equal((await selectRevisions(client, new Set([1]))).size, 0)
    // The scope is not there, so its catalogue has another revision than any.
    assert.deepEqual(await selectUnchanged(client, [known]), [false])
  })
  const plans = await plansOn(one)
  for (const name of ['profiles_states', 'profiles_revisions', 'profiles_changed']) {
    for (const node of nodesOf(must(plans.get(name), 'it was prepared'))) {
      const said = `${name}: ${node['Node Type']} on ${node['Relation Name']} ${JSON.stringify(node['Index Cond'])}`
      assert.doesNotMatch(node['Node Type'], /Seq Scan|Hash Join|Merge Join|Materialize/, said)
      if (!/Index/.test(node['Node Type'])) continue
      assert.match(node['Index Cond'] ?? '', /=/, said)
      assert.doesNotMatch(node['Index Cond'] ?? '', /^\(scope_id = [^()]*\)$/, said)
    }
  }
})
