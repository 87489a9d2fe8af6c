import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import { keepUnanalysed, nodesOf, plansOn } from '../../../test/harness/plans.ts'
import { Pool } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { systemClock as clock } from '../../kernel/clock.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ensurePartitions } from '../partitions.ts'
import { createCursors } from './cursor.ts'
import { createListEvents, type ListQuery } from './list.ts'
import { segments } from './membership-store.ts'
import { createAnalytics, listSettings } from './query.ts'

const database = await testDatabase()
const { pool, url } = database
after(() => database[Symbol.asyncDispose]())
/** `PLAN_ROWS=5000000 npm test src/events/queries/plans.test.ts` looks at the tables of a large installation. */
const rows = Number(process.env.PLAN_ROWS ?? 20_000)
const customers = Math.ceil(rows / 50)
const noon = Date.parse('2026-06-01T12:00:00Z')
const dayMs = 86_400_000

/** Tables as they are after a bulk load and before anybody analysed them. */
async function fill({ scopeId }: Scope): Promise<void> {
  const customer = (n: string) => `md5('c' || (${n}) % ${customers})::uuid`
  await pool.query(
    `insert into customer (scope_id, id, created_at)
     select ${scopeId}, ${customer('n')}, now()
     from generate_series(1, ${customers}) n`,
  )
  await pool.query(
    `insert into event (scope_id, pos, uuid, customer_id, distinct_id, app_id, event, ts, received_at, props, trust,
       recognised, historical)
     select ${scopeId}, n, md5(n::text)::uuid, ${customer('n')}, 'd', 'app_1', 'event_' || n % 10,
       $1::timestamptz - n * interval '1 second', now(), '{}', 0, true, false
     from generate_series(1, ${rows}) n`,
    [new Date(noon).toISOString()],
  )
  await pool.query(
    `insert into event_rollup (scope_id, event, slot, app_id, count, valued, value_sum)
     select ${scopeId}, 'event_' || n % 10, $1::timestamptz - n * interval '15 minutes', '', 1, 0, 0
     from generate_series(1, ${rows}) n`,
    [new Date(noon).toISOString()],
  )
  await pool.query('update lane set pos = $2 where id = $1', [scopeId, rows])
}

const all: ListQuery = {
  ...{ appId: null, events: null, distinctId: null, customerIds: null, start: null, end: null },
  ...{ sort: 'timestamp', newestFirst: true },
}

test('lists and slots are read by the index that has their order, in tables that nobody has analysed', async () => {
  await ensurePartitions(pool)
  await keepUnanalysed(pool)
  const scope = await testScope(pool)
  await fill(scope)
  const [row] = await pool.query<{ id: string }>('select customer_id as id from event limit 1')
  const customerId = must(row, 'it was filled').id
  const list = (query: Partial<ListQuery>) => async (on: Pool) => {
    const page = createListEvents({ pool: on, cursors: createCursors(Buffer.alloc(32)) })
    const { nextCursor } = await page(scope, { ...all, ...query }, { limit: 5, cursor: null })
    await page(scope, { ...all, ...query }, { limit: 5, cursor: must(nextCursor, 'there is more') })
  }
  const count = async (on: Pool) => {
    const { engine } = await createAnalytics({ pool: on, lookupPool: on, atOnce: 1, clock, segments }).query(scope, {
      ...{ type: 'trend', appId: null, range: { start: noon - dayMs, end: noon, zone: 'UTC' }, interval: 'hour' },
      ...{ filters: [], groupBy: [], series: [{ event: 'event_1', measure: { type: 'count' }, filters: [] }] },
    })
    assert.equal(engine, 'rollup')
  }
  const read: [what: string, settings: Record<string, string>, index: RegExp, (on: Pool) => Promise<unknown>][] = [
    ['of a customer', listSettings, /^event_.*_customer_id_ts_pos_idx$/, list({ customerIds: [customerId] })],
    ['oldest first', listSettings, /_customer_id_ts_pos_idx$/, list({ customerIds: [customerId], newestFirst: false })],
    ['of a name', listSettings, /^event_.*_scope_id_event_ts_pos_customer_id_idx$/, list({ events: ['event_1'] })],
    ['of all', listSettings, /^event_.*_scope_id_ts_pos_idx$/, list({})],
    ['by position', listSettings, /^event_.*_pkey$/, list({ sort: 'position' })],
    ['slots', listSettings, /^event_rollup_pkey$/, count],
  ]
  for (const [what, settings, index, ask] of read) {
    await using on = new Pool(url, { name: 'test plans', max: 1, pipeline: true, settings })
    await ask(on)
    const scans = [...(await plansOn(on))].flatMap(([name, plan]) =>
      [...nodesOf(plan)].filter(({ 'Node Type': type }) => /Scan/.test(type)).map((node) => ({ name, node })),
    )
    const wanted = scans.filter(({ node }) => /^event_(\d+|rollup)$/.test(node['Relation Name'] ?? ''))
    assert.ok(wanted.length > 0, `${what}: nothing was read`)
    for (const { name, node } of wanted) {
      const said = `${what}: ${name}: ${node['Node Type']} by ${node['Index Name']} ${JSON.stringify(node['Index Cond'])}`
      assert.match(node['Node Type'], what === 'slots' ? /Index/ : /^Index/, said)
      assert.match(node['Index Name'] ?? '', index, said)
      assert.doesNotMatch(node['Index Cond'] ?? '', /^\(scope_id = [^()]*\)$/, said)
    }
  }
})
