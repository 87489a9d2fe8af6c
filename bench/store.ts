import type { Pool } from '../src/db/pool.ts'

/** What the checks afterwards read: the service's tables and, by the same names, the naive server's. */

export async function postgresVersion(pool: Pool): Promise<string> {
  const rows = await pool.query<{ server_version: string }>('show server_version')
  return rows[0]?.server_version ?? 'unknown'
}

export async function scopeOf(pool: Pool, projectId: string): Promise<number> {
  const rows = await pool.query<{ id: number }>(`select id from scope where project_id = $1 and environment = 'test'`, [
    projectId,
  ])
  const row = rows[0]
  if (!row) throw new Error('the test environment of the demo project has no scope')
  return row.id
}

/** Events in the log that the lane has not applied yet. Costly with many: it looks at all of them. */
export async function countWaiting(pool: Pool, scopeId: number): Promise<number> {
  const rows = await pool.query<{ events: number }>(
    `select count(*)::int as events
     from lane
     join event_log log on log.lane = lane.id and log.stream = 0
       and (log.gen, log.xid, log.seq) > (lane.live_gen, lane.live_xid, lane.live_seq)
     where lane.id = $1`,
    [scopeId],
  )
  return rows[0]?.events ?? 0
}

/**
 * Milliseconds that the oldest event not applied yet has been in the log; undefined when none waits.
 * Reads one row by the log's index, and takes no transaction id, so that looking does not hold the lane back.
 */
export async function oldestWaitingMs(pool: Pool, scopeId: number): Promise<number | undefined> {
  const rows = await pool.query<{ age_ms: number }>(
    `select (extract(epoch from clock_timestamp() - waiting.logged_at) * 1000)::float8 as age_ms
     from lane
     cross join lateral (
       select logged_at from event_log log
       where log.lane = lane.id and log.stream = 0
         and (log.gen, log.xid, log.seq) > (lane.live_gen, lane.live_xid, lane.live_seq)
       order by log.gen, log.xid, log.seq
       limit 1
     ) waiting
     where lane.id = $1`,
    [scopeId],
  )
  return rows[0]?.age_ms
}

export interface Stored {
  rows: number
  distinct: number
}

/** Events whose uuid begins with the prefix, in one of the three tables that hold them. */
export async function readEvents(
  pool: Pool,
  table: 'event' | 'event_seen' | 'event_log',
  prefix: string,
): Promise<Stored> {
  const rows = await pool.query<Stored>(
    // Every id of one prefix lies between these two, and no other does.
    `select count(*)::int as rows, count(distinct uuid)::int as distinct
     from ${table} where uuid between ($1 || '000000000000')::uuid and ($1 || 'ffffffffffff')::uuid`,
    [prefix],
  )
  return rows[0] ?? { rows: 0, distinct: 0 }
}

/** Accepted operations whose id begins with the prefix. */
export async function readOperations(pool: Pool, prefix: string): Promise<Stored & { units: number }> {
  const rows = await pool.query<Stored & { units: number }>(
    `select count(*)::int as rows, count(distinct operation_id)::int as distinct, coalesce(sum(quantity), 0)::float8 as units
     from operation where starts_with(operation_id, $1) and accepted`,
    [prefix],
  )
  return rows[0] ?? { rows: 0, distinct: 0, units: 0 }
}

/** Units that the movements of operations with this prefix took out of grants. */
export async function readDrawn(pool: Pool, prefix: string): Promise<number> {
  const rows = await pool.query<{ units: number }>(
    'select coalesce(-sum(delta), 0)::float8 as units from entry where starts_with(operation_id, $1)',
    [prefix],
  )
  return rows[0]?.units ?? 0
}

export interface Spent {
  distinct_id: string
  /** Lifetime usage counter, and what is missing from the grants. */
  used: number
  taken: number
}

/** What every customer has spent of the Feature. Each has one grant at least; joined, not looked up, as there may be a million. */
export async function readSpent(pool: Pool, scopeId: number, featureKey: string): Promise<Spent[]> {
  return pool.query<Spent>(
    `select alias.distinct_id, account.used_total::float8 as used,
       sum(g.amount - g.remaining)::float8 as taken
     from feature
     join account on account.scope_id = feature.scope_id and account.feature_id = feature.id
     join customer_alias alias on alias.scope_id = account.scope_id and alias.customer_id = account.customer_id
     join ledger_grant g on g.account_id = account.id
     where feature.scope_id = $1 and feature.key = $2
     group by alias.distinct_id, account.id, account.used_total`,
    [scopeId, featureKey],
  )
}

/** What a database at work would have done by itself by now. */
export async function settle(pool: Pool): Promise<void> {
  await pool.query('vacuum analyze')
}

export async function createDatabase(pool: Pool, name: string): Promise<void> {
  await pool.query(`create database ${name}`)
}

/** The naive server's key, Feature, customers and grants. */
export async function seedNaive(
  pool: Pool,
  {
    apiKey,
    featureKey,
    distinctIds,
    units,
  }: { apiKey: string; featureKey: string; distinctIds: string[]; units: number },
): Promise<void> {
  await pool.query(`insert into publishable_key (key, scope_id, platform) values ($1, 1, 'ios')`, [apiKey])
  await pool.query(`insert into feature (scope_id, id, key, type) values (1, 1, $1, 'metered')`, [featureKey])
  await pool.query('insert into customer (scope_id, distinct_id) select 1, unnest($1::text[])', [distinctIds])
  await pool.query('insert into account (customer_id, feature_id) select id, 1 from customer order by id')
  await pool.query(
    'insert into ledger_grant (account_id, amount, remaining) select id, $1, $1 from account order by id',
    [units],
  )
}
