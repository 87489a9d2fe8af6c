import type { Sql } from '../db/pool.ts'
import type { Role, Session, WorkspaceAccess } from './types.ts'

interface SessionRow {
  id: string
  expires_at: Date
  user_id: string
  email: string
  name: string
  email_verified: boolean
  user_created_at: Date
  role: Role | null
  access: WorkspaceAccess | null
}

/** By `user_session_token_key`, then by the primary keys of user, member and workspace: one row at each step. */
export async function selectSession(
  sql: Sql,
  tokenHash: string,
  workspaceId: string | null,
): Promise<Session | undefined> {
  const [row] = await sql.query<SessionRow>(
    `select s.id, s.expires_at, u.id as user_id, u.email, u.name, u.email_verified, u.created_at as user_created_at,
       m.role, w.access
     from user_session s
     join users u on u.id = s.user_id
     left join member m on m.user_id = u.id and m.workspace_id = $2
     left join workspace w on w.id = m.workspace_id
     where s.token = $1
       and s.expires_at > now()`,
    [tokenHash, workspaceId],
  )
  if (!row) return undefined
  const { id, expires_at, user_id, email, name, email_verified, user_created_at, role, access } = row
  return {
    id,
    expiresAt: expires_at,
    user: { id: user_id, email, name, emailVerified: email_verified, createdAt: user_created_at },
    membership: workspaceId !== null && role && access ? { workspaceId, role, access } : null,
  }
}

export async function deleteSession(sql: Sql, id: string): Promise<void> {
  await sql.query(`delete from user_session where id = $1`, [id])
}

export async function deleteSessionsOf(sql: Sql, userId: string): Promise<void> {
  await sql.query(`delete from user_session where user_id = $1`, [userId])
}

/** As it is stored, hashed. Whoever is changing it is waited for. */
export async function selectPassword(sql: Sql, email: string): Promise<string | null | undefined> {
  const [row] = await sql.query<{ password: string | null }>(
    `select c.password
     from users u
     join user_credential c on c.user_id = u.id and c.provider_id = 'credential'
     where lower(u.email) = lower($1)
     for share of c`,
    [email],
  )
  return row?.password
}

/** Sessions and tokens that nobody can use any more. */
export async function deleteExpired(sql: Sql): Promise<void> {
  await sql.query(`delete from user_session where expires_at < now()`)
  await sql.query(`delete from user_verification where expires_at < now()`)
  await sql.query(`delete from attempt where resets_at < now()`)
}
