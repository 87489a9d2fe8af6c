import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  auditSegments,
  getSegment,
  mergeCustomers,
  segmentEraser,
  segmentParticipant,
  splitMerge,
  updateSegment,
} from '../../src/customers/index.ts'

import { takeStep } from '../../src/customers/segments/steps.ts'
import { giveUpPending } from '../../src/customers/segments/steps-store.ts'
import { turnpike } from '../cli/command.ts'
import { segmentLane } from './world.ts'

const lane = await segmentLane()
after(() => lane[Symbol.asyncDispose]())
const { pool, clock, heard } = lane

test('a step that is killed has not happened, and the next one goes on where it was', async () => {
  const scope = await lane.scope()
  await lane.send(
    scope,
    Array.from({ length: 600 }, (_, i) => ({ distinctId: `u${i}` })),
  )
  await lane.define(scope, { performed: { event: 'e' } })
  const killed = async () => {
    throw new Error('killed')
  }
  const told = () => heard.filter(({ scopeId }) => scopeId === scope.scopeId).length
  for (;;) {
    // Every step is tried by a worker that dies at its end, and then by one that lives.
    await takeStep({ pool, consumers: [killed] }, scope, clock.at).catch(() => {})
    const kind = await takeStep(
      {
        pool,
        consumers: [
          async (_tx, { scopeId }, _slice, transitions) =>
            void heard.push(...transitions.map((one) => ({ ...one, scopeId }))),
        ],
      },
      scope,
      clock.at,
    )
    if (kind === null) break
  }
  assert.equal(told(), 600)
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 1000 }))?.wrong, [])
})

test('a merge taken back gives each customer what it did itself', async () => {
  const scope = await lane.scope()
  await lane.define(scope, { performed: { event: 'e', count: { op: 'gte', value: 3 } } })
  await lane.settle(scope)
  await lane.send(scope, [{ distinctId: 'a' }, { distinctId: 'a' }, { distinctId: 'b' }])
  const [a, b] = [await lane.customer(scope, 'a'), await lane.customer(scope, 'b')]
  const services = { tombstoneKey: lane.tombstoneKey, participants: [segmentParticipant] }
  const command = { customerId: a.id, sourceDistinctId: 'b', force: false, now: clock.at }
  const { merge } = await pool.transaction((tx) => mergeCustomers(tx, scope, command, services))
  await lane.settle(scope)
  const edges = () =>
    heard.filter(({ scopeId }) => scopeId === scope.scopeId).map(({ edge, customerId }) => [edge, customerId])
  assert.deepEqual(edges(), [['entered', a.id]])
  await pool.transaction((tx) => splitMerge(tx, scope, { customerId: a.id, mergeId: merge.id }, services))
  await lane.settle(scope)
  assert.deepEqual(edges(), [
    ['entered', a.id],
    ['left', a.id],
  ])
  await lane.send(scope, [{ distinctId: 'b' }, { distinctId: 'b' }])
  assert.deepEqual(edges().at(-1), ['entered', b.id])
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 10 }))?.wrong, [])
})

test('definitions that are changed while they are being computed end up right, as do customers born meanwhile', async () => {
  const scope = await lane.scope()
  await lane.send(
    scope,
    Array.from({ length: 700 }, (_, i) => ({ distinctId: `u${i}`, event: i % 3 ? 'x' : 'y' })),
  )
  const inner = await lane.define(scope, { performed: { event: 'x' } })
  const outer = await lane.define(scope, { segment: { id: inner, is: false } })
  const step = () => takeStep({ pool, consumers: [] }, scope, clock.at)
  await step()
  await lane.send(
    scope,
    Array.from({ length: 20 }, (_, i) => ({ distinctId: `new${i}`, event: i % 2 ? 'x' : 'y' })),
  )
  await step()
  const definition = { version: 1, where: { performed: { event: 'y' } } }
  await pool.transaction((tx) => updateSegment(tx, [scope], inner, { definition }))
  await step()
  await lane.send(scope, [
    { distinctId: 'u1', event: 'y' },
    { distinctId: 'u0', event: 'x' },
  ])
  await lane.settle(scope)
  const rows = await pool.query<{ public_id: string; member_count: bigint; real: bigint }>(
    `select s.public_id, v.member_count, (select count(*) from membership where version_id = v.id) as real
     from segment_version v
     join segment s on s.id = v.segment_id
     where v.scope_id = $1
     order by s.id`,
    [scope.scopeId],
  )
  const members = 234 + 10 + 1
  assert.deepEqual(
    rows.map((row) => [row.public_id, Number(row.member_count), Number(row.real)]),
    [
      [inner, members, members],
      [outer, 720 - members, 720 - members],
    ],
  )
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 1000 }))?.wrong, [])
})

test('of a deleted customer nothing is kept', async () => {
  const scope = await lane.scope()
  await lane.define(scope, { performed: { event: 'e', within: { value: 1, unit: 'day' } } })
  await lane.settle(scope)
  await lane.send(scope, [{ distinctId: 'a' }, { distinctId: 'b' }])
  const { id } = await lane.customer(scope, 'a')
  const whom = { customerIds: [id], distinctIds: ['a'], mentions: [] }
  assert.equal(await pool.transaction((tx) => segmentEraser.erase(tx, scope, whom)), true)
  for (const table of ['segment_customer', 'segment_timer', 'membership', 'membership_change']) {
    const rows = await pool.query<{ customer_id: string }>(`select customer_id from ${table} where scope_id = $1`, [
      scope.scopeId,
    ])
    assert.ok(rows.length > 0 && rows.every((row) => row.customer_id !== id), table)
  }
})

test('turnpike segments audit puts right what it finds, and ends with 0 only when nothing was wrong', async () => {
  const scope = await lane.scope()
  await lane.define(scope, { performed: { event: 'e' } })
  await lane.settle(scope)
  await lane.send(scope, [{ distinctId: 'a' }])
  const { id } = await lane.customer(scope, 'a')
  await pool.query('delete from segment_customer where scope_id = $1', [scope.scopeId])
  const audit = () =>
    turnpike(['segments', 'audit'], { DATABASE_URL: lane.url, MASTER_KEY: Buffer.alloc(32).toString('base64') })
  const found = await audit()
  assert.match(found.out, new RegExp(`^repaired: lane=${scope.scopeId} customer=${id}$`, 'm'))
  assert.match(found.out, /^segments: DIFFERENT checked=[0-9]+ repaired=[0-9]+$/m)
  assert.equal(found.code, 1, found.err)
  const again = await audit()
  assert.match(again.out, /^segments: OK checked=[0-9]+ repaired=0\n$/)
  assert.equal(again.code, 0)
})

test('a definition that cannot be computed is given up, and the one before goes on serving', async () => {
  const scope = await lane.scope()
  const id = await lane.define(scope, { performed: { event: 'e' } })
  await lane.settle(scope)
  const definition = { version: 1, where: { performed: { event: 'f' } } }
  await pool.transaction((tx) => updateSegment(tx, [scope], id, { definition }))
  await pool.transaction((tx) => giveUpPending(tx, scope))
  await lane.send(scope, [{ distinctId: 'a' }])
  const { segment } = await getSegment(pool, [scope], id)
  assert.deepEqual([segment.status, segment.memberCount], ['failed', 1])
  await pool.transaction((tx) => updateSegment(tx, [scope], id, { definition }))
  await lane.settle(scope)
  const { segment: after } = await getSegment(pool, [scope], id)
  assert.deepEqual([after.status, after.memberCount], ['ready', 0])
})
