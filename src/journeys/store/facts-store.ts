import type { Sql, Tx } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'

export async function selectProperties(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<Map<string, JsonObject>> {
  if (customerIds.length === 0) return new Map()
  const rows = await sql.query<{ id: string; properties: JsonObject }>(
    `select c.id, c.properties
     from unnest($2::uuid[]) as k(id)
     cross join lateral (
       select id, properties
       from customer
       where scope_id = $1
         and id = k.id
       limit 1
     ) c`,
    [scopeId, customerIds],
  )
  return new Map(rows.map(({ id, properties }) => [id, properties]))
}

/** Those of these segments whose members are known. */
export async function selectServing(sql: Sql, { scopeId }: Scope, segmentIds: readonly string[]): Promise<Set<string>> {
  const rows = await sql.query<{ id: string }>(
    `select s.public_id as id
     from segment s
     join segment_version v on v.scope_id = s.scope_id and v.segment_id = s.id and v.state = 'serving'
     where s.scope_id = $1
       and s.public_id = any($2)
       and s.deleted_at is null`,
    [scopeId, segmentIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** A distinct id of each customer: the one it was first seen under. One whom none names has no events. */
export async function selectDistinctIds(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await sql.query<{ id: string; distinct_id: string }>(
    `select k.id, a.distinct_id
     from unnest($2::uuid[]) as k(id)
     cross join lateral (
       select distinct_id
       from customer_alias
       where scope_id = $1
         and customer_id = k.id
       order by since_pos, distinct_id
       limit 1
     ) a`,
    [scopeId, customerIds],
  )
  return new Map(rows.map(({ id, distinct_id: distinctId }) => [id, distinctId]))
}

/** Those of these keys that are Features which can be granted. */
export async function selectGrantable(sql: Sql, { scopeId }: Scope, keys: readonly string[]): Promise<Set<string>> {
  const rows = await sql.query<{ key: string }>(
    `select key
     from feature
     where scope_id = $1
       and key = any($2)
       and status = 'published'`,
    [scopeId, keys],
  )
  return new Set(rows.map(({ key }) => key))
}

/** Counted in the order of their names, so that two batches never wait for each other. */
export async function countDispositions(
  tx: Tx,
  { scopeId }: Scope,
  counts: ReadonlyMap<string, number>,
  now: number,
): Promise<void> {
  if (counts.size === 0) return
  const sorted = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
  await tx.query(
    `insert into journey_disposition (scope_id, day, disposition, count)
     select $1, (to_timestamp($4::float8 / 1000) at time zone 'UTC')::date, disposition, n
     from unnest($2::text[], $3::bigint[]) as u(disposition, n)
     on conflict (scope_id, day, disposition) do update
     set count = journey_disposition.count + excluded.count`,
    [scopeId, sorted.map(([name]) => name), sorted.map(([, n]) => n), now],
  )
}
