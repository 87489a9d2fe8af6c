import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { createSegmentConsumer } from '../../src/customers/segments/lane.ts'
import { segmentParticipant } from '../../src/customers/segments/participant.ts'
import { mark } from '../../src/customers/segments/state-store.ts'
import { takeStep } from '../../src/customers/segments/steps.ts'
import { Pool } from '../../src/db/pool.ts'
import { type LaneEvent, laneSettings } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { keepUnanalysed, nodesOf, plansOn } from '../harness/plans.ts'
import { segmentLane } from './world.ts'

const lane = await segmentLane()
after(() => lane[Symbol.asyncDispose]())
const { pool, url, clock, log } = lane
const rows = Number(process.env.PLAN_ROWS ?? 20_000)
const stores = ['customers/segments/state-store.ts', 'customers/segments/aside-store.ts']

/** By the names they are prepared under. */
function statementsOf(path: string): string[] {
  const text = readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8')
  return [...text.matchAll(/\bname: '(\w+)'/g)].map(([, name]) => name ?? '')
}

test('every statement of segments in the lane is a chain of index look-ups on large tables that nobody has analysed', async () => {
  await keepUnanalysed(pool)
  const scope = await lane.scope()
  await lane.define(scope, {
    performed: { event: 'e', count: { op: 'gte', value: 2 }, within: { value: 1, unit: 'day' } },
  })
  await lane.settle(scope)
  await lane.send(scope, [{ distinctId: 'a' }, { distinctId: 'b' }])
  const [a, b] = [await lane.customer(scope, 'a'), await lane.customer(scope, 'b')]
  const customers = `select $1::int, md5('c' || n)::uuid from generate_series(1, ${rows}) n`
  for (const [into, more] of [
    ['customer (scope_id, id, created_at)', ', now()'],
    ['segment_customer (scope_id, customer_id, state)', `, '1[null,[],[],[],[],[],null]'`],
    ['segment_timer (scope_id, customer_id, due_at)', `, now() + interval '1 year'`],
    ['membership (scope_id, customer_id, version_id, since, told)', ', 999, now(), true'],
  ] as const) {
    await pool.query(`insert into ${into} ${customers.replace('::uuid', `::uuid${more}`)}`, [scope.scopeId])
  }

  await using one = new Pool(url, { name: 'test plans', max: 1, settings: laneSettings })
  const consumer = createSegmentConsumer(clock, [], log)
  const event = (customerId: string, pos: bigint): LaneEvent => ({
    ...{ pos, uuid: crypto.randomUUID(), name: 'e', customerId, distinctId: 'a', appId: null, at: clock.at },
    ...{ receivedAt: clock.at, trust: 'device', live: true, recognised: true, originClaim: null },
    payload: {
      ...{ event: 'e', distinct_id: 'a', uuid: crypto.randomUUID(), timestamp: new Date(clock.at).toISOString() },
      ...{ properties: {}, trust: 'device' },
    },
  })
  const slice = [event(a.id, 1n), event(a.id, 2n)]
  await one.transaction((tx) => consumer(tx, scope, slice))
  clock.at += 3 * 86_400_000
  for (const id of [a.id, b.id]) await one.transaction((tx) => mark(tx, scope, [id], 'recount'))
  await one.query(`update segment_customer set state = 'none' where customer_id = $1`, [b.id])
  while ((await takeStep({ pool: one, consumers: [], log }, scope, clock.at)) !== null);
  await one.transaction((tx) =>
    segmentParticipant.merge(tx, scope, [
      { sourceCustomerId: '00000000-0000-8000-8000-000000000001', targetCustomerId: a.id, position: 3n },
    ]),
  )

  const plans = await plansOn(one)
  const wanted = stores.flatMap(statementsOf)
  assert.deepEqual(
    wanted.filter((name) => !plans.has(name)),
    [],
    'statements that were not reached',
  )
  for (const name of wanted) {
    for (const node of nodesOf(must(plans.get(name), 'it was reached'))) {
      const said = `${name}: ${node['Node Type']} on ${node['Relation Name']} ${JSON.stringify(node['Index Cond'])}`
      assert.doesNotMatch(node['Node Type'], /Seq Scan|Hash Join|Merge Join|Materialize/, said)
      if (!/Index/.test(node['Node Type'])) continue
      assert.match(node['Index Cond'] ?? '', /=/, said)
      // Of these a lane has one row, or not many.
      if (/segment_(set|version)/.test(node['Relation Name'] ?? '')) continue
      assert.doesNotMatch(node['Index Cond'] ?? '', /^\(scope_id = [^()]*\)$/, said)
    }
  }
})
