import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { ensureEventMonths, ensurePartitions, monthOf } from './partitions.ts'

const database = await testDatabase()
const { pool } = database
after(() => database[Symbol.asyncDispose]())

async function partitionsOf(table: string): Promise<string[]> {
  const rows = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by name`,
    [table],
  )
  return rows.map(({ name }) => name)
}

test('partitions reach from yesterday and last month into the future, made once by any number of processes', async () => {
  await Promise.all([ensurePartitions(pool), ensurePartitions(pool), ensurePartitions(pool)])
  const days = await partitionsOf('event_log')
  const months = await partitionsOf('event')
  assert.equal(days.length, 16)
  assert.equal(months.length, 5)
  const [now] = await pool.query<{ yesterday: string; month: string }>(
    `select to_char(now() at time zone 'UTC' - interval '1 day', 'YYYYMMDD') as yesterday,
      to_char(date_trunc('month', now() at time zone 'UTC') - interval '1 month', 'YYYYMM') as month`,
  )
  assert.equal(days[0], `event_log_${now?.yesterday}`)
  assert.equal(months[0], `event_${now?.month}`)
  await ensurePartitions(pool)
  assert.deepEqual(await partitionsOf('event_log'), days)
})

test('every instant of the days ahead has its place', async () => {
  await ensurePartitions(pool)
  await pool.query(
    `insert into event_log (lane, stream, logged_at, uuid, distinct_id, received_at, payload)
    select 1, 0, at, gen_random_uuid(), 'u', now(), '{}'
    from generate_series(now() - interval '1 day', now() + interval '14 days', interval '1 hour') as at`,
  )
})

test('partitions have the indexes and keys of their table', async () => {
  await ensurePartitions(pool)
  const missing = await pool.query(
    `select inhrelid::regclass::text as name
    from pg_inherits
    where inhparent in ('event'::regclass, 'event_log'::regclass)
      and not exists (select true from pg_index where indrelid = inhrelid and indisvalid)`,
  )
  assert.deepEqual(missing, [])
})

test('a month of another year can be made', async () => {
  const months = ['1969-12-31T23:59:59.999Z', '2031-02-28', '2199-12-31'].map((text) => monthOf(Date.parse(text)))
  await ensureEventMonths(pool, months)
  await ensureEventMonths(pool, months)
  const made = await partitionsOf('event')
  for (const name of ['event_196912', 'event_203102', 'event_219912']) assert.ok(made.includes(name), name)
})
