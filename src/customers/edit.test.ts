import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope, writeSlice } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { StaleSlice } from '../events/index.ts'
import { must } from '../kernel/assert.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import type { PropertyEdit } from './directives.ts'
import { type CustomerEdit, patchMany, patchProperties } from './edit.ts'
import { createProjection } from './projection.ts'
import { byDistinctId } from './read.ts'

const database = await testDatabase()
const { pool } = database
after(() => database[Symbol.asyncDispose]())

const projection = createProjection({ tombstoneKey: Buffer.alloc(32), participants: [] })
const now = Date.UTC(2026, 5, 1)

function patch(scope: Scope, customerId: string, edit: PropertyEdit, at = now) {
  return pool.transaction((tx) => patchProperties(tx, scope, customerId, edit, at))
}

test('an edit applies the four directives by their rules and tells which keys it refused', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { a: 1, b: 'text', gone: true } })])
  const { customer, warnings } = await patch(scope, customerIdFor(scope, 'u', 0), {
    set: { new: null },
    set_once: { a: 9, once: 1 },
    increment: { a: 2, b: 1 },
    unset: ['gone', 'unknown'],
  })
  assert.deepEqual(customer.properties, { a: 3, b: 'text', new: null, once: 1 })
  assert.deepEqual(warnings, [{ code: 'increment_not_number', detail: 'b' }])
  assert.equal(customer.version, 2)
  assert.deepEqual(customer, await byDistinctId(pool, scope, 'u'))
})

test('an edit has a position in the lane and leaves a record there', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u')])
  const customerId = customerIdFor(scope, 'u', 0)
  await patch(scope, customerId, { set: { a: 1 } })
  const commands = await pool.query('select pos, kind, body from command where scope_id = $1', [scope.scopeId])
  assert.deepEqual(commands, [
    { pos: 2n, kind: 'patch_customer', body: { customer_id: customerId, set: { a: 1 }, at: now } },
  ])
})

test('an edit that changes nothing leaves the version', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { a: 1 } })])
  const { customer } = await patch(scope, customerIdFor(scope, 'u', 0), { set: { a: 1 }, set_once: { a: 2 } })
  assert.equal(customer.version, 1)
})

test('an edit of a merged customer goes to the survivor', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('anon'), loggedEvent('u'), identifyEvent('u', 'anon')])
  const { customer } = await patch(scope, customerIdFor(scope, 'anon', 0), { set: { a: 1 } })
  assert.deepEqual([customer.id, customer.properties], [customerIdFor(scope, 'u', 0), { a: 1 }])
})

test('an unknown customer, also one of another scope, is 404 and leaves no record', async () => {
  const [scope, other] = [await testScope(pool), await testScope(pool)]
  await runSlice(pool, other, projection, [loggedEvent('u')])
  const notFound = (error: unknown) => error instanceof Refusal && error.code === 'not_found'
  await assert.rejects(patch(scope, customerIdFor(other, 'u', 0), { set: { a: 1 } }), notFound)
  assert.deepEqual(await pool.query('select pos from command where scope_id = $1', [scope.scopeId]), [])
})

test('an import does not overwrite what an edit wrote later', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u')])
  await patch(scope, customerIdFor(scope, 'u', 0), { set: { plan: 'pro' } })
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { plan: 'old' } }, { at: now - 1, live: false })])
  assert.deepEqual((await byDistinctId(pool, scope, 'u'))?.properties, { plan: 'pro' })
})

test('an edit between reading and writing a slice makes it stale; decided again, both count', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { n: 1 } })])
  const events = [loggedEvent('u', { $increment: { n: 10 } })]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  await patch(scope, customerIdFor(scope, 'u', 0), { increment: { n: 100 } })
  await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  await runSlice(pool, scope, projection, events)
  assert.deepEqual((await byDistinctId(pool, scope, 'u'))?.properties, { n: 111 })
})

test('edits racing with the lane lose nothing', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u')])
  const customerId = customerIdFor(scope, 'u', 0)
  const lane = async () => {
    for (let i = 0; i < 20; i++) {
      const events = [loggedEvent('u', { $increment: { lane: 1 } }), loggedEvent(`other-${i}`)]
      for (let done = false; !done; ) done = await attempt(() => runSlice(pool, scope, projection, events))
    }
  }
  const editor = async () => {
    for (let i = 0; i < 20; i++) await patch(scope, customerId, { increment: { edits: 1 } })
  }
  await Promise.all([lane(), editor(), editor()])
  const customer = await byDistinctId(pool, scope, 'u')
  assert.deepEqual(customer?.properties, { lane: 20, edits: 40 })
  assert.equal(customer?.version, 61)
})

async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    if (error instanceof StaleSlice) return false
    throw error
  }
}

test('edits of many write what each alone would, at positions of their own, in as many statements as few', async () => {
  const scope = await testScope(pool)
  const names = Array.from({ length: 40 }, (_, i) => `u${i}`)
  const born = names.map((name) => loggedEvent(name, { $set: { n: 1 } }))
  await runSlice(pool, scope, projection, [...born, loggedEvent('anon'), identifyEvent('u0', 'anon')])
  const ofName = (name: string): CustomerEdit => ({
    customerId: customerIdFor(scope, name, 0),
    edit: { increment: { n: 1 } },
  })
  const edited = (edits: CustomerEdit[]) =>
    pool.transaction(async (tx) => {
      let statements = 0
      const query = tx.client.query.bind(tx.client)
      const counting = (...all: Parameters<typeof query>) => {
        statements++
        return query(...all)
      }
      Object.assign(tx.client, { query: counting })
      try {
        return { places: await patchMany(tx, scope, edits, now), statements }
      } finally {
        Object.assign(tx.client, { query })
      }
    })
  // Merged into u0, which is edited twice.
  const many = await edited([...names, 'u0', 'anon'].map(ofName))
  const few = await edited([ofName('u1')])
  assert.equal(many.statements, few.statements)
  assert.deepEqual(
    many.places.map(({ customerId }) => customerId),
    [...names, 'u0', 'u0'].map((name) => customerIdFor(scope, name, 0)),
  )
  const first = must(many.places[0], 'it was edited').pos
  assert.deepEqual(
    [...many.places, ...few.places].map(({ pos }) => pos - first),
    Array.from({ length: 43 }, (_, i) => BigInt(i)),
  )
  const commands = await pool.query<{ pos: bigint; body: { customer_id: string } }>(
    `select pos, body from command where scope_id = $1 order by pos`,
    [scope.scopeId],
  )
  assert.deepEqual(
    commands.map(({ pos, body }) => [pos, body.customer_id]),
    [...names, 'u0', 'anon', 'u1'].map((name, i) => [first + BigInt(i), ofName(name).customerId]),
  )
  for (const [i, name] of names.entries()) {
    const customer = await byDistinctId(pool, scope, name)
    assert.equal(customer?.properties.n, i === 0 ? 4 : i === 1 ? 3 : 2, name)
  }
})

test('of edits of which one names nobody none is written', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('u', { $set: { n: 1 } })])
  const edits = ['u', 'nobody'].map((name) => ({
    customerId: customerIdFor(scope, name, 0),
    edit: { increment: { n: 1 } },
  }))
  await assert.rejects(
    pool.transaction((tx) => patchMany(tx, scope, edits, now)),
    (error: unknown) => error instanceof Refusal && error.code === 'not_found',
  )
  assert.deepEqual((await byDistinctId(pool, scope, 'u'))?.properties, { n: 1 })
})
