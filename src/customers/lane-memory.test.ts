import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import type { QueryConfig } from 'pg'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope, writeSlice } from '../../test/harness/lane.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import type { Pool } from '../db/pool.ts'
import { StaleSlice } from '../events/index.ts'
import type { Scope } from '../tenancy/index.ts'
import { createProjection } from './projection.ts'
import { byDistinctId } from './read.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

const projection = createProjection({ tombstoneKey: Buffer.alloc(32, 3), participants: [] })
const run = (scope: Scope, ...events: Parameters<typeof runSlice>[3]) => runSlice(pool, scope, projection, events)

/** Names of the statements that loading these events sends. */
async function reads(scope: Scope, ...events: Parameters<typeof runSlice>[3]): Promise<string[]> {
  const names: string[] = []
  const spied = {
    connected: (work: Parameters<Pool['connected']>[0]) =>
      pool.connected(async (client) => {
        const query = (config: QueryConfig) => {
          names.push(config.name ?? '')
          return client.query(config)
        }
        return work({ query } as unknown as typeof client) // all that loading calls
      }),
  } as unknown as Pool
  await projection.load(spied, scope, events)
  return names
}

const takePosition = (scope: Scope) => pool.query('update lane set pos = pos + 1 where id = $1', [scope.scopeId])

test('whom the last slices named is not read again, unless properties are needed or the id is new', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v', { $set: { n: 1 } }))
  assert.deepEqual(await reads(scope, loggedEvent('u'), loggedEvent('v')), [])
  await run(scope, loggedEvent('u'), identifyEvent('known', 'u'))
  assert.deepEqual(await reads(scope, loggedEvent('known'), loggedEvent('u'), loggedEvent('v')), [])
  assert.deepEqual(await reads(scope, loggedEvent('v', { $increment: { n: 1 } })), ['customers_read_names'])
  assert.deepEqual(await reads(scope, loggedEvent('v'), loggedEvent('w')), [
    'customers_read_names',
    'customers_read_taken',
  ])
})

test('a position that was not the slices’ own makes everything be read again', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v'))
  await takePosition(scope)
  const names = ['customers_read_names', 'customers_read_names', 'customers_read_taken']
  assert.deepEqual(await reads(scope, loggedEvent('u'), loggedEvent('new')), names)
  assert.deepEqual(await reads(scope, loggedEvent('v')), ['customers_read_names'])
})

test('a slice decided on what is remembered is stale once a command moved an id of it, and then right', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v'))
  const [u, v] = [await byDistinctId(pool, scope, 'u'), await byDistinctId(pool, scope, 'v')]
  await pool.query(`update customer_alias set customer_id = $2 where scope_id = $1 and distinct_id = 'v'`, [
    scope.scopeId,
    u?.id,
  ])
  await takePosition(scope)
  const events = [loggedEvent('v')]
  const decision = projection.decide(scope, await projection.load(pool, scope, events), events)
  assert.equal(decision.outcomes[0]?.kind === 'applied' && decision.outcomes[0].customerId, v?.id)
  await assert.rejects(writeSlice(pool, scope, projection, decision), StaleSlice)
  const again = await run(scope, ...events)
  assert.equal(again.outcomes[0]?.kind === 'applied' && again.outcomes[0].customerId, u?.id)
})

test('after a command about somebody else only the names of the slice are remembered', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'), loggedEvent('v'))
  await takePosition(scope)
  await run(scope, loggedEvent('u'))
  assert.deepEqual(await reads(scope, loggedEvent('u')), [])
  assert.deepEqual(await reads(scope, loggedEvent('v')), ['customers_read_names'])
})

test('a slice that failed leaves nothing remembered', async () => {
  const scope = await testScope(pool)
  await run(scope, loggedEvent('u'))
  projection.failed?.(scope)
  assert.deepEqual(await reads(scope, loggedEvent('u')), ['customers_read_names'])
})
