import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { SecretKey } from './types.ts'

const columns = 'id, name, created_by_user_id, created_at, expires_at, last_used_at'

interface SecretKeyRow {
  id: string
  name: string | null
  created_by_user_id: string | null
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
}

function secretKeyOf(row: SecretKeyRow): SecretKey {
  return {
    id: row.id,
    name: row.name,
    createdByUserId: row.created_by_user_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  }
}

/** `days` null: it never expires. */
export async function insertExpiringKey(
  tx: Tx,
  key: {
    id: string
    workspaceId: string
    name: string
    hash: Buffer
    createdByUserId: string | null
    days: number | null
  },
): Promise<SecretKey[]> {
  const rows = await tx.query<SecretKeyRow>(
    `insert into secret_key (id, workspace_id, name, hash, created_by_user_id, expires_at)
     values ($1, $2, $3, $4, $5, now() + $6::int * interval '1 day')
     returning ${columns}`,
    [key.id, key.workspaceId, key.name, key.hash, key.createdByUserId, key.days],
  )
  return rows.map(secretKeyOf)
}

export async function countKeys(tx: Tx, workspaceId: string): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::int as count from secret_key where workspace_id = $1 and revoked_at is null`,
    [workspaceId],
  )
  return row?.count ?? 0
}

/** Expired ones included, revoked ones not. */
export async function selectSecretKeys(sql: Sql, workspaceId: string, { limit, after }: Page): Promise<SecretKey[]> {
  const rows = await sql.query<SecretKeyRow>(
    `select ${columns}
     from secret_key
     where workspace_id = $1
       and revoked_at is null
       and ($2::text is null or (created_at, id) < (
         select created_at, id from secret_key where workspace_id = $1 and id = $2))
     order by created_at desc, id desc
     limit $3`,
    [workspaceId, after, limit],
  )
  return rows.map(secretKeyOf)
}

/** Nothing when there is no such key, or it was revoked before. */
export async function markSecretKeyRevoked(tx: Tx, workspaceId: string, id: string): Promise<SecretKey | undefined> {
  const rows = await tx.query<SecretKeyRow>(
    `update secret_key
     set revoked_at = now()
     where workspace_id = $1
       and id = $2
       and revoked_at is null
     returning ${columns}`,
    [workspaceId, id],
  )
  return rows.map(secretKeyOf)[0]
}
