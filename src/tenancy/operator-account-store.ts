import type { Sql, Tx } from '../db/pool.ts'
import type { Role, WorkspaceAccess } from './types.ts'

/** What the operator of the instance sees and changes, over all workspaces. Lists are newest first. */

export interface OperatorUser {
  id: string
  email: string
  name: string
  emailVerified: boolean
  createdAt: Date
  /** `<workspace id> <role>` each. */
  workspaces: string[]
}

export interface OperatorWorkspace {
  id: string
  name: string
  slug: string
  access: WorkspaceAccess
  createdAt: Date
  members: number
  projects: number
  /** Neither revoked nor expired. */
  keys: number
}

export interface OperatorKey {
  id: string
  workspaceId: string
  name: string | null
  createdAt: Date
  expiresAt: Date | null
  lastUsedAt: Date | null
  revokedAt: Date | null
}

export async function selectUsersForOperator(sql: Sql, limit: number): Promise<OperatorUser[]> {
  const rows = await sql.query<{
    id: string
    email: string
    name: string
    email_verified: boolean
    created_at: Date
    workspaces: string[]
  }>(
    `select u.id, u.email, u.name, u.email_verified, u.created_at,
       array(select m.workspace_id || ' ' || m.role from member m where m.user_id = u.id order by m.created_at) as workspaces
     from users u
     order by u.created_at desc, u.id desc
     limit $1`,
    [limit],
  )
  return rows.map(({ email_verified, created_at, ...user }) => ({
    ...user,
    emailVerified: email_verified,
    createdAt: created_at,
  }))
}

export async function selectWorkspacesForOperator(sql: Sql, limit: number): Promise<OperatorWorkspace[]> {
  const rows = await sql.query<Omit<OperatorWorkspace, 'createdAt'> & { created_at: Date }>(
    `select w.id, w.name, w.slug, w.access, w.created_at,
       (select count(*)::int from member m where m.workspace_id = w.id) as members,
       (select count(*)::int from project p where p.workspace_id = w.id and p.deleted_at is null) as projects,
       (select count(*)::int
        from secret_key k
        where k.workspace_id = w.id
          and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > now())) as keys
     from workspace w
     order by w.created_at desc, w.id desc
     limit $1`,
    [limit],
  )
  return rows.map(({ created_at, ...workspace }) => ({ ...workspace, createdAt: created_at }))
}

export async function selectKeysForOperator(
  sql: Sql,
  { workspaceId, limit }: { workspaceId: string | null; limit: number },
): Promise<OperatorKey[]> {
  const rows = await sql.query<{
    id: string
    workspace_id: string
    name: string | null
    created_at: Date
    expires_at: Date | null
    last_used_at: Date | null
    revoked_at: Date | null
  }>(
    `select id, workspace_id, name, created_at, expires_at, last_used_at, revoked_at
     from secret_key
     where $1::text is null or workspace_id = $1
     order by created_at desc, id desc
     limit $2`,
    [workspaceId, limit],
  )
  return rows.map((row) => ({
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  }))
}

/** The state before, or undefined when there is no such workspace. Held until the transaction ends. */
export async function lockAccess(tx: Tx, workspaceId: string): Promise<WorkspaceAccess | undefined> {
  const [row] = await tx.query<{ access: WorkspaceAccess }>(`select access from workspace where id = $1 for update`, [
    workspaceId,
  ])
  return row?.access
}

export async function updateAccess(tx: Tx, workspaceId: string, access: WorkspaceAccess): Promise<void> {
  await tx.query(`update workspace set access = $2 where id = $1`, [workspaceId, access])
}

export async function selectWorkspaceOfKey(tx: Tx, keyId: string): Promise<string | undefined> {
  const [row] = await tx.query<{ workspace_id: string }>(`select workspace_id from secret_key where id = $1`, [keyId])
  return row?.workspace_id
}

/** Held until the transaction ends. */
export async function lockUserByEmail(
  tx: Tx,
  email: string,
): Promise<{ id: string; emailVerified: boolean } | undefined> {
  const [row] = await tx.query<{ id: string; email_verified: boolean }>(
    `select id, email_verified from users where lower(email) = lower($1) for update`,
    [email],
  )
  return row && { id: row.id, emailVerified: row.email_verified }
}

/** A user may be in several workspaces: each has its own log. */
export async function selectRoles(tx: Tx, userId: string): Promise<{ workspaceId: string; role: Role }[]> {
  const rows = await tx.query<{ workspace_id: string; role: Role }>(
    `select workspace_id, role from member where user_id = $1 order by created_at`,
    [userId],
  )
  return rows.map(({ workspace_id, role }) => ({ workspaceId: workspace_id, role }))
}

export async function markEmailVerified(tx: Tx, userId: string): Promise<void> {
  await tx.query(`update users set email_verified = true where id = $1`, [userId])
}

export async function replacePassword(
  tx: Tx,
  { userId, credentialId, passwordHash }: { userId: string; credentialId: string; passwordHash: string },
): Promise<void> {
  await tx.query(
    `insert into user_credential (id, user_id, provider_id, account_id, password)
     values ($1, $2, 'credential', $2, $3)
     on conflict (user_id, provider_id) do update set password = excluded.password, updated_at = now()`,
    [credentialId, userId, passwordHash],
  )
}
