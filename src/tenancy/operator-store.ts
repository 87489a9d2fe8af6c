import type { Sql } from '../db/pool.ts'

/** The workspace and the scope of a project in one environment; undefined for a project that is not there or was deleted. */
export async function selectProjectScope(
  sql: Sql,
  projectId: string,
  environment: string,
): Promise<{ scopeId: number; workspaceId: string } | undefined> {
  const [row] = await sql.query<{ id: number; workspace_id: string }>(
    `select s.id, p.workspace_id
     from project p
     join scope s on s.project_id = p.id and s.environment = $2
     where p.id = $1
       and p.deleted_at is null`,
    [projectId, environment],
  )
  return row && { scopeId: row.id, workspaceId: row.workspace_id }
}

/** All that are there, over all workspaces. */
export async function selectProjectIds(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `select id from project where deleted_at is null order by created_at desc limit $1`,
    [limit],
  )
  return rows.map(({ id }) => id)
}

export interface KeyFigures {
  workspaces: number
  /** Secret keys that work now, and those of them that end within 14 days. */
  usable: number
  expiring: number
  /** Workspaces whose access is not `active`. */
  blocked: number
}

export async function selectKeyFigures(sql: Sql): Promise<KeyFigures> {
  const [figures] = await sql.query<KeyFigures>(
    `select
       (select count(*)::int from workspace) as workspaces,
       (select count(*)::int from workspace where access <> 'active') as blocked,
       count(*)::int as usable,
       count(*) filter (where expires_at < now() + interval '14 days')::int as expiring
     from secret_key
     where revoked_at is null
       and (expires_at is null or expires_at > now())`,
  )
  return figures ?? { workspaces: 0, usable: 0, expiring: 0, blocked: 0 }
}
