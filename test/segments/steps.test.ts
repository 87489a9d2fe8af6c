import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
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
import type { MembershipConsumer } from '../../src/customers/segments/lane.ts'
import { mark } from '../../src/customers/segments/state-store.ts'
import { takeStep } from '../../src/customers/segments/steps.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { turnpike } from '../cli/command.ts'
import { segmentLane } from './world.ts'

const lane = await segmentLane()
after(() => lane[Symbol.asyncDispose]())
const { pool, clock, heard, log } = lane

test('a step that is killed has not happened, and the next one goes on where it was', async () => {
  const scope = await lane.scope()
  await lane.send(
    scope,
    Array.from({ length: 600 }, (_, i) => ({ distinctId: `u${i}` })),
  )
  await lane.define(scope, { performed: { event: 'e' } })
  const killed = async () => {
    throw new Error('Connection terminated unexpectedly')
  }
  const told = () => heard.filter(({ scopeId }) => scopeId === scope.scopeId).length
  for (;;) {
    // Every step is tried by a worker that dies at its end, and then by one that lives.
    await takeStep({ pool, log, consumers: [killed] }, scope, clock.at).catch(() => {})
    const kind = await takeStep(
      {
        ...{ pool, log },
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
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 1000, keptDays: 400 }))?.wrong, [])
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
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 10, keptDays: 400 }))?.wrong, [])
})

test('definitions that are changed while they are being computed end up right, as do customers born meanwhile', async () => {
  const scope = await lane.scope()
  await lane.send(
    scope,
    Array.from({ length: 700 }, (_, i) => ({ distinctId: `u${i}`, event: i % 3 ? 'x' : 'y' })),
  )
  const inner = await lane.define(scope, { performed: { event: 'x' } })
  const outer = await lane.define(scope, { segment: { id: inner, is: false } })
  const step = () => takeStep({ pool, log, consumers: [] }, scope, clock.at)
  await step()
  await lane.send(
    scope,
    Array.from({ length: 20 }, (_, i) => ({ distinctId: `new${i}`, event: i % 2 ? 'x' : 'y' })),
  )
  await step()
  const definition = { version: 1, where: { performed: { event: 'y' } } }
  await pool.transaction((tx) => updateSegment(tx, [scope], inner, { definition, keptDays: 400 }))
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
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 1000, keptDays: 400 }))?.wrong, [])
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

test('a definition that cannot be computed fails, the one before goes on serving, and others are computed', async () => {
  const scope = await lane.scope()
  const id = await lane.define(scope, { performed: { event: 'e' } })
  const asking = await lane.define(scope, { segment: { id, is: true } })
  await lane.settle(scope)
  const definition = { version: 1, where: { performed: { event: 'f' } } }
  await pool.transaction((tx) => updateSegment(tx, [scope], id, { definition, keptDays: 400 }))
  const other = await lane.define(scope, { performed: { event: 'e' } })
  await pool.query(
    `update segment_version
     set definition = '{"version": 9}'
     where scope_id = $1
       and state = 'pending'
       and segment_id = (select id from segment where public_id = $2)`,
    [scope.scopeId, id],
  )
  await lane.send(scope, [{ distinctId: 'a' }])
  await lane.settle(scope)
  const shown = async () =>
    Promise.all(
      [id, asking, other].map(async (one) => {
        const { segment } = await getSegment(pool, [scope], one)
        return [segment.status, segment.memberCount]
      }),
    )
  assert.deepEqual(await shown(), [
    ['failed', 1],
    ['ready', 1],
    ['ready', 1],
  ])
  await pool.transaction((tx) => updateSegment(tx, [scope], id, { definition, keptDays: 400 }))
  await lane.settle(scope)
  assert.deepEqual(await shown(), [
    ['ready', 0],
    ['ready', 0],
    ['ready', 1],
  ])
})

/** Whom segments could not look at. */
async function asideIn(scope: Scope): Promise<{ customer_id: string; tries: number; error: string }[]> {
  return pool.query('select customer_id, tries, error from segment_aside where scope_id = $1', [scope.scopeId])
}

test('a customer that cannot be read is set aside: events, timers and definitions go on for everybody else', async () => {
  const scope = await lane.scope()
  const known = await lane.define(scope, { performed: { event: 'e', within: { value: 1, unit: 'hour' } } })
  await lane.settle(scope)
  await lane.send(
    scope,
    Array.from({ length: 20 }, (_, i) => ({ distinctId: `u${i}` })),
  )
  const { id: damaged } = await lane.customer(scope, 'u7')
  const before = await pool.query<{ state: string }>('select state from segment_customer where customer_id = $1', [
    damaged,
  ])
  const write = (state: string | undefined) =>
    pool.query('update segment_customer set state = $2 where customer_id = $1', [damaged, state])
  await write('no state')
  const added = await lane.define(scope, { performed: { event: 'e' } })
  await lane.settle(scope)
  await lane.send(scope, [{ distinctId: 'u7', event: 'f' }, { distinctId: 'u7' }, { distinctId: 'u8' }])
  const shown = async (one: string) => {
    const { segment } = await getSegment(pool, [scope], one)
    return [segment.status, segment.memberCount]
  }
  assert.deepEqual(await shown(added), ['ready', 19])
  assert.deepEqual(
    (await asideIn(scope)).map((row) => [row.customer_id, row.tries]),
    [[damaged, 1]],
  )
  clock.at += 1000
  await lane.settle(scope)
  const [again] = await asideIn(scope)
  assert.equal(again?.tries, 2)
  assert.match(again?.error ?? '', /SyntaxError/)
  clock.at += 3 * 3600_000
  await lane.settle(scope)
  assert.deepEqual(await shown(known), ['ready', 1], 'timers rang for the others')
  await write(before[0]?.state)
  clock.at += 3600_000
  await lane.settle(scope)
  assert.deepEqual(await asideIn(scope), [])
  assert.deepEqual(await shown(known), ['ready', 0])
  assert.deepEqual(await shown(added), ['ready', 20])
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 100, keptDays: 400 }))?.wrong, [])
})

test('a timer of a customer that is no more rings once', async () => {
  const scope = await lane.scope()
  await lane.define(scope, { performed: { event: 'e' } })
  await lane.settle(scope)
  await pool.transaction((tx) => mark(tx, scope, [randomUUID()], 'event'))
  const kinds = []
  for (let n = 0; n < 3; n++) kinds.push(await takeStep({ pool, log, consumers: [] }, scope, clock.at))
  assert.deepEqual(kinds, ['timers', null, null])
})

test('a customer on whom a consumer fails is set aside, and told of when the consumer is well', async () => {
  const scope = await lane.scope()
  await lane.send(
    scope,
    Array.from({ length: 300 }, (_, i) => ({ distinctId: `u${i}` })),
  )
  const segment = await lane.define(scope, { performed: { event: 'e' } })
  const { id: failing } = await lane.customer(scope, 'u7')
  const told: string[] = []
  let isWell = false
  const consumer: MembershipConsumer = async (_tx, _scope, _slice, transitions) => {
    if (!isWell && transitions.some(({ customerId }) => customerId === failing)) throw new Error('no')
    told.push(...transitions.map(({ customerId, edge }) => `${edge} ${customerId}`))
  }
  const settle = async () => {
    while ((await takeStep({ pool, log, consumers: [consumer] }, scope, clock.at)) !== null);
  }
  await settle()
  const { segment: served } = await getSegment(pool, [scope], segment)
  assert.deepEqual([served.status, served.memberCount], ['ready', 300])
  assert.equal(new Set(told).size, 299)
  assert.deepEqual(
    (await asideIn(scope)).map((row) => row.customer_id),
    [failing],
  )
  isWell = true
  clock.at += 10_000
  await settle()
  assert.deepEqual(told.slice(299), [`entered ${failing}`])
  assert.deepEqual(await asideIn(scope), [])
})

test('a customer with more events than one step may count is counted over several, also while more happens', async () => {
  const scope = await lane.scope()
  for (const distinctId of ['a', 'b']) {
    await lane.send(
      scope,
      Array.from({ length: 25 }, (_, i) => ({ distinctId, at: clock.at - (i % 5) * 3600_000 })),
    )
  }
  const budget = { events: 10, ms: 1000 }
  const step = () => takeStep({ pool, log, consumers: [], budget }, scope, clock.at)
  const ids = []
  for (const value of [54, 55, 56]) {
    ids.push(await lane.define(scope, { performed: { event: 'e', count: { op: 'gte', value } } }, `${value}`))
  }
  assert.equal(await step(), 'walk')
  assert.equal(await step(), 'timers')
  // Before what was counted, in the middle of it, and behind it.
  for (const ago of [9, 2, 0]) {
    await lane.send(
      scope,
      Array.from({ length: 10 }, () => ({ distinctId: 'a', at: clock.at - ago * 3600_000 })),
    )
  }
  let steps = 2
  for (; (await step()) !== null; steps++) assert.ok(steps < 50)
  assert.ok(steps > 8, `${steps}`)
  const counts = await Promise.all(ids.map(async (id) => (await getSegment(pool, [scope], id)).segment.memberCount))
  assert.deepEqual(counts, [1, 1, 0])
  await pool.query(`update segment_timer set due_at = '-infinity', cause = 'recount' where scope_id = $1`, [
    scope.scopeId,
  ])
  const { id: a } = await lane.customer(scope, 'a')
  await pool.transaction((tx) => mark(tx, scope, [a], 'recount'))
  for (steps = 0; (await step()) !== null; steps++) assert.ok(steps < 50)
  assert.ok(steps > 5, `${steps}`)
  assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 10, keptDays: 400 }))?.wrong, [])
})
