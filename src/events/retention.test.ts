import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { type TestDatabase, testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { logPassedDays, seenDaysMin } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { checkLogMeta } from './log-meta.ts'
import { ensureEventMonths, monthOf } from './partitions.ts'
import { createPartition } from './partitions-store.ts'
import { forgetOldEvents } from './retention.ts'

const dayMs = 86_400_000
const now = Date.parse('2026-11-20T12:00:00Z')
const ago = (days: number) => new Date(now - days * dayMs)

let database: TestDatabase
let scope: Scope
const made = new AsyncDisposableStack()
after(() => made.disposeAsync())
beforeEach(async () => {
  database = made.use(await testDatabase())
  await checkLogMeta(database.pool)
  scope = await testScope(database.pool)
})

const forget = (at = now, eventDays = 400) => forgetOldEvents(database.pool, { eventDays, now: at })

async function makeDay(date: string): Promise<void> {
  const from = new Date(`${date}T00:00:00Z`)
  const name = `event_log_${date.replaceAll('-', '')}`
  await createPartition(database.pool, { table: 'event_log', name, from, to: new Date(+from + dayMs) })
}

async function logged(date: string): Promise<void> {
  await database.pool.query(
    `insert into event_log (lane, stream, uuid, distinct_id, received_at, logged_at, payload) values ($1, 0, $2, 'u', $3, $3, '{}')`,
    [scope.scopeId, randomUUID(), `${date}T01:00:00Z`],
  )
}

/** As if the lane had taken everything. */
const passed = () =>
  database.pool.query(
    `update lane set (live_gen, live_xid, live_seq, live_logged_at) =
      (select gen, xid, seq, logged_at from event_log where lane = $1 order by gen desc, xid desc, seq desc limit 1)
    where id = $1`,
    [scope.scopeId],
  )

async function tables(pattern: string): Promise<string[]> {
  const rows = await database.pool.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relname ~ $1 order by 1`,
    [pattern],
  )
  return rows.map(({ name }) => name)
}

test('a day of the log goes a week after all lanes have passed it, and not while one waits', async () => {
  for (const date of ['2026-11-01', '2026-11-02', '2026-11-20']) await makeDay(date)
  await logged('2026-11-01')
  assert.deepEqual((await forget(now - dayMs))?.partitions, [])
  await passed()
  // Passed now, however old the day is.
  assert.deepEqual((await forget(now))?.partitions, [])
  const week = logPassedDays * dayMs
  assert.deepEqual((await forget(now - dayMs + week))?.partitions, [])
  assert.deepEqual((await forget(now - dayMs + week + 1))?.partitions, ['event_log_20261102'])
  assert.deepEqual((await forget(now + week))?.partitions, [])
  assert.deepEqual((await forget(now + week + 1))?.partitions, ['event_log_20261101'])
  assert.deepEqual(await tables('^event_log_[0-9]'), ['event_log_20261120'])
})

test('a day that rows wait in stays, whatever was noted before', async () => {
  await makeDay('2026-11-01')
  assert.deepEqual((await forget())?.partitions, [])
  await logged('2026-11-01')
  assert.deepEqual((await forget(now + 30 * dayMs))?.partitions, [])
  const rows = await database.pool.query('select 1 from event_log')
  assert.equal(rows.length, 1)
})

test('a month of events goes when its last moment is past the retention, and none that is younger', async () => {
  const months = ['2025-09-15', '2025-10-15', '2025-11-15', '2026-11-15'].map((date) => monthOf(Date.parse(date)))
  await ensureEventMonths(database.pool, months)
  // 400 days before noon of 20 November 2026 are in October 2025.
  assert.deepEqual((await forget())?.partitions, ['event_202509'])
  assert.deepEqual((await forget(Date.parse('2025-11-01T00:00:00Z') + 400 * dayMs - 1))?.partitions, [])
  assert.deepEqual((await forget(Date.parse('2025-11-01T00:00:00Z') + 400 * dayMs))?.partitions, ['event_202510'])
  assert.deepEqual((await forget(now, 31))?.partitions, ['event_202511'])
  assert.deepEqual(await tables('^event_[0-9]'), ['event_202611'])
})

test('a drop that was interrupted is finished', async () => {
  const months = ['2024-01-15', '2024-02-15'].map((date) => monthOf(Date.parse(date)))
  await ensureEventMonths(database.pool, months)
  await database.pool.query('alter table event detach partition event_202401')
  await makeDay('2024-01-15')
  await database.pool.query('alter table event_log detach partition event_log_20240115')
  assert.deepEqual((await forget())?.partitions, ['event_log_20240115', 'event_202401', 'event_202402'])
})

test('two processes do not forget at once', async () => {
  const [one, two] = await Promise.all([forget(), forget()])
  assert.ok(one !== null || two !== null)
  await using other = await testDatabase()
  assert.notEqual(await forgetOldEvents(other.pool, { eventDays: 400 }), null)
})

test('seen keys are kept as long as their events can be, and at least 400 days', async () => {
  const seen = (days: number) =>
    database.pool.query(
      'insert into event_seen (scope_id, uuid, pos, received_day, body_hash) values ($1, $2, 1, $3, 0)',
      [scope.scopeId, randomUUID(), ago(days)],
    )
  for (const days of [0, seenDaysMin, seenDaysMin + 31, seenDaysMin + 33, 600]) await seen(days)
  assert.equal((await forget(now, 700))?.seen, 0)
  assert.equal((await forget(now, 31))?.seen, 2)
  const left = await database.pool.query('select 1 from event_seen')
  assert.equal(left.length, 3)
})

test('dead events go after 30 days, warnings after 90', async () => {
  for (const days of [29.9, 30.1]) {
    await database.pool.query(
      `insert into dead_event (scope_id, stream, gen, xid, seq, uuid, distinct_id, received_at, payload, error, died_at)
      values ($1, 0, 1, '1', 1, $2, 'u', now(), '{}', 'e', $3)`,
      [scope.scopeId, randomUUID(), ago(days)],
    )
  }
  for (const [slot, days] of [89.9, 90.1].entries()) {
    await database.pool.query(
      `insert into event_warning (scope_id, code, hour, count, first_seen, last_seen) values ($1, 'a', $2, 1, $2, $2)`,
      [scope.scopeId, ago(days)],
    )
    await database.pool.query(
      `insert into event_warning_sample (scope_id, code, slot, n, seen_at, uuid, event, distinct_id)
      values ($1, 'a', $2, 0, $3, $4, 'e', 'u')`,
      [scope.scopeId, slot, ago(days), randomUUID()],
    )
  }
  const forgotten = await forget()
  assert.deepEqual([forgotten?.deadEvents, forgotten?.warnings], [1, 2])
  assert.deepEqual(await forget(), { partitions: [], seen: 0, deadEvents: 0, warnings: 0 })
})
