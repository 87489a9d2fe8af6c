import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Of a customer in a segment. `since` in Unix milliseconds. */
export interface Membership {
  segmentId: string
  name: string
  customerId: string
  since: number
  /** The service keeps it for itself. */
  isInternal: boolean
}

interface MembershipRow {
  public_id: string
  name: string
  customer_id: string
  since_ms: number
  is_internal: boolean
}

const since = `round(date_part('epoch', m.since) * 1000)`

/** Newest first, by the index membership_newest. */
export async function selectMembers(
  sql: Sql,
  { scopeId }: Scope,
  segmentId: number,
  { limit, before }: { limit: number; before: { since: number; customerId: string } | null },
): Promise<Membership[]> {
  const rows = await sql.query<MembershipRow>(
    `select s.public_id, s.name, s.internal_of is not null as is_internal, m.customer_id, ${since} as since_ms
     from segment s
     join segment_version v on v.scope_id = $1 and v.segment_id = s.id and v.state = 'serving'
     cross join lateral (
       select since, customer_id
       from membership
       where version_id = v.id
         and scope_id = $1
         and ($3::float8 is null or (since, customer_id) < ('epoch'::timestamptz + $3 * interval '1 millisecond', $4::uuid))
       order by since desc, customer_id desc
       limit $5
     ) m
     where s.scope_id = $1
       and s.id = $2`,
    [scopeId, segmentId, before?.since ?? null, before?.customerId ?? null, limit],
  )
  return rows.map(membershipOf)
}

/** What customers are members of now: one look-up for each segment and customer. */
export async function selectMemberships(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<Membership[]> {
  const rows = await sql.query<MembershipRow>(
    `select s.public_id, s.name, s.internal_of is not null as is_internal, m.customer_id, ${since} as since_ms
     from segment_version v
     join segment s on s.scope_id = $1 and s.id = v.segment_id
     cross join unnest($2::uuid[]) as i(id)
     cross join lateral (
       select since, customer_id
       from membership
       where scope_id = $1
         and version_id = v.id
         and customer_id = i.id
       limit 1
     ) m
     where v.scope_id = $1
       and v.state = 'serving'
       and s.deleted_at is null
     order by s.id desc`,
    [scopeId, customerIds],
  )
  return rows.map(membershipOf)
}

/** A segment with a definition that serves. */
export interface ServingSegment {
  segmentId: number
  versionId: number
}

/** By id of the segment: what memberships are kept under. Swapping a definition in moves the catalogue. */
export async function selectServing(sql: Sql, { scopeId }: Scope): Promise<Map<string, ServingSegment>> {
  const rows = await sql.query<{ public_id: string; segment_id: number; version_id: number }>(
    `select s.public_id, s.id as segment_id, v.id as version_id
     from segment s
     join segment_version v on v.scope_id = $1 and v.segment_id = s.id and v.state = 'serving'
     where s.scope_id = $1
       and s.deleted_at is null`,
    [scopeId],
  )
  return new Map(rows.map((row) => [row.public_id, { segmentId: row.segment_id, versionId: row.version_id }] as const))
}

function membershipOf(row: MembershipRow): Membership {
  const { public_id: segmentId, name, customer_id: customerId, since_ms, is_internal: isInternal } = row
  return { segmentId, name, customerId, since: since_ms, isInternal }
}

export async function countCustomers(sql: Sql, { scopeId }: Scope): Promise<number> {
  const [row] = await sql.query<{ n: bigint }>(
    'select count(*) as n from customer where scope_id = $1 and merged_into is null',
    [scopeId],
  )
  return Number(row?.n ?? 0)
}
