import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { Environment, PublishableKey } from './types.ts'

const columns = 'id, app_id, environment, key, created_at, revoked_at, last_used_at'

interface KeyRow {
  id: string
  app_id: string
  environment: Environment
  key: string
  created_at: Date
  revoked_at: Date | null
  last_used_at: Date | null
}

function keyOf(row: KeyRow): PublishableKey {
  return {
    id: row.id,
    appId: row.app_id,
    environment: row.environment,
    key: row.key,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  }
}

export async function insertPublishableKey(
  tx: Tx,
  { id, appId, environment, key }: Pick<PublishableKey, 'id' | 'appId' | 'environment' | 'key'>,
): Promise<PublishableKey[]> {
  const rows = await tx.query<KeyRow>(
    `insert into publishable_key (id, app_id, environment, key)
     values ($1, $2, $3, $4)
     returning ${columns}`,
    [id, appId, environment, key],
  )
  return rows.map(keyOf)
}

export async function selectPublishableKeys(
  sql: Sql,
  appId: string,
  environment: Environment,
  { limit, after }: Page,
): Promise<PublishableKey[]> {
  const rows = await sql.query<KeyRow>(
    `select ${columns}
     from publishable_key
     where app_id = $1
       and environment = $2
       and ($3::text is null or (created_at, id) < (select created_at, id from publishable_key where id = $3))
     order by created_at desc, id desc
     limit $4`,
    [appId, environment, after, limit],
  )
  return rows.map(keyOf)
}

export async function lockPublishableKey(
  tx: Tx,
  appId: string,
  environment: Environment,
  id: string,
): Promise<PublishableKey | undefined> {
  const rows = await tx.query<KeyRow>(
    `select ${columns}
     from publishable_key
     where app_id = $1
       and environment = $2
       and id = $3
     for update`,
    [appId, environment, id],
  )
  return rows.map(keyOf)[0]
}

export async function markKeyRevoked(tx: Tx, id: string): Promise<void> {
  await tx.query(`update publishable_key set revoked_at = now() where id = $1 and revoked_at is null`, [id])
}
