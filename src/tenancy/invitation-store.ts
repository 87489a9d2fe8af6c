import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { Invitation, Role } from './types.ts'

const columns = 'id, workspace_id, email, role, created_at, expires_at'
const isOpen = 'accepted_at is null and revoked_at is null and expires_at > now()'

interface InvitationRow {
  id: string
  workspace_id: string
  email: string
  role: Role
  created_at: Date
  expires_at: Date
}

function invitationOf({ id, workspace_id, email, role, created_at, expires_at }: InvitationRow): Invitation {
  return { id, workspaceId: workspace_id, email, role, createdAt: created_at, expiresAt: expires_at }
}

export async function insertInvitation(
  tx: Tx,
  {
    id,
    workspaceId,
    email,
    role,
    invitedBy,
    days,
  }: {
    id: string
    workspaceId: string
    email: string
    role: Role
    invitedBy: string
    days: number
  },
): Promise<Invitation[]> {
  const rows = await tx.query<InvitationRow>(
    `insert into invitation (id, workspace_id, email, role, invited_by, expires_at)
     values ($1, $2, $3, $4, $5, now() + $6 * interval '1 day')
     returning ${columns}`,
    [id, workspaceId, email, role, invitedBy, days],
  )
  return rows.map(invitationOf)
}

/** Closes an invitation of this address that nobody has taken. */
export async function revokeOpenInvitation(tx: Tx, workspaceId: string, email: string): Promise<void> {
  await tx.query(
    `update invitation
     set revoked_at = now()
     where workspace_id = $1
       and email = $2
       and accepted_at is null
       and revoked_at is null`,
    [workspaceId, email],
  )
}

export async function countOpenInvitations(tx: Tx, workspaceId: string): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::int as count from invitation where workspace_id = $1 and ${isOpen}`,
    [workspaceId],
  )
  return row?.count ?? 0
}

export async function selectOpenInvitations(
  sql: Sql,
  workspaceId: string,
  { limit, after }: Page,
): Promise<Invitation[]> {
  const rows = await sql.query<InvitationRow>(
    `select ${columns}
     from invitation
     where workspace_id = $1
       and ${isOpen}
       and ($2::text is null or (created_at, id) < (
         select created_at, id from invitation where workspace_id = $1 and id = $2))
     order by created_at desc, id desc
     limit $3`,
    [workspaceId, after, limit],
  )
  return rows.map(invitationOf)
}

/** Held until the transaction ends. */
export async function lockOpenInvitation(tx: Tx, id: string): Promise<Invitation | undefined> {
  const rows = await tx.query<InvitationRow>(
    `select ${columns} from invitation where id = $1 and ${isOpen} for update`,
    [id],
  )
  return rows.map(invitationOf)[0]
}

export async function closeInvitation(tx: Tx, id: string, how: 'accepted_at' | 'revoked_at'): Promise<void> {
  await tx.query(`update invitation set ${how} = now() where id = $1`, [id])
}
