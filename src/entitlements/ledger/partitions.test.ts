import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { ensureEntryPartitions } from './partitions.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database

async function months(): Promise<string[]> {
  const rows = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'entry'::regclass order by 1`,
  )
  return rows.map(({ name }) => name)
}

test('many processes at once make the month before, this one and two ahead, each once', async () => {
  await Promise.all(Array.from({ length: 4 }, () => ensureEntryPartitions(pool)))
  const [wanted] = await pool.query<{ names: string[] }>(
    `select array_agg('entry_' || to_char(month, 'YYYY"m"MM') order by month) as names
     from generate_series(date_trunc('month', now() at time zone 'UTC') - interval '1 month',
       date_trunc('month', now() at time zone 'UTC') + interval '2 months', interval '1 month') month`,
  )
  assert.deepEqual(await months(), wanted?.names)
  await ensureEntryPartitions(pool)
  assert.deepEqual(await months(), wanted?.names)
})

test('every instant of those months has its place, to the millisecond, and its index', async () => {
  await ensureEntryPartitions(pool)
  const rows = await pool.query<{ at: bigint; place: string }>(
    `with bounds as (
       select (extract(epoch from date_trunc('month', now() at time zone 'UTC') + k * interval '1 month') * 1000)::bigint as at
       from generate_series(-1, 2) k
     )
     insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after)
     select at + shift, 1, 1, 1, 0, 1, 0, 'grant', 1, 1
     from bounds, (values (0), (86400000)) as s(shift)
     returning at_ms as at, tableoid::regclass::text as place`,
  )
  for (const { at, place } of rows) {
    assert.equal(place, `entry_${new Date(Number(at)).toISOString().slice(0, 7).replace('-', 'm')}`)
  }
  const [indexes] = await pool.query<{ count: bigint }>(
    `select count(*)
     from pg_inherits i
     join pg_index x on x.indrelid = i.inhrelid and x.indisvalid
     where i.inhparent = 'entry'::regclass`,
  )
  assert.equal(indexes?.count, BigInt((await months()).length))
})
