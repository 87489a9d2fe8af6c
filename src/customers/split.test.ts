import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { must } from '../kernel/assert.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import { createProjection } from './projection.ts'
import { byDistinctId, listMerges } from './read.ts'
import { splitMerge } from './split.ts'
import type { CustomerSplit, MergeParticipant } from './types.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

const splits: CustomerSplit[] = []
const witness: MergeParticipant = {
  name: 'witness',
  merge: async (_tx, _scope, merges) => merges.map(({ position }) => ({ moved_at: String(position) })),
  split: async (_tx, _scope, split) => void splits.push(split),
}
const services = { tombstoneKey: Buffer.alloc(32), participants: [witness] }
const projection = createProjection(services)
const run = (scope: Scope, ...events: Parameters<typeof runSlice>[3]) => runSlice(pool, scope, projection, events)

async function named(scope: Scope, distinctId: string) {
  return must(await byDistinctId(pool, scope, distinctId), 'the id names somebody')
}

/** Takes the newest merge of whoever has the id back. */
async function splitNewest(scope: Scope, distinctId: string) {
  const { id: customerId } = await named(scope, distinctId)
  const [merge] = await listMerges(pool, scope, customerId, { limit: 1, before: null })
  const mergeId = must(merge, 'there is one').id
  return pool.transaction((tx) => splitMerge(tx, scope, { customerId, mergeId }, services))
}

test('where the record went on as the target’s, the source is born again in the next generation with what it had', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('device', { $set: { a: 1, b: 1 } }))
  const before = await named(scope, 'device')
  await run(scope, identifyEvent('ada', 'device', { $set: { b: 2, c: 3 } }))
  assert.equal((await named(scope, 'ada')).id, before.id)
  const { merge } = await splitNewest(scope, 'ada')
  const [source, target] = [await named(scope, 'device'), await named(scope, 'ada')]
  assert.deepEqual([source.id, merge.sourceCustomerId], [customerIdFor(scope, 'device', 1), source.id])
  assert.deepEqual([source.properties, source.identified, source.createdAt], [{ a: 1, b: 1 }, false, before.createdAt])
  assert.deepEqual([target.id, target.properties, target.identified], [before.id, { b: 2, c: 3 }, true])
  const { mergedAt, ...told } = must(splits.at(-1), 'participants were told')
  assert.ok(mergedAt > 0)
  assert.deepEqual(told, {
    ...{ sourceCustomerId: source.id, targetCustomerId: target.id, position: 3n, how: 'rename', moved: null },
  })

  // Its next events are its own, and it may log in again.
  await run(scope, loggedEvent('device', { $set: { d: 4 } }), identifyEvent('ada', 'device'))
  assert.deepEqual((await named(scope, 'ada')).properties, { a: 1, b: 2, c: 3, d: 4 })
})

test('participants hear of a split what they said of the merge', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('device'), loggedEvent('ada'), identifyEvent('ada', 'device'))
  await splitNewest(scope, 'ada')
  assert.deepEqual([splits.at(-1)?.how, splits.at(-1)?.moved, splits.at(-1)?.position], ['join', { moved_at: '3' }, 4n])
  await run(scope, identifyEvent('ada', 'new'))
  await splitNewest(scope, 'ada')
  assert.deepEqual([splits.at(-1)?.how, splits.at(-1)?.moved], ['add', null])
})

test('a refusal is nothing to take back', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('ada'), identifyEvent('ada', 'null'))
  await assert.rejects(splitNewest(scope, 'ada'), (error) => error instanceof Refusal && error.code === 'conflict')
})

test('a source with ids of its own comes out with all of them', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('a'), identifyEvent('b', 'a'), loggedEvent('c'))
  await pool.query('update customer set identified = false where scope_id = $1', [scope.scopeId])
  await run(scope, identifyEvent('c', 'b'))
  assert.deepEqual(idsOf(await named(scope, 'a')), ['a', 'b', 'c'])
  await splitNewest(scope, 'c')
  assert.deepEqual([idsOf(await named(scope, 'a')), idsOf(await named(scope, 'c'))], [['a', 'b'], ['c']])
})

function idsOf({ distinctIds }: { distinctIds: { distinctId: string }[] }): string[] {
  return distinctIds.map(({ distinctId }) => distinctId).toSorted()
}
