import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope, writeSlice } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { type JsonObject, StaleSlice } from '../events/index.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import { createProjection } from './projection.ts'
import { byDistinctId } from './read.ts'
import { resolveOrCreate } from './resolve.ts'

const database = await testDatabase()
const { pool } = database
after(() => database[Symbol.asyncDispose]())

const tombstoneKey = Buffer.alloc(32, 7)
const projection = createProjection({ tombstoneKey, participants: [] })
const now = Date.UTC(2026, 5, 1, 0, 0, 0, 1)

function resolve(scope: Scope, distinctId: string, properties?: JsonObject) {
  return pool.transaction((tx) =>
    resolveOrCreate(tx, scope, distinctId, { tombstoneKey, now, ...(properties && { properties }) }),
  )
}

test('an unknown id gets the customer that its first event would have given it', async () => {
  const scope = await testScope(pool)
  const { customer, created } = await resolve(scope, 'u')
  assert.equal(created, true)
  assert.deepEqual([customer.id, customer.createdAt, customer.identified], [customerIdFor(scope, 'u', 0), now, false])
  assert.deepEqual(customer.distinctIds, [{ distinctId: 'u', identified: false, firstSeenAt: now }])
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { a: 1 } })])
  assert.deepEqual((await byDistinctId(pool, scope, 'u'))?.id, customer.id)
})

test('a known id gives its customer, the survivor of merges', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('anon'), loggedEvent('u'), identifyEvent('u', 'anon')])
  const { customer, created } = await resolve(scope, 'anon')
  assert.deepEqual([customer.id, created], [customerIdFor(scope, 'u', 0), false])
})

test('properties are set on a new and on a known customer, each with a position in the lane', async () => {
  const scope = await testScope(pool)
  const first = await resolve(scope, 'u', { a: 1, ['x'.repeat(201)]: 1 })
  const second = await resolve(scope, 'u', { b: 2 })
  assert.deepEqual([first.created, first.customer.properties], [true, { a: 1 }])
  assert.deepEqual(
    first.warnings.map(({ code }) => code),
    ['property_key_too_long'],
  )
  assert.deepEqual([second.created, second.customer.properties], [false, { a: 1, b: 2 }])
  const commands = await pool.query('select pos, kind from command where scope_id = $1 order by pos', [scope.scopeId])
  assert.deepEqual(commands, [
    { pos: 1n, kind: 'resolve_customer' },
    { pos: 2n, kind: 'resolve_customer' },
  ])
})

test('a deleted id is 410, with properties too, and nothing is left of the try', async () => {
  const scope = await testScope(pool)
  await pool.query(
    `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to('gone', 'UTF8')))`,
    [scope.scopeId, tombstoneKey],
  )
  const deleted = (error: unknown) => error instanceof Refusal && error.code === 'customer_deleted'
  await assert.rejects(resolve(scope, 'gone'), deleted)
  await assert.rejects(resolve(scope, 'gone', { a: 1 }), deleted)
  assert.deepEqual(await pool.query('select pos from command where scope_id = $1', [scope.scopeId]), [])
})

test('many callers at once make one customer', async () => {
  const scope = await testScope(pool)
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, i) => resolve(scope, 'u', i % 2 ? { [`k${i}`]: i } : undefined)),
  )
  assert.equal(results.filter(({ created }) => created).length, 1)
  const customer = await byDistinctId(pool, scope, 'u')
  assert.deepEqual(customer?.properties, { k1: 1, k3: 3, k5: 5, k7: 7 })
  assert.equal(new Set(results.map((result) => result.customer.id)).size, 1)
})

test('a customer made between reading and writing a slice makes it stale', async () => {
  const scope = await testScope(pool)
  const events = [loggedEvent('u', { $set: { a: 1 } })]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  await resolve(scope, 'u')
  await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  await runSlice(pool, scope, projection, events)
  assert.deepEqual((await byDistinctId(pool, scope, 'u'))?.properties, { a: 1 })
})

test('an id that the lane attaches to somebody else meanwhile leaves no customer without a name', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u')])
  const events = [identifyEvent('u', 'anon')]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  const writing = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  const lane = pool.transaction(async (tx) => {
    await projection.write(tx, scope, decision, [2n])
    written.resolve()
    await writing.promise
  })
  await written.promise
  const resolving = resolve(scope, 'anon')
  await waiting()
  writing.resolve()
  await lane
  const { customer, created } = await resolving
  assert.deepEqual([customer.id, created], [customerIdFor(scope, 'u', 0), false])
  const rows = await pool.query('select id from customer where scope_id = $1', [scope.scopeId])
  assert.deepEqual(rows, [{ id: customer.id }])
})

/** Until a transaction of this database waits for another one. */
async function waiting(): Promise<void> {
  for (let found = 0n; found === 0n; ) {
    const [row] = await pool.query<{ waiting: bigint }>(
      `select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    found = row?.waiting ?? 0n
  }
}

test('equal ids in two scopes are two customers', async () => {
  const [live, sandbox] = [await testScope(pool), await testScope(pool, 'test')]
  const ids = [await resolve(live, 'u', { a: 1 }), await resolve(sandbox, 'u')].map(({ customer }) => customer.id)
  assert.notEqual(ids[0], ids[1])
  assert.deepEqual((await byDistinctId(pool, sandbox, 'u'))?.properties, {})
})
