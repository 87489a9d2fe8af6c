import type { Sql, Tx } from '../db/pool.ts'

export interface SavedAnswer {
  fingerprint: Buffer
  status: number
  body: string
}

/**
 * Claims an Idempotency-Key for this transaction. A concurrent request with the same key waits here until the first one
 * committed and then gets its answer. `undefined`: the key is ours.
 */
export async function claimIdempotencyKey(
  tx: Tx,
  workspaceId: string,
  key: string,
  fingerprint: Buffer,
): Promise<SavedAnswer | undefined> {
  const claimed = await tx.query(
    `insert into idempotency (workspace_id, key, fingerprint, status, body)
     values ($1, $2, $3, 0, '')
     on conflict (workspace_id, key) do nothing
     returning 1`,
    [workspaceId, key, fingerprint],
  )
  return claimed.length > 0 ? undefined : findIdempotentAnswer(tx, workspaceId, key)
}

/** What was answered under the key, if it is known. */
export async function findIdempotentAnswer(
  sql: Sql,
  workspaceId: string,
  key: string,
): Promise<SavedAnswer | undefined> {
  const [saved] = await sql.query<SavedAnswer>(
    `select fingerprint, status, body
     from idempotency
     where workspace_id = $1
       and key = $2`,
    [workspaceId, key],
  )
  return saved
}

export async function saveIdempotentAnswer(
  tx: Tx,
  workspaceId: string,
  key: string,
  { status, body }: Omit<SavedAnswer, 'fingerprint'>,
): Promise<void> {
  await tx.query(`update idempotency set status = $3, body = $4 where workspace_id = $1 and key = $2`, [
    workspaceId,
    key,
    status,
    body,
  ])
}

/** Answers are kept two days; the promise is one. */
export async function forgetIdempotentAnswers(sql: Sql): Promise<void> {
  await sql.query(`delete from idempotency where created_at < now() - interval '48 hours'`)
}

/** Gives every saved answer that has one of the texts in it another one. */
export async function eraseAnswers(
  tx: Tx,
  workspaceId: string,
  texts: readonly string[],
  { status, body }: Omit<SavedAnswer, 'fingerprint'>,
): Promise<void> {
  await tx.query(
    `update idempotency
     set status = $3, body = $4
     where workspace_id = $1
       and exists (select from unnest($2::text[]) as q(text) where position(q.text in body) > 0)`,
    [workspaceId, texts, status, body],
  )
}

export interface AuditEntry {
  workspaceId: string
  actor: { type: 'secret_key' | 'user' | 'operator'; id: string }
  /** Such as `create`, `update`, `archive`. */
  action: string
  object: string
  objectId: string
  beforeDigest: string | null
  afterDigest: string | null
  requestId: string
}

export async function insertAudit(tx: Tx, entry: AuditEntry): Promise<void> {
  await tx.query(
    `insert into audit_log (workspace_id, actor_type, actor_id, action, object, object_id, before_digest, after_digest, request_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      entry.workspaceId,
      entry.actor.type,
      entry.actor.id,
      entry.action,
      entry.object,
      entry.objectId,
      entry.beforeDigest,
      entry.afterDigest,
      entry.requestId,
    ],
  )
}
