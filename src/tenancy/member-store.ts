import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { Member, Role } from './types.ts'

interface MemberRow {
  user_id: string
  email: string
  name: string
  role: Role
  created_at: Date
}

const selectMember = `select m.user_id, u.email, u.name, m.role, m.created_at
     from member m
     join users u on u.id = m.user_id
     where m.workspace_id = $1`

function memberOf({ user_id, email, name, role, created_at }: MemberRow): Member {
  return { userId: user_id, email, name, role, createdAt: created_at }
}

export async function selectMembers(sql: Sql, workspaceId: string, { limit, after }: Page): Promise<Member[]> {
  const rows = await sql.query<MemberRow>(
    `${selectMember}
       and ($2::text is null or (m.created_at, m.user_id) < (
         select created_at, user_id from member where workspace_id = $1 and user_id = $2))
     order by m.created_at desc, m.user_id desc
     limit $3`,
    [workspaceId, after, limit],
  )
  return rows.map(memberOf)
}

export async function selectMemberById(sql: Sql, workspaceId: string, userId: string): Promise<Member | undefined> {
  const rows = await sql.query<MemberRow>(`${selectMember} and m.user_id = $2`, [workspaceId, userId])
  return rows.map(memberOf)[0]
}

export async function selectMemberByEmail(sql: Sql, workspaceId: string, email: string): Promise<Member | undefined> {
  const rows = await sql.query<MemberRow>(`${selectMember} and lower(u.email) = $2`, [workspaceId, email])
  return rows.map(memberOf)[0]
}

export async function countMembers(sql: Sql, workspaceId: string): Promise<{ members: number; owners: number }> {
  const [row] = await sql.query<{ members: number; owners: number }>(
    `select count(*)::int as members, (count(*) filter (where role = 'owner'))::int as owners
     from member
     where workspace_id = $1`,
    [workspaceId],
  )
  return row ?? { members: 0, owners: 0 }
}

/** False when the user is a member already. */
export async function insertMember(tx: Tx, workspaceId: string, userId: string, role: Role): Promise<boolean> {
  const rows = await tx.query(
    `insert into member (workspace_id, user_id, role)
     values ($1, $2, $3)
     on conflict (workspace_id, user_id) do nothing
     returning 1`,
    [workspaceId, userId, role],
  )
  return rows.length > 0
}

export async function updateMemberRole(tx: Tx, workspaceId: string, userId: string, role: Role): Promise<void> {
  await tx.query(`update member set role = $3 where workspace_id = $1 and user_id = $2`, [workspaceId, userId, role])
}

export async function deleteMember(tx: Tx, workspaceId: string, userId: string): Promise<void> {
  await tx.query(`delete from member where workspace_id = $1 and user_id = $2`, [workspaceId, userId])
}
