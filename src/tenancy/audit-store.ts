import type { Sql } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { AuditEntry } from './change-store.ts'

/** One change: who did what to which object. */
export interface AuditRow {
  id: bigint
  actorType: AuditEntry['actor']['type']
  actorId: string
  action: string
  object: string
  objectId: string
  /** SHA-256 of the object as the API shows it; null where there was none. */
  beforeDigest: string | null
  afterDigest: string | null
  requestId: string
  at: Date
}

export interface AuditFilter {
  action?: string | undefined
  object?: string | undefined
  objectId?: string | undefined
  actorId?: string | undefined
  requestId?: string | undefined
  /** Inclusive. */
  from: Date | null
  /** Exclusive. */
  to: Date | null
}

/**
 * Newest first; `after` is an id. By `audit_log_workspace`, backwards, until enough rows fit; one object's by
 * `audit_log_object`.
 */
export async function selectAudit(
  sql: Sql,
  workspaceId: string,
  filter: AuditFilter,
  { limit, after }: Page,
): Promise<AuditRow[]> {
  const rows = await sql.query<{
    id: bigint
    actor_type: AuditEntry['actor']['type']
    actor_id: string
    action: string
    object: string
    object_id: string
    before_digest: string | null
    after_digest: string | null
    request_id: string
    at: Date
  }>(
    `select id, actor_type, actor_id, action, object, object_id, before_digest, after_digest, request_id, at
     from audit_log
     where workspace_id = $1
       and ($2::text is null or action = $2)
       and ($3::text is null or object = $3)
       and ($4::text is null or object_id = $4)
       and ($5::text is null or actor_id = $5)
       and ($6::text is null or request_id = $6)
       and ($7::timestamptz is null or at >= $7)
       and ($8::timestamptz is null or at < $8)
       and ($9::bigint is null or id < $9)
     order by id desc
     limit $10`,
    [
      workspaceId,
      filter.action ?? null,
      filter.object ?? null,
      filter.objectId ?? null,
      filter.actorId ?? null,
      filter.requestId ?? null,
      filter.from,
      filter.to,
      after,
      limit,
    ],
  )
  return rows.map((row) => ({
    id: row.id,
    actorType: row.actor_type,
    actorId: row.actor_id,
    action: row.action,
    object: row.object,
    objectId: row.object_id,
    beforeDigest: row.before_digest,
    afterDigest: row.after_digest,
    requestId: row.request_id,
    at: row.at,
  }))
}
