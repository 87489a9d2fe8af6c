import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import fc from '../../test/harness/random.ts'
import { must } from '../kernel/assert.ts'
import { dayMs, occurrenceKeptDays } from '../kernel/limits.ts'
import { forgetOccurrences } from './forget.ts'
import { createJourneyParticipant } from './participant.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database
const scope = await testScope(pool)
const { scopeId } = scope
const nothing = () => {}
const participant = createJourneyParticipant({
  clock: { now: () => 1_000_000 },
  services: { tombstoneKey: Buffer.alloc(32), log: { warn: nothing, error: nothing } },
})

const [experience] = await pool.query<{ id: number }>(
  `insert into experience (scope_id, public_id, key, name) values ($1, 'exp_1', 'x', 'X') returning id`,
  [scopeId],
)
const experienceId = must(experience, 'it was made').id
await pool.query(
  `insert into publication (scope_id, app_id, seq, public_id, experience_id, version_number, build_id, plan, published_at, published_by)
   values ($1, 'app_1', 1, 'pub_1', $2, 1, 'bld_1', '{}', now(), 'key')`,
  [scopeId, experienceId],
)

const counted = fc.option(fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 5 }), {
  nil: null,
})
const keys = fc.uniqueArray(fc.constantFrom('api:a', 'api:b', 'evt:c'))

const enrolled = async (customerId: string) => {
  const [row] = await pool.query<{ count: number; times: bigint[] }>(
    'select count, times from experience_enrolment where scope_id = $1 and customer_id = $2',
    [scopeId, customerId],
  )
  return row ? { count: row.count, times: row.times.map(Number).toSorted((a, b) => a - b) } : { count: 0, times: [] }
}
const keysOf = async (customerId: string) => {
  const rows = await pool.query<{ key: string }>(
    'select key from journey_occurrence where scope_id = $1 and customer_id = $2 order by key',
    [scopeId, customerId],
  )
  return rows.map(({ key }) => key)
}

test('24 a merge adds up what was counted and takes keys along; again it changes nothing; its split gives back', async () => {
  await fc.assert(
    fc.asyncProperty(counted, counted, keys, keys, async (ofSource, ofTarget, sourceKeys, targetKeys) => {
      const [source, target] = [randomUUID(), randomUUID()]
      for (const [customerId, times, own] of [
        [source, ofSource, sourceKeys],
        [target, ofTarget, targetKeys],
      ] as const) {
        if (times) {
          await pool.query(
            `insert into experience_enrolment (scope_id, experience_id, customer_id, count, last_enrolled_at_ms, times)
             values ($1, $2, $3, $4, $5, $6)`,
            [scopeId, experienceId, customerId, times.length, Math.max(...times), times],
          )
        }
        for (const key of own) {
          await pool.query(
            `insert into journey_occurrence (scope_id, app_id, experience_id, customer_id, key, status, reason, at_ms)
             values ($1, 'app_1', $2, $3, $4, 'ineligible', 'frequency', 1)`,
            [scopeId, experienceId, customerId, key],
          )
        }
      }
      const merge = { sourceCustomerId: source, targetCustomerId: target, position: 1n }
      const [moved] = await pool.transaction((tx) => participant.merge(tx, scope, [merge]))
      const after = await enrolled(target)
      const all = [...(ofSource ?? []), ...(ofTarget ?? [])].toSorted((a, b) => a - b)
      assert.deepEqual(after, { count: all.length, times: all })
      assert.deepEqual(await keysOf(target), [...new Set([...sourceKeys, ...targetKeys])].toSorted())

      const [again] = await pool.transaction((tx) => participant.merge(tx, scope, [merge]))
      assert.equal(again, null)
      assert.deepEqual(await enrolled(target), after)

      const split = { ...merge, mergedAt: 2000, how: 'join' as const, moved: moved ?? null }
      await pool.transaction((tx) => participant.split(tx, scope, split))
      assert.equal((await enrolled(source)).count, ofSource?.length ?? 0)
      assert.equal((await enrolled(target)).count, ofTarget?.length ?? 0)
      const both = new Set(targetKeys)
      assert.deepEqual((await keysOf(target)).toSorted(), [...both].toSorted())
    }),
    { numRuns: 40 },
  )
})

test('keys are forgotten after 400 days, not before', async () => {
  const now = Date.now()
  const customerId = randomUUID()
  const kept = occurrenceKeptDays * dayMs
  for (const [key, at] of [
    ['api:old', now - kept - 1],
    ['api:young', now - kept],
  ] as const) {
    await pool.query(
      `insert into journey_occurrence (scope_id, app_id, experience_id, customer_id, key, status, reason, at_ms)
       values ($1, 'app_1', $2, $3, $4, 'ineligible', 'frequency', $5)`,
      [scopeId, experienceId, customerId, key, at],
    )
  }
  await forgetOccurrences(pool, now, new AbortController().signal)
  assert.deepEqual(await keysOf(customerId), ['api:young'])
})
