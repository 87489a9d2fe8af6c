import type { Pool } from '../src/db/pool.ts'
import { must } from '../src/kernel/assert.ts'

/** Behind what the demo has. */
const firstPosition = 10_000
/** Events of one customer on average. */
const eventsPerCustomer = 50

/**
 * Events of ten names, evenly over the range and in its order, of customers without a pattern; with the slots and names that
 * the lane would have counted, and the customers. Gives the id of one of these.
 */
export async function fillEvents(
  pool: Pool,
  { scopeId, events, start, end }: { scopeId: number; events: number; start: number; end: number },
): Promise<string> {
  const customers = Math.max(Math.floor(events / eventsPerCustomer), 1)
  await pool.query(
    `insert into customer (scope_id, id, created_at)
     select $1, md5(n::text)::uuid, now()
     from generate_series(0, $2::int - 1) n`,
    [scopeId, customers],
  )
  await pool.query(
    `insert into event (scope_id, pos, uuid, customer_id, distinct_id, app_id, event, ts, received_at, value, props, trust,
       recognised, historical)
     select $1, n, md5('event ' || n)::uuid, md5((hashint4(n) & 2147483647) % $3::int || '')::uuid, 'bench-' || n, 'app_bench',
       'event_' || 1 + (hashint4(n + 7) & 2147483647) % 10, $4::timestamptz + (n - $6::int) * ($5::timestamptz - $4::timestamptz) / $2::int,
       now(), n % 100, jsonb_build_object('plan', (array['free', 'trial', 'pro'])[1 + n % 3], 'amount', n % 1000,
         'source', 'source ' || n % 20, 'screen', 'home', 'version', '1.0.' || n % 5), 0, true, false
     from generate_series($6::int, $6::int + $2::int - 1) n`,
    [scopeId, events, customers, new Date(start).toISOString(), new Date(end).toISOString(), firstPosition],
  )
  await pool.query(
    `insert into event_rollup (scope_id, event, slot, app_id, count, valued, value_sum)
     select scope_id, event, date_bin('15 minutes', ts, 'epoch'), app_id, count(*), count(value), sum(value)
     from event
     where scope_id = $1
       and app_id = 'app_bench'
     group by 1, 2, 3, 4`,
    [scopeId],
  )
  await pool.query(
    `insert into lane (id, pos)
     values ($1, $2)
     on conflict (id) do update
     set pos = excluded.pos`,
    [scopeId, firstPosition + events],
  )
  for (const table of ['event', 'event_rollup', 'customer']) await pool.query(`vacuum (analyze) ${table}`)
  const [row] = await pool.query<{ id: string }>(`select md5('7')::uuid as id`)
  return must(row, 'a row').id
}

export async function selectOwner(pool: Pool): Promise<string> {
  const [row] = await pool.query<{ id: string }>('select id from users order by created_at limit 1')
  return must(row, 'the first run made an owner').id
}

/** So that none falls into a measured window by chance. */
export async function checkpoint(pool: Pool): Promise<void> {
  await pool.query('checkpoint')
}

/** What a question about these names can't do without: each of their index entries is looked at once. */
export async function countEntries(pool: Pool, scopeId: number, names: string[]): Promise<void> {
  await pool.query('select count(*) from event where scope_id = $1 and event = any ($2::text[])', [scopeId, names])
}
