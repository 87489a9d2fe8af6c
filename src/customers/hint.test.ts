import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import { Pool } from '../db/pool.ts'
import { systemClock as clock } from '../kernel/clock.ts'
import { customerIdFor, wireCustomerId } from './customer-id.ts'
import { createCustomerIdHint } from './hint.ts'
import { createProjection } from './projection.ts'

const database = await testDatabase()
const { pool, url } = database
after(() => database[Symbol.asyncDispose]())

const projection = createProjection({ tombstoneKey: Buffer.alloc(32), participants: [] })

test('the hint is the customer that the id names, else the one it would be born as', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('anon'), identifyEvent('u', 'anon')])
  const hint = createCustomerIdHint({ pool, clock })
  const ids = ['u', 'anon', 'new']
  const hints = await Promise.all(ids.map(async (id) => hint(scope, id)))
  const born = (id: string) => wireCustomerId(customerIdFor(scope, id, 0))
  assert.deepEqual(hints, [born('anon'), born('anon'), born('new')])
})

test('a remembered hint comes at once, without a promise, and belongs to its scope', async () => {
  const [scope, other] = [await testScope(pool), await testScope(pool, 'test')]
  const hint = createCustomerIdHint({ pool, clock })
  const first = await hint(scope, 'u')
  assert.equal(hint(scope, 'u'), first)
  assert.notEqual(await hint(other, 'u'), first)
})

test('hints asked for together travel in one statement', async () => {
  const scope = await testScope(pool)
  await using small = new Pool(url, { name: 'hints', max: 1 })
  // Nobody waits for a hint as long as a connection may take.
  await small.query('select 1')
  const hint = createCustomerIdHint({ pool: small, clock })
  const hints = await Promise.all(Array.from({ length: 500 }, async (_, i) => hint(scope, `u${i}`)))
  assert.equal(new Set(hints).size, 500)
  const [row] = await small.query<{ calls: bigint }>(
    `select (generic_plans + custom_plans)::bigint as calls from pg_prepared_statements where name = 'customers_read_ids'`,
  )
  assert.equal(row?.calls, 2n)
})

test('without a database the hint is the birth id, and it is asked again later', async () => {
  const scope = await testScope(pool)
  const away = new Pool('postgresql://postgres@127.0.0.1:1/none', { name: 'away', max: 1 })
  const hint = createCustomerIdHint({ pool: away, clock })
  const answer = hint(scope, 'u')
  assert.ok(answer instanceof Promise)
  assert.equal(await answer, wireCustomerId(customerIdFor(scope, 'u', 0)))
  assert.ok(hint(scope, 'u') instanceof Promise, 'nothing is remembered of a failure')
  await away[Symbol.asyncDispose]()
})

test('a database that does not answer in time is not waited for', async () => {
  const scope = await testScope(pool)
  await runSlice(pool, scope, projection, [loggedEvent('anon'), identifyEvent('u', 'anon')])
  const hint = createCustomerIdHint({ pool, clock })
  const answer = await pool.transaction(async (tx) => {
    await tx.query('lock table customer_alias in access exclusive mode')
    return hint(scope, 'u')
  })
  assert.equal(answer, wireCustomerId(customerIdFor(scope, 'u', 0)))
})
