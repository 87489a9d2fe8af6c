import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { CustomerWorld } from '../../test/harness/customer-world.ts'
import { testDatabase } from '../../test/harness/database.ts'
import { runSlice, testScope } from '../../test/harness/lane.ts'
import fc from '../../test/harness/random.ts'
import { randomEvents } from '../../test/harness/random-events.ts'
import type { LoggedEvent } from '../events/index.ts'
import type { Scope } from '../tenancy/index.ts'
import { createProjection } from './projection.ts'

const database = await testDatabase()
const { pool } = database
after(() => database[Symbol.asyncDispose]())

const tombstoneKey = Buffer.alloc(32)
const projection = createProjection({ tombstoneKey, participants: [] })

test('slices through the tables leave the rows that the same events leave in memory', async () => {
  await fc.assert(
    fc.asyncProperty(randomEvents, fc.integer({ min: 1, max: 14 }), async (events, size) => {
      const scope = await testScope(pool)
      await pool.query(
        `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to('gone', 'UTF8')))`,
        [scope.scopeId, tombstoneKey],
      )
      const world = new CustomerWorld(scope, ['gone'])
      const outcomes = []
      for (const slice of slices(events, size)) {
        outcomes.push(...(await runSlice(pool, scope, projection, slice)).outcomes)
        world.run(slice)
      }
      assert.deepEqual(outcomes, world.outcomes)
      assert.deepEqual(await stored(scope), inMemory(world))
    }),
    { numRuns: 60 },
  )
})

function slices(events: LoggedEvent[], size: number): LoggedEvent[][] {
  return Array.from({ length: Math.ceil(events.length / size) }, (_, i) => events.slice(i * size, (i + 1) * size))
}

async function stored({ scopeId }: Scope): Promise<object> {
  const customers = await pool.query<{ id: string }>(
    `select id, properties, props_at as times, identified, extract(epoch from created_at)::float8 * 1000 as "createdAt",
       version::int, generation, alias_count as "aliasCount", merged_into as "mergedInto"
     from customer
     where scope_id = $1`,
    [scopeId],
  )
  const aliases = await pool.query<{ id: string }>(
    `select distinct_id as id, customer_id as "customerId", identified, extract(epoch from first_seen_at)::float8 * 1000 as "firstSeenAt"
     from customer_alias
     where scope_id = $1`,
    [scopeId],
  )
  const journal = await pool.query(
    `select customer_id as "customerId", source_customer_id as "sourceCustomerId", source_distinct_id as "sourceDistinctId",
       target_distinct_id as "targetDistinctId", status, reason, moved - 'elsewhere' as moved
     from merge_journal
     where scope_id = $1
     order by id`,
    [scopeId],
  )
  return { customers: customers.toSorted(byId), aliases: aliases.toSorted(byId), journal }
}

function inMemory(world: CustomerWorld): object {
  const parsed = (text: string | null) => JSON.parse(text ?? 'null') as object
  return {
    customers: [...world.customers.values()]
      .map(({ id, properties, times, identified, createdAt, version, generation, aliasCount, mergedInto }) => ({
        ...{ id, properties: parsed(properties), times: parsed(times), identified, createdAt },
        ...{ version, generation, aliasCount, mergedInto },
      }))
      .toSorted(byId),
    aliases: [...world.aliases]
      .map(([id, { customerId, identified, firstSeenAt }]) => ({ id, customerId, identified, firstSeenAt }))
      .toSorted(byId),
    journal: world.journal.map(
      ({ pos: _pos, eventUuid: _eventUuid, ...entry }) => JSON.parse(JSON.stringify(entry)) as object,
    ),
  }
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1
}
