import type { Sql } from '../db/pool.ts'
import type { JsonObject } from '../events/index.ts'
import { mergeChainMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Customer, CustomerCursor } from './types.ts'

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`

const columns = `
  c.id, c.identified, c.properties, ${ms('c.created_at')} as created_ms, ${ms('c.updated_at')} as updated_ms,
  c.version, c.merged_into`

interface CustomerRow {
  id: string
  identified: boolean
  properties: JsonObject
  created_ms: number
  updated_ms: number
  version: bigint
  merged_into: string | null
  /** Null for a customer that lost all its ids to another one. */
  names: [string, boolean, number][] | null
}

/** Beside a customer `c`: its distinct ids, by first appearance. */
const names = `
  left join lateral (
    select json_agg(json_build_array(distinct_id, identified, ${ms('first_seen_at')}) order by first_seen_at, distinct_id) as names
    from customer_alias
    where scope_id = $1
      and customer_id = c.id
  ) a on true`

/** The record with this id, also a merged one. Planned for one partition, as the parameters are known by then. */
export async function selectRecord(sql: Sql, scope: Scope, id: string): Promise<Customer | undefined> {
  const rows = await sql.query<CustomerRow>(
    `select ${columns}, a.names
     from customer c
     ${names}
     where c.scope_id = $1
       and c.id = $2`,
    [scope.scopeId, id],
  )
  return rows.map(customerOf)[0]
}

/** What this record was merged into in the end. Planning it over sixteen partitions takes most of its time. */
export async function selectSurvivor(sql: Sql, scope: Scope, id: string): Promise<Customer | undefined> {
  const rows = await sql.query<CustomerRow>(
    `with recursive chain as (
       select id, merged_into, 1 as hop
       from customer
       where scope_id = $1
         and id = $2
       union all
       select next.id, next.merged_into, chain.hop + 1
       from chain
       cross join lateral (
         select id, merged_into
         from customer
         where scope_id = $1
           and id = chain.merged_into
         limit 1
       ) next
       where chain.hop <= $3
     )
     select ${columns}, a.names
     from chain
     cross join lateral (
       select id, identified, properties, created_at, updated_at, version, merged_into
       from customer
       where scope_id = $1
         and id = chain.id
       limit 1
     ) c
     ${names}
     where chain.merged_into is null`,
    [scope.scopeId, id, mergeChainMax],
  )
  return rows.map(customerOf)[0]
}

/**
 * By the primary keys of alias and customer, in one partition. Without a kept plan, planning it over sixteen partitions took
 * 0.8 ms and running it 0.05; joined without `limit 1`, the kept plan could be a hash join.
 */
export async function selectByDistinctId(sql: Sql, scope: Scope, distinctId: string): Promise<Customer | undefined> {
  const rows = await sql.query<CustomerRow>(
    `select ${columns}, a.names
     from customer_alias named
     cross join lateral (
       select *
       from customer
       where scope_id = $1
         and id = named.customer_id
       limit 1
     ) c
     ${names}
     where named.scope_id = $1
       and named.distinct_id = $2`,
    [scope.scopeId, distinctId],
    'customer-by-distinct-id',
  )
  return rows.map(customerOf)[0]
}

/** Newest first, by the index customer_newest: a page costs one descent in each partition. */
export async function selectNewest(
  sql: Sql,
  scope: Scope,
  { limit, before }: { limit: number; before: CustomerCursor | null },
): Promise<Customer[]> {
  const rows = await sql.query<CustomerRow>(
    `select ${columns}, a.names
     from (
       select *
       from customer
       where scope_id = $1
         and merged_into is null
         and (created_at, id) < ('epoch'::timestamptz + $2::float8 * interval '1 millisecond', $3::uuid)
       order by created_at desc, id desc
       limit $4
     ) c
     ${names}
     order by c.created_at desc, c.id desc`,
    [scope.scopeId, before?.createdAt ?? newest, before?.id ?? lastUuid, limit],
  )
  return rows.map(customerOf)
}

/** Later than any customer. */
const newest = Date.UTC(9999, 11, 31)
const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

function customerOf(row: CustomerRow): Customer {
  return {
    id: row.id,
    distinctIds: (row.names ?? []).map(([distinctId, identified, firstSeenAt]) => ({
      distinctId,
      identified,
      firstSeenAt,
    })),
    identified: row.identified,
    properties: row.properties,
    createdAt: row.created_ms,
    updatedAt: row.updated_ms,
    version: Number(row.version),
    mergedInto: row.merged_into,
  }
}
