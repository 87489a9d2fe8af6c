import type { Sql, Tx } from '../db/pool.ts'
import type { JsonObject } from '../events/index.ts'
import { mergeChainMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Merge } from './types.ts'

/** What was decided about identity, and for which customers. */

interface MergeRow {
  id: bigint
  customer_id: string
  source_customer_id: string | null
  source_distinct_id: string
  target_distinct_id: string
  event_uuid: string | null
  pos: bigint
  status: Merge['status']
  reason: string | null
  created_ms: number
}

const columns = (j: string) => `
  ${j}.id, ${j}.customer_id, ${j}.source_customer_id, ${j}.source_distinct_id, ${j}.target_distinct_id, ${j}.event_uuid,
  ${j}.pos, ${j}.status, ${j}.reason, round(extract(epoch from ${j}.created_at) * 1000)::float8 as created_ms`

/** The customer and every record that went into it and was not taken out again. */
const family = `
  with recursive family as (
    select $2::uuid as id
    union
    select gone.id
    from family
    cross join lateral (
      select source_customer_id as id
      from merge_journal
      where scope_id = $1
        and customer_id = family.id
        and status = 'merged'
        and source_customer_id is not null
      offset 0
    ) gone
  )`

/** What was decided about a customer and about all that went into it, newest first. */
export async function selectMerges(
  sql: Sql,
  scope: Scope,
  customerId: string,
  { limit, before }: { limit: number; before: bigint | null },
): Promise<Merge[]> {
  const rows = await sql.query<MergeRow>(
    `${family}
     select ${columns('j')}
     from family
     cross join lateral (
       select *
       from merge_journal
       where scope_id = $1
         and customer_id = family.id
         and ($3::bigint is null or id < $3)
       order by id desc
       limit $4
     ) j
     order by j.id desc
     limit $4`,
    [scope.scopeId, customerId, before, limit],
  )
  return rows.map(mergeOf)
}

/** A merge with what its split needs, and the newest one of the same customer that still stands. */
export async function selectMerge(
  sql: Sql,
  scope: Scope,
  customerId: string,
  id: bigint,
): Promise<{ merge: Merge; moved: JsonObject | null; newest: bigint | null } | undefined> {
  const rows = await sql.query<MergeRow & { moved: JsonObject | null; newest: bigint | null }>(
    `${family}
     select ${columns('j')}, j.moved, newest.id as newest
     from family
     join merge_journal j on j.scope_id = $1 and j.customer_id = family.id and j.id = $3
     cross join lateral (
       select max(m.id) as id
       from family f
       join merge_journal m on m.scope_id = $1 and m.customer_id = f.id and m.status = 'merged'
     ) newest`,
    [scope.scopeId, customerId, id],
  )
  const [row] = rows
  return row && { merge: mergeOf(row), moved: row.moved, newest: row.newest }
}

/** The newest merge that gave the customer this distinct id, or the newest of all. */
export async function selectNewestMerge(
  sql: Sql,
  scope: Scope,
  customerId: string,
  sourceDistinctId: string,
): Promise<Merge | undefined> {
  const rows = await sql.query<MergeRow>(
    `${family}
     select ${columns('j')}
     from family
     join merge_journal j on j.scope_id = $1 and j.customer_id = family.id
     where j.status = 'merged'
       and j.source_distinct_id = $3
     order by j.id desc
     limit 1`,
    [scope.scopeId, customerId, sourceDistinctId],
  )
  return rows.map(mergeOf)[0]
}

/** Takes a merge back, and says so among the changes of customers. `sourceCustomerId` is who came out. */
export async function writeSplit(
  tx: Tx,
  scope: Scope,
  split: { mergeId: bigint; customerId: string; sourceCustomerId: string; pos: bigint; work: JsonObject },
): Promise<Merge | undefined> {
  const rows = await tx.query<MergeRow>(
    `with change as (
       insert into customer_change (scope_id, pos, kind, customer_id, source_customer_id, merge_id, work)
       values ($1, $2, 'split', $3, $4, $5, $6::jsonb)
     )
     update merge_journal j
     set status = 'split',
       source_customer_id = $4,
       split_pos = $2,
       split_at = clock_timestamp()
     where j.scope_id = $1
       and j.id = $5
       and j.status = 'merged'
     returning ${columns('j')}`,
    [scope.scopeId, split.pos, split.customerId, split.sourceCustomerId, split.mergeId, JSON.stringify(split.work)],
  )
  return rows.map(mergeOf)[0]
}

/** The record that each of the given ones has become through merges, for those that exist. */
export async function selectSurvivorIds(
  sql: Sql,
  scope: Scope,
  customerIds: readonly string[],
): Promise<{ asked: string; survivor: string }[]> {
  return sql.query(
    `with recursive chain as (
       select id as asked, id, merged_into, 0 as step
       from customer
       where scope_id = $1
         and id = any($2::uuid[])
       union all
       select chain.asked, next.id, next.merged_into, chain.step + 1
       from chain
       cross join lateral (
         select id, merged_into
         from customer
         where scope_id = $1
           and id = chain.merged_into
         limit 1
       ) next
       where chain.step < $3
     )
     select asked, id as survivor
     from chain
     where merged_into is null`,
    [scope.scopeId, customerIds, mergeChainMax],
    'customer-survivors',
  )
}

/** The given records and all that were merged into them, by the index customer_merged. */
export async function selectRecordIds(sql: Sql, scope: Scope, customerIds: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `with recursive record as (
       select id
       from unnest($2::uuid[]) as q(id)
       union
       select gone.id
       from record
       cross join lateral (
         select id
         from customer
         where merged_into = record.id
           and scope_id = $1
         offset 0
       ) gone
     )
     select id
     from record`,
    [scope.scopeId, customerIds],
    'customer-records',
  )
  return rows.map(({ id }) => id)
}

function mergeOf(row: MergeRow): Merge {
  return {
    id: row.id,
    customerId: row.customer_id,
    sourceCustomerId: row.source_customer_id,
    sourceDistinctId: row.source_distinct_id,
    targetDistinctId: row.target_distinct_id,
    eventUuid: row.event_uuid,
    position: row.pos,
    status: row.status,
    reason: row.reason,
    createdAt: row.created_ms,
  }
}
