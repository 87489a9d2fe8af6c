import type { Sql, Tx } from '../../db/pool.ts'
import type { Json } from '../../events/index.ts'
import type { Page } from '../../kernel/page.ts'
import { type Scope, touchCatalogue } from '../../tenancy/index.ts'

/** A segment as the API shows it. Instants are dates of the database. */
export interface Segment {
  scopeId: number
  /** Of the database; the public one is `publicId`. */
  id: number
  publicId: string
  name: string
  definition: Json
  /** What of the service keeps it for itself; null: somebody made it, and lists show it. */
  internalOf: string | null
  /** Counts the definitions it has had. */
  version: number
  status: 'backfilling' | 'ready' | 'failed'
  /** Of the definition that serves; 0 before the first one does. */
  memberCount: number
  createdAt: Date
  updatedAt: Date
}

interface SegmentRow {
  scope_id: number
  id: number
  public_id: string
  name: string
  definition: Json
  internal_of: string | null
  version: number
  status: Segment['status']
  member_count: bigint | null
  created_at: Date
  updated_at: Date
}

const columns = `
  s.scope_id, s.id, s.public_id, s.name, s.definition, s.internal_of, s.version, s.status, s.created_at, s.updated_at,
  (
    select member_count
    from segment_version
    where scope_id = s.scope_id
      and segment_id = s.id
      and state = 'serving'
  ) as member_count`

export async function selectSegments(sql: Sql, { scopeId }: Scope): Promise<Segment[]> {
  const rows = await sql.query<SegmentRow>(
    `select ${columns}
     from segment s
     where s.scope_id = $1
       and s.deleted_at is null
     order by s.id`,
    [scopeId],
  )
  return rows.map(segmentOf)
}

/** Newest first, those that people made. */
export async function selectSegmentPage(sql: Sql, { scopeId }: Scope, { limit, after }: Page): Promise<Segment[]> {
  const rows = await sql.query<SegmentRow>(
    `select ${columns}
     from segment s
     where s.scope_id = $1
       and s.deleted_at is null
       and s.internal_of is null
       and ($2::text is null or s.id < (select id from segment where public_id = $2))
     order by s.id desc
     limit $3`,
    [scopeId, after, limit],
  )
  return rows.map(segmentOf)
}

export async function selectSegment(
  sql: Sql,
  scopes: readonly Scope[],
  publicId: string,
): Promise<Segment | undefined> {
  const rows = await sql.query<SegmentRow>(
    `select ${columns}
     from segment s
     where s.public_id = $1
       and s.scope_id = any ($2)
       and s.deleted_at is null
       and s.internal_of is null`,
    [publicId, scopes.map(({ scopeId }) => scopeId)],
  )
  return rows.map(segmentOf)[0]
}

export async function insertSegment(
  tx: Tx,
  { scopeId }: Scope,
  {
    publicId,
    name,
    definition,
    internalOf,
  }: { publicId: string; name: string; definition: Json; internalOf: string | null },
): Promise<void> {
  await tx.query(
    `insert into segment (scope_id, public_id, name, version, definition, status, internal_of)
     values ($1, $2, $3, 1, $4, 'backfilling', $5)`,
    [scopeId, publicId, name, JSON.stringify(definition), internalOf],
  )
}

export async function renameSegment(tx: Tx, { scopeId, id }: Segment, name: string): Promise<void> {
  await tx.query(
    `update segment
     set name = $3,
       updated_at = clock_timestamp()
     where scope_id = $1
       and id = $2`,
    [scopeId, id, name],
  )
}

export async function redefineSegment(tx: Tx, { scopeId, id }: Segment, definition: Json): Promise<void> {
  await tx.query(
    `update segment
     set definition = $3,
       version = version + 1,
       updated_at = clock_timestamp()
     where scope_id = $1
       and id = $2`,
    [scopeId, id, JSON.stringify(definition)],
  )
}

/** New versions of the named segments, with their definitions as they stand, to be told of every customer. */
export async function insertPending(tx: Tx, { scopeId }: Scope, publicIds: string[]): Promise<void> {
  await tx.query(
    `with dropped as (
       delete from segment_version
       where scope_id = $1
         and state = 'pending'
         and segment_id in (select id from segment where public_id = any ($2))
       returning id
     )
     delete from membership
     where scope_id = $1
       and version_id in (select id from dropped)`,
    [scopeId, publicIds],
  )
  await tx.query(
    `with begun as (
       update segment
       set status = 'backfilling'
       where scope_id = $1
         and public_id = any ($2)
       returning id, definition
     )
     insert into segment_version (scope_id, segment_id, state, definition)
     select $1, id, 'pending', definition
     from begun`,
    [scopeId, publicIds],
  )
  await tx.query(
    `insert into segment_set (scope_id, walked_to)
     values ($1, $2)
     on conflict (scope_id) do update
     set walked_to = excluded.walked_to,
       revision = gen_random_uuid()`,
    [scopeId, firstUuid],
  )
}

const firstUuid = '00000000-0000-0000-0000-000000000000'

/** Its members are told that they left; then it is gone. Profiles no longer know it. */
export async function retireSegment(tx: Tx, { scopeId, id }: Segment): Promise<void> {
  await tx.query(
    `update segment
     set deleted_at = clock_timestamp()
     where scope_id = $1
       and id = $2`,
    [scopeId, id],
  )
  await tx.query(
    `update segment_version
     set state = 'retired'
     where scope_id = $1
       and segment_id = $2`,
    [scopeId, id],
  )
  await tx.query(
    `update segment_set
     set settling = true,
       revision = gen_random_uuid()
     where scope_id = $1`,
    [scopeId],
  )
  await touchCatalogue(tx, scopeId)
}

function segmentOf(row: SegmentRow): Segment {
  return {
    ...{ scopeId: row.scope_id, id: row.id, publicId: row.public_id, name: row.name, definition: row.definition },
    internalOf: row.internal_of,
    ...{ version: row.version, status: row.status, memberCount: Number(row.member_count ?? 0) },
    ...{ createdAt: row.created_at, updatedAt: row.updated_at },
  }
}
