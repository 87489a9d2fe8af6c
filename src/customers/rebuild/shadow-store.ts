import type pg from 'pg'
import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'

/**
 * The tables that the decisions about customers read and write, once more, in the session's temporary schema. The session
 * looks for tables there alone: the same code runs on the copies, and what has no copy cannot be touched by accident.
 */
const copied = ['customer', 'customer_alias', 'customer_rev', 'merge_journal', 'customer_change', 'lane', 'command']

/** Where the live tables are, as it stands before a table's name. */
export type Live = string & { readonly isLive?: true }

export async function selectSchema(sql: Sql): Promise<string> {
  const [row] = await sql.query<{ name: string }>('select current_schema() as name')
  return must(row, 'one row').name
}

/** From here on the session sees no table but its own, which go with it however it ends. */
export async function hideLive(client: pg.ClientBase): Promise<void> {
  await client.query('set search_path = pg_temp')
}

/** Copies without rows; tombstones are the live ones. Gives where the live tables are. */
export async function createShadow(tx: Tx, { scopeId }: Scope, schema: string): Promise<Live> {
  const [row] = await tx.query<{ live: string }>('select quote_ident($1) as live', [schema])
  const live: Live = row?.live ?? ''
  for (const table of copied) await tx.query(`create temp table ${table} (like ${live}.${table} including all)`)
  await tx.query(`create temp view customer_tombstone as select * from ${live}.customer_tombstone`)
  // Ids whose history is not all there: what becomes of them cannot be told.
  await tx.query('create temp table incomplete (distinct_id text primary key)')
  await tx.query('insert into lane (id) values ($1)', [scopeId])
  return live
}

/** Runs statements on the live tables. */
export async function onLive<T>(tx: Tx, live: Live, work: () => Promise<T>): Promise<T> {
  await tx.query(`set local search_path = ${live}, pg_temp`)
  const result = await work()
  await tx.query('set local search_path = pg_temp')
  return result
}

/** Locks the live lane until the end of the transaction, and gives its position. */
export async function lockLive(tx: Tx, live: Live, { scopeId }: Scope): Promise<bigint> {
  const [row] = await tx.query<{ pos: bigint }>(`select pos from ${live}.lane where id = $1 for update`, [scopeId])
  return row?.pos ?? 0n
}

export async function movePosition(tx: Tx, { scopeId }: Scope, pos: bigint): Promise<void> {
  await tx.query('update lane set pos = $2 where id = $1', [scopeId, pos])
}

/** Those of whom events were dropped by their age, or who stood in a merge with somebody who was deleted since. */
export async function noteIncomplete(tx: Tx, live: Live, { scopeId }: Scope, wholeSince: number | null): Promise<void> {
  await tx.query(
    `with recursive deleted as (
       select name
       from ${live}.customer_change c
       cross join jsonb_array_elements_text(c.work -> 'distinctIds') as name
       where c.scope_id = $1
         and c.kind = 'delete'
         and c.settled_at is null
     ), known as (
       select id
       from ${live}.customer
       where scope_id = $1
         and created_at < 'epoch'::timestamptz + $2::float8 * interval '1 millisecond'
       union
       select unnest(array[customer_id, source_customer_id])
       from ${live}.merge_journal
       where scope_id = $1
         and (target_distinct_id = ''
           or target_distinct_id in (select name from deleted)
           or source_distinct_id in (select name from deleted))
     ), record as (
       select id
       from known
       union
       select c.merged_into
       from record
       join ${live}.customer c on c.scope_id = $1 and c.id = record.id
       where c.merged_into is not null
     )
     insert into incomplete
     select a.distinct_id
     from record
     join ${live}.customer_alias a on a.scope_id = $1 and a.customer_id = record.id
     on conflict do nothing`,
    [scopeId, wholeSince],
  )
}

/** The position of the newest deletion; 0: there was none. */
export async function selectNewestDeletion(tx: Tx, live: Live, { scopeId }: Scope): Promise<bigint> {
  const [row] = await tx.query<{ pos: bigint | null }>(
    `select max(pos) as pos
     from ${live}.customer_change
     where scope_id = $1
       and kind = 'delete'`,
    [scopeId],
  )
  return row?.pos ?? 0n
}

/** Of these ids those whose history is not all there. */
export async function selectIncomplete(tx: Tx, distinctIds: string[]): Promise<Set<string>> {
  const rows = await tx.query<{ distinct_id: string }>(
    'select distinct_id from incomplete where distinct_id = any($1::text[])',
    [distinctIds],
  )
  return new Set(rows.map(({ distinct_id: id }) => id))
}

/** These ids, and all that name one of their customers by now. */
export async function insertIncomplete(tx: Tx, { scopeId }: Scope, distinctIds: string[]): Promise<void> {
  await tx.query(
    `insert into incomplete
     select unnest($2::text[])
     union
     select b.distinct_id
     from customer_alias a
     join customer_alias b on b.scope_id = $1 and b.customer_id = a.customer_id
     where a.scope_id = $1
       and a.distinct_id = any($2::text[])
     on conflict do nothing`,
    [scopeId, distinctIds],
  )
}

/** When live customers were first seen by ids that name nobody here yet, in Unix milliseconds. */
export async function selectFirstSeen(
  tx: Tx,
  live: Live,
  { scopeId }: Scope,
  distinctIds: string[],
): Promise<Map<string, number>> {
  const rows = await tx.query<{ distinct_id: string; ms: number }>(
    `select l.distinct_id, round(extract(epoch from l.first_seen_at) * 1000)::float8 as ms
     from unnest($2::text[]) as q(id)
     cross join lateral (
       select distinct_id, first_seen_at
       from ${live}.customer_alias
       where scope_id = $1
         and distinct_id = q.id
       limit 1
     ) l
     left join lateral (
       select true as is_known
       from customer_alias
       where scope_id = $1
         and distinct_id = q.id
       limit 1
     ) here on true
     where here.is_known is null`,
    [scopeId, distinctIds],
  )
  return new Map(rows.map(({ distinct_id: id, ms }) => [id, ms]))
}

/** The merge that stands in the shadow where this one stands in the live journal. */
export async function selectMergeHere(
  tx: Tx,
  live: Live,
  { scopeId }: Scope,
  mergeId: string,
): Promise<bigint | undefined> {
  const [row] = await tx.query<{ id: bigint }>(
    `select j.id
     from ${live}.merge_journal l
     join merge_journal j on j.scope_id = $1 and j.pos = l.pos
     where l.id = $2::bigint
       and l.scope_id = $1`,
    [scopeId, mergeId],
  )
  return row?.id
}

/** Whether the record was deleted, with the customer that it had become. */
export async function isDeleted(tx: Tx, live: Live, { scopeId }: Scope, customerId: string): Promise<boolean> {
  const rows = await tx.query(
    `select
     from ${live}.customer_change
     where scope_id = $1
       and kind = 'delete'
       and (customer_id = $2::uuid or work -> 'customerIds' ? $2::text)
     limit 1`,
    [scopeId, customerId],
  )
  return rows.length > 0
}
