import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import { createProjection } from './projection.ts'
import { byDistinctId, getCustomer, listCustomers, listMerges } from './read.ts'
import type { CustomerCursor } from './types.ts'

const database = await testDatabase()
const { pool } = database
after(() => database[Symbol.asyncDispose]())

const projection = createProjection({ tombstoneKey: Buffer.alloc(32), participants: [] })
const run = (scope: Scope, ...events: Parameters<typeof runSlice>[3]) => runSlice(pool, scope, projection, events)

/** The distinct ids of all pages, one array for each. */
async function pages(scope: Scope, limit: number): Promise<string[][]> {
  const all: string[][] = []
  let before: CustomerCursor | null = null
  do {
    const page = await listCustomers(pool, scope, { limit, before })
    all.push(page.map(({ distinctIds }) => distinctIds[0]?.distinctId ?? ''))
    before = page.at(-1) ?? null
  } while (before !== null)
  return all
}

test('customers are listed newest first, pages join without gap or overlap, also among equal instants', async () => {
  const [scope, other] = [await testScope(pool), await testScope(pool, 'test')]
  await run(other, loggedEvent('elsewhere'))
  const old = [loggedEvent('first', {}, { at: -62_000_000_000_001 }), loggedEvent('early', {}, { at: -1 })]
  await run(scope, ...old, ...['a', 'b', 'c', 'd', 'e'].map((id) => loggedEvent(id)))
  const found = await pages(scope, 2)
  assert.deepEqual(
    found.map((page) => page.length),
    [2, 2, 2, 1, 0],
  )
  assert.deepEqual(found.flat().slice(0, 5).toSorted(), ['a', 'b', 'c', 'd', 'e'])
  assert.deepEqual(found.flat().slice(5), ['early', 'first'])
})

test('merged customers are not listed', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('anon', {}, { at: 1 }), loggedEvent('u', {}, { at: 2 }), identifyEvent('u', 'anon'))
  const [customer, ...others] = await listCustomers(pool, scope, { limit: 10, before: null })
  assert.deepEqual([customer?.id, customer?.createdAt, others], [customerIdFor(scope, 'u', 0), 1, []])
})

test('a customer is found by each of its distinct ids and by the ids of all that were merged into it', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('anon1'), loggedEvent('anon2'), loggedEvent('stranger'))
  await run(scope, identifyEvent('u', 'anon1'), identifyEvent('u', 'anon2'), identifyEvent('u', 'new'))
  const customer = await getCustomer(pool, scope, customerIdFor(scope, 'u', 0))
  assert.equal(customer.distinctIds.length, 4)
  for (const id of ['u', 'anon1', 'anon2', 'new']) assert.deepEqual(await byDistinctId(pool, scope, id), customer)
  for (const id of ['anon1', 'anon2']) {
    assert.deepEqual(await getCustomer(pool, scope, customerIdFor(scope, id, 0)), customer)
  }
})

test('the survivor of a chain of merges is found from its far end', async () => {
  const scope = await testScope(pool)
  const ids = Array.from({ length: 30 }, (_, i) => `u${i}`)
  await run(scope, ...ids.map((id) => loggedEvent(id)))
  for (const [i, id] of ids.entries()) {
    const next = ids[i + 1]
    if (next === undefined) break
    await pool.query('update customer set merged_into = $3 where scope_id = $1 and id = $2', [
      scope.scopeId,
      customerIdFor(scope, id, 0),
      customerIdFor(scope, next, 0),
    ])
  }
  assert.equal((await getCustomer(pool, scope, customerIdFor(scope, 'u0', 0))).id, customerIdFor(scope, 'u29', 0))
})

test('what is not in the scope is not there', async () => {
  const [scope, other] = [await testScope(pool), await testScope(pool)]
  await run(other, loggedEvent('u'))
  const id = customerIdFor(other, 'u', 0)
  const notFound = (error: unknown) => error instanceof Refusal && error.code === 'not_found'
  await assert.rejects(getCustomer(pool, scope, id), notFound)
  assert.equal(await byDistinctId(pool, scope, 'u'), null)
  assert.deepEqual(await listMerges(pool, scope, id, { limit: 10, before: null }), [])
})

test('merges are listed newest first, with those of all that went into the customer, in pages', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('anon'), identifyEvent('anon', 'anon'), loggedEvent('u'), loggedEvent('other'))
  await run(scope, identifyEvent('u', 'anon'), identifyEvent('u', 'anon'), identifyEvent('other', 'u'))
  const list = (before: bigint | null, limit = 10) =>
    listMerges(pool, scope, customerIdFor(scope, 'u', 0), { limit, before })
  const merges = await list(null)
  assert.deepEqual(
    merges.map(({ status, reason, sourceDistinctId, targetDistinctId, position }) => [
      ...[status, reason, sourceDistinctId, targetDistinctId, position],
    ]),
    [
      ['merged', null, 'anon', 'u', 5n],
      ['refused', 'same_id', 'anon', 'anon', 2n],
    ],
  )
  const [first] = await list(null, 1)
  assert.deepEqual(await list(first?.id ?? null), merges.slice(1))
  const [refused] = await listMerges(pool, scope, customerIdFor(scope, 'other', 0), { limit: 10, before: null })
  assert.deepEqual([refused?.reason, refused?.sourceCustomerId], ['source_identified', customerIdFor(scope, 'u', 0)])
})
