import { takeNamed } from '../../db/named-lock.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Environment, Scope } from '../../tenancy/index.ts'

export type KeyStatus = 'staged' | 'active' | 'retired' | 'revoked'

/** A signing key without its secret. */
export interface SigningKey {
  scopeId: number
  id: number
  publicId: string
  keyId: string
  publicKey: Buffer
  canSign: boolean
  status: KeyStatus
  /** Where it signs: app ids, or `*` for every app that no other key is named for. */
  usedBy: string[]
  createdAt: Date
}

const columns = `k.scope_id, k.id, k.public_id, k.key_id, k.public_key, k.sealed_seed is not null as can_sign, k.status, k.created_at,
  array(select u.app_id from signing_key_use u where u.scope_id = k.scope_id and u.signing_key_id = k.id order by u.app_id) as used_by`

interface KeyRow {
  scope_id: number
  id: number
  public_id: string
  key_id: string
  public_key: Buffer
  can_sign: boolean
  status: KeyStatus
  used_by: string[]
  created_at: Date
}

function keyOf(row: KeyRow): SigningKey {
  return {
    scopeId: row.scope_id,
    id: row.id,
    publicId: row.public_id,
    keyId: row.key_id,
    publicKey: row.public_key,
    canSign: row.can_sign,
    status: row.status,
    usedBy: row.used_by,
    createdAt: row.created_at,
  }
}

/** False when the key id is taken. */
export async function insertKey(
  tx: Tx,
  scope: Scope,
  key: { publicId: string; keyId: string; publicKey: Buffer; sealedSeed: string | null },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into signing_key (scope_id, public_id, key_id, public_key, sealed_seed, status)
     values ($1, $2, $3, $4, $5, 'staged')
     on conflict (scope_id, key_id) do nothing
     returning id`,
    [scope.scopeId, key.publicId, key.keyId, key.publicKey, key.sealedSeed],
  )
  return rows.length > 0
}

/** Keys of an environment change one after another: which one signs is a matter of all of them. */
export async function lockKeys(tx: Tx, scope: Scope): Promise<void> {
  await takeNamed(tx, { scopeId: scope.scopeId, name: 'signing_key' })
}

export async function countKeys(tx: Tx, scope: Scope): Promise<number> {
  const [row] = await tx.query<{ n: number }>(`select count(*)::int as n from signing_key where scope_id = $1`, [
    scope.scopeId,
  ])
  return row?.n ?? 0
}

export async function selectKey(sql: Sql, scopes: Scope[], publicId: string): Promise<SigningKey | undefined> {
  const rows = await sql.query<KeyRow>(
    `select ${columns}
     from signing_key k
     where k.scope_id = any($1)
       and k.public_id = $2`,
    [scopes.map(({ scopeId }) => scopeId), publicId],
  )
  return rows.map(keyOf)[0]
}

export async function selectKeys(sql: Sql, scope: Scope, { limit, after }: Page): Promise<SigningKey[]> {
  const rows = await sql.query<KeyRow>(
    `select ${columns}
     from signing_key k
     where k.scope_id = $1
       and ($2::text is null or k.id < (select id from signing_key where public_id = $2))
     order by k.id desc
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map(keyOf)
}

export async function updateStatus(tx: Tx, key: SigningKey, status: KeyStatus): Promise<void> {
  await tx.query(
    `update signing_key
     set status = $3
     where scope_id = $1
       and id = $2`,
    [key.scopeId, key.id, status],
  )
}

/** From now on the key signs for these apps; `*` for all of them, whichever key was named for one. */
export async function setUses(tx: Tx, key: SigningKey, apps: string[] | '*'): Promise<void> {
  if (apps === '*') await tx.query(`delete from signing_key_use where scope_id = $1`, [key.scopeId])
  await tx.query(
    `insert into signing_key_use (scope_id, app_id, signing_key_id)
     select $1, unnest($2::text[]), $3
     on conflict (scope_id, app_id) do update set signing_key_id = excluded.signing_key_id`,
    [key.scopeId, apps === '*' ? ['*'] : apps, key.id],
  )
}

/** Active keys that sign nowhere any more go on verifying. */
export async function retireUnused(tx: Tx, scope: Scope): Promise<void> {
  await tx.query(
    `update signing_key k
     set status = 'retired'
     where k.scope_id = $1
       and k.status = 'active'
       and not exists (select from signing_key_use u where u.scope_id = $1 and u.signing_key_id = k.id)`,
    [scope.scopeId],
  )
}

/** The key that signs for an app: the one named for it, or else the one for all. */
export async function selectSigning(
  tx: Tx,
  scope: Scope,
  appId: string,
): Promise<{ id: number; publicId: string; keyId: string; publicKey: Buffer; sealedSeed: string } | undefined> {
  const rows = await tx.query<{
    id: number
    public_id: string
    key_id: string
    public_key: Buffer
    sealed_seed: string
  }>(
    `select k.id, k.public_id, k.key_id, k.public_key, k.sealed_seed
     from signing_key_use u
     join signing_key k on k.id = u.signing_key_id
     where u.scope_id = $1
       and u.app_id in ($2, '*')
       and k.sealed_seed is not null
     order by u.app_id = '*'
     limit 1`,
    [scope.scopeId, appId],
  )
  return rows.map((row) => ({
    id: row.id,
    publicId: row.public_id,
    keyId: row.key_id,
    publicKey: row.public_key,
    sealedSeed: row.sealed_seed,
  }))[0]
}

/** What verifies releases of any project: every key that is not revoked. */
export interface PublishedKey {
  keyId: string
  publicKey: Buffer
  projectId: string
  environment: Environment
  status: KeyStatus
}

export async function selectPublishedKeys(sql: Sql): Promise<PublishedKey[]> {
  const rows = await sql.query<{
    key_id: string
    public_key: Buffer
    project_id: string
    environment: Environment
    status: KeyStatus
  }>(
    `select k.key_id, k.public_key, s.project_id, s.environment, k.status
     from signing_key k
     join scope s on s.id = k.scope_id
     join project p on p.id = s.project_id
     where k.status <> 'revoked'
       and p.deleted_at is null
     order by k.id`,
    [],
  )
  return rows.map((row) => ({
    keyId: row.key_id,
    publicKey: row.public_key,
    projectId: row.project_id,
    environment: row.environment,
    status: row.status,
  }))
}
