import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope, writeSlice } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { StaleSlice } from '../events/index.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import { createProjection } from './projection.ts'
import { byDistinctId, getCustomer, listMerges } from './read.ts'
import type { MergeParticipant } from './types.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

const tombstoneKey = Buffer.from('0123456789abcdef0123456789abcdef')
const witness: MergeParticipant = {
  name: 'witness',
  merge: async (_tx, _scope, merges) => merges.map(({ sourceCustomerId }) => ({ from: sourceCustomerId })),
  split: async () => {},
}
const projection = createProjection({ tombstoneKey, participants: [witness] })
const run = (scope: Scope, ...events: Parameters<typeof runSlice>[3]) => runSlice(pool, scope, projection, events)

async function propertiesOf(scope: Scope, distinctId: string): Promise<unknown> {
  return (await byDistinctId(pool, scope, distinctId))?.properties
}

async function bury(scope: Scope, distinctId: string): Promise<void> {
  await pool.query(
    `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to($3, 'UTF8')))`,
    [scope.scopeId, tombstoneKey, distinctId],
  )
}

/** What a command does to the lane: it takes a position. */
async function takePosition(scope: Scope): Promise<void> {
  await pool.query('update lane set pos = pos + 1 where id = $1', [scope.scopeId])
}

test('a slice creates customers and applies directives', async () => {
  const scope = await testScope(pool)
  await run(
    scope,
    loggedEvent('u', { $set: { plan: 'pro', 'quoted"\\': 'ü🙂' } }, { at: Date.UTC(2025, 4, 6, 7, 8, 9, 10) }),
    loggedEvent('u', { $increment: { opens: 2 } }),
    loggedEvent('v'),
  )
  const u = await byDistinctId(pool, scope, 'u')
  assert.deepEqual(u, {
    id: customerIdFor(scope, 'u', 0),
    distinctIds: [{ distinctId: 'u', identified: false, firstSeenAt: Date.UTC(2025, 4, 6, 7, 8, 9, 10) }],
    identified: false,
    properties: { plan: 'pro', 'quoted"\\': 'ü🙂', opens: 2 },
    createdAt: Date.UTC(2025, 4, 6, 7, 8, 9, 10),
    updatedAt: u?.updatedAt,
    version: 2,
    mergedInto: null,
  })
  assert.deepEqual(await propertiesOf(scope, 'v'), {})
})

test('a later slice starts from what the earlier one wrote', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u', { $set: JSON.parse('{"__proto__":{"a":1},"gone":1,"n":0.5}') as object as never }))
  await run(scope, loggedEvent('u', { $increment: { n: 1 }, $unset: ['gone'], $set_once: { n: 9, new: null } }))
  const properties = await propertiesOf(scope, 'u')
  assert.equal(JSON.stringify(properties), '{"n":1.5,"new":null,"__proto__":{"a":1}}')
})

test('dates from year 1 on are kept to the millisecond', async () => {
  const scope = await testScope(pool)
  const instants = [-62135596799999, -1, 0, 1, 1_790_000_000_001]
  await run(scope, ...instants.map((at, i) => loggedEvent(`u${i}`, {}, { at })))
  const customers = await Promise.all(instants.map((_, i) => byDistinctId(pool, scope, `u${i}`)))
  assert.deepEqual(
    customers.map((customer) => customer?.createdAt),
    instants,
  )
})

test('unchanged values write no row', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u', { $set: { a: { b: [1] } } }))
  const before = await byDistinctId(pool, scope, 'u')
  const decision = await run(scope, loggedEvent('u', { $set: { a: { b: [1] } }, $set_once: { a: 2 } }))
  assert.deepEqual([decision.updates, decision.births], [[], []])
  assert.deepEqual(await byDistinctId(pool, scope, 'u'), before)
})

test('a merge moves ids and properties, hands the pair on and keeps everything in the journal', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('anon', { $set: { a: 1, b: 1 } }), loggedEvent('u', { $set: { b: 2 } }))
  await run(scope, identifyEvent('u', 'anon', { $set: { c: 3 } }))
  const [sourceId, targetId] = [customerIdFor(scope, 'anon', 0), customerIdFor(scope, 'u', 0)]
  const survivor = await getCustomer(pool, scope, sourceId)
  assert.deepEqual(survivor, await byDistinctId(pool, scope, 'anon'))
  assert.deepEqual([survivor.id, survivor.properties, survivor.version], [targetId, { a: 1, b: 2, c: 3 }, 2])
  assert.deepEqual(
    survivor.distinctIds.map(({ distinctId, identified }) => [distinctId, identified]),
    [
      ['anon', false],
      ['u', true],
    ],
  )
  const [merge] = await listMerges(pool, scope, targetId, { limit: 10, before: null })
  assert.deepEqual(
    [merge?.status, merge?.customerId, merge?.sourceCustomerId, merge?.position],
    ['merged', targetId, sourceId, 3n],
  )
  const [row] = await pool.query<{ moved: Record<string, never> }>(
    'select moved from merge_journal where scope_id = $1 and id = $2',
    [scope.scopeId, merge?.id],
  )
  assert.deepEqual(row?.moved.elsewhere, { witness: { from: sourceId } })
  assert.deepEqual(row?.moved.distinct_ids, ['anon'])
})

test('a refused merge is in the journal with its reason, whatever the client sent as id', async () => {
  const scope = await testScope(pool)
  await run(scope, identifyEvent('u', 'nul\0l'), loggedEvent('u', { event: '$identify', $anon_distinct_id: ['x'] }))
  const { id } = (await byDistinctId(pool, scope, 'u')) ?? assert.fail()
  const merges = await listMerges(pool, scope, id, { limit: 10, before: null })
  assert.deepEqual(
    merges.map(({ status, reason, sourceDistinctId }) => [status, reason, sourceDistinctId]),
    [
      ['refused', 'illegal_id', '["x"]'],
      ['refused', 'illegal_id', 'nul\ufffdl'],
    ],
  )
})

test('a merge knows all ids of a source that came from a split or a forced merge', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('anon'), loggedEvent('u'))
  const sourceId = customerIdFor(scope, 'anon', 0)
  await pool.query(
    `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)
     values ($1, 'other', $2, 0, now())`,
    [scope.scopeId, sourceId],
  )
  await pool.query('update customer set alias_count = 2 where scope_id = $1 and id = $2', [scope.scopeId, sourceId])
  await run(scope, identifyEvent('u', 'anon'))
  assert.equal((await byDistinctId(pool, scope, 'other'))?.id, customerIdFor(scope, 'u', 0))
})

test('an id that gave birth before and lost its customer is born in the next generation', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('x'))
  await pool.query(`update customer_alias set customer_id = $2 where scope_id = $1 and distinct_id = 'x'`, [
    scope.scopeId,
    customerIdFor(scope, 'u', 0),
  ])
  await pool.query(`delete from customer_alias where scope_id = $1 and distinct_id = 'u'`, [scope.scopeId])
  await run(scope, loggedEvent('u'))
  assert.equal((await byDistinctId(pool, scope, 'u'))?.id, customerIdFor(scope, 'u', 1))
})

test('events of a deleted id leave nothing', async () => {
  const scope = await testScope(pool)
  await bury(scope, 'gone')
  const decision = await run(scope, loggedEvent('gone', { $set: { a: 1 } }), identifyEvent('u', 'gone'))
  assert.deepEqual(decision.outcomes[0], { kind: 'dropped', reason: 'customer_deleted' })
  assert.equal(await byDistinctId(pool, scope, 'gone'), null)
  assert.equal((await byDistinctId(pool, scope, 'u'))?.identified, true)
})

test('equal ids in two environments are two customers', async () => {
  const [live, sandbox] = [await testScope(pool), await testScope(pool, 'test')]
  await bury(sandbox, 'gone')
  await run(live, loggedEvent('u', { $set: { a: 'live' } }), loggedEvent('gone'), identifyEvent('u', 'anon'))
  await run(sandbox, loggedEvent('u', { $set: { a: 'sandbox' } }), loggedEvent('anon'))
  assert.deepEqual(await propertiesOf(live, 'u'), { a: 'live' })
  assert.deepEqual(await propertiesOf(sandbox, 'u'), { a: 'sandbox' })
  assert.notEqual((await byDistinctId(pool, sandbox, 'anon'))?.id, (await byDistinctId(pool, sandbox, 'u'))?.id)
  assert.notEqual(await byDistinctId(pool, live, 'gone'), null)
})

test('a customer created meanwhile makes the slice stale; decided again it is right', async () => {
  const scope = await testScope(pool)
  const events = [loggedEvent('u', { $increment: { n: 1 } }), loggedEvent('v')]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  await run(scope, loggedEvent('u', { $increment: { n: 10 } }))
  await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  assert.equal(await byDistinctId(pool, scope, 'v'), null)
  await run(scope, ...events)
  assert.deepEqual(await propertiesOf(scope, 'u'), { n: 11 })
})

test('a customer changed meanwhile makes the slice stale, unless the slice only records an event for it', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u', { $set: { n: 1 } }), loggedEvent('v'))
  const meanwhile = async (...events: Parameters<typeof runSlice>[3]) => {
    const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
    await pool.query(`update customer set version = version + 1 where scope_id = $1 and id = $2`, [
      scope.scopeId,
      customerIdFor(scope, 'u', 0),
    ])
    await takePosition(scope)
    return writeSlice(pool, scope, projection, decision)
  }
  await assert.rejects(meanwhile(loggedEvent('u', { $increment: { n: 1 } })), StaleSlice)
  await assert.rejects(meanwhile(loggedEvent('u'), loggedEvent('u', { $unset: ['n'] })), StaleSlice)
  await meanwhile(loggedEvent('u'))
})

test('an identify whose other id is nobody’s leaves its known customer as it is', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'))
  await run(scope, identifyEvent('u', 'guest'))
  const [row] = await pool.query('select identified from customer where scope_id = $1 and id = $2', [
    scope.scopeId,
    customerIdFor(scope, 'u', 0),
  ])
  assert.deepEqual(row, { identified: false })
})

test('a row is written over the version that was decided on, or not at all', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u', { $set: { n: 1 } }))
  const events = [loggedEvent('u', { $increment: { n: 1 } })]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  await pool.query('update customer set version = version + 1 where scope_id = $1', [scope.scopeId])
  await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  assert.deepEqual(await propertiesOf(scope, 'u'), { n: 1 })
})

test('an id deleted or taken over meanwhile makes the slice stale', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v'), loggedEvent('w'))
  const stale = async (events: Parameters<typeof runSlice>[3], change: () => Promise<unknown>) => {
    const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
    await change()
    await takePosition(scope)
    await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  }
  await stale([loggedEvent('u')], () => bury(scope, 'u'))
  await stale([loggedEvent('v')], () =>
    pool.query(`update customer_alias set customer_id = $2 where scope_id = $1 and distinct_id = 'v'`, [
      scope.scopeId,
      customerIdFor(scope, 'w', 0),
    ]),
  )
  await stale([identifyEvent('w', 'new')], () => run(scope, loggedEvent('new')))
})

test('a command on somebody else leaves the slice as it is', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v'))
  const events = [loggedEvent('u', { $set: { a: 1 } })]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  await run(scope, loggedEvent('v', { $set: { a: 1 } }))
  await writeSlice(pool, scope, projection, decision)
  assert.deepEqual(await propertiesOf(scope, 'u'), { a: 1 })
})
