import type { Sql, Tx } from '../db/pool.ts'
import type { Workspace } from './types.ts'

const columns = 'w.id, w.name, w.slug, w.logo, w.created_at'

interface WorkspaceRow {
  id: string
  name: string
  slug: string
  logo: string | null
  created_at: Date
}

function workspaceOf({ id, name, slug, logo, created_at }: WorkspaceRow): Workspace {
  return { id, name, slug, logo, createdAt: created_at }
}

/** Nothing when the slug is taken. */
export async function insertOwnedWorkspace(
  tx: Tx,
  { id, name, slug, ownerId }: { id: string; name: string; slug: string; ownerId: string },
): Promise<Workspace | undefined> {
  const rows = await tx.query<WorkspaceRow>(
    `insert into workspace as w (id, name, slug)
     values ($1, $2, $3)
     on conflict (slug) do nothing
     returning ${columns}`,
    [id, name, slug],
  )
  if (rows.length > 0) {
    await tx.query(`insert into member (workspace_id, user_id, role) values ($1, $2, 'owner')`, [id, ownerId])
  }
  return rows.map(workspaceOf)[0]
}

export async function selectWorkspacesOf(sql: Sql, userId: string, limit: number): Promise<Workspace[]> {
  const rows = await sql.query<WorkspaceRow>(
    `select ${columns}
     from member m
     join workspace w on w.id = m.workspace_id
     where m.user_id = $1
     order by w.created_at desc, w.id desc
     limit $2`,
    [userId, limit],
  )
  return rows.map(workspaceOf)
}

/** The user's row is held: two requests can't both take the last place. */
export async function countWorkspacesOf(tx: Tx, userId: string): Promise<number> {
  await tx.query(`select 1 from users where id = $1 for update`, [userId])
  const [row] = await tx.query<{ count: number }>(`select count(*)::int as count from member where user_id = $1`, [
    userId,
  ])
  return row?.count ?? 0
}

/** `lock`: nobody changes it, its members, invitations or secret keys before this transaction ends. */
export async function selectWorkspace(
  sql: Sql,
  id: string,
  { lock }: { lock: boolean },
): Promise<Workspace | undefined> {
  const rows = await sql.query<WorkspaceRow>(
    `select ${columns} from workspace w where w.id = $1 ${lock ? 'for no key update' : ''}`,
    [id],
  )
  return rows.map(workspaceOf)[0]
}

/** Nothing when the slug is taken: no other row is written. */
export async function updateWorkspaceRow(
  tx: Tx,
  { id, name, slug, logo }: Pick<Workspace, 'id' | 'name' | 'slug' | 'logo'>,
): Promise<Workspace | undefined> {
  const rows = await tx.query<WorkspaceRow>(
    `update workspace w
     set name = $2, slug = $3, logo = $4
     where w.id = $1
       and not exists (select 1 from workspace o where o.slug = $3 and o.id <> $1)
     returning ${columns}`,
    [id, name, slug, logo],
  )
  return rows.map(workspaceOf)[0]
}
