import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { ClientRuntime, Environment, Project } from './types.ts'

const columns = 'id, workspace_id, name, deliver_always, client_runtime, created_at'

interface ProjectRow {
  id: string
  workspace_id: string
  name: string
  deliver_always: boolean | null
  /** As written here. */
  client_runtime: ClientRuntime | null
  created_at: Date
}

function projectOf(row: ProjectRow): Project {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    deliverAlways: row.deliver_always,
    clientRuntime: row.client_runtime,
    createdAt: row.created_at,
  }
}

export async function insertProject(tx: Tx, project: Pick<Project, 'id' | 'workspaceId' | 'name'>): Promise<Project[]> {
  const rows = await tx.query<ProjectRow>(
    `insert into project (id, workspace_id, name)
     values ($1, $2, $3)
     returning ${columns}`,
    [project.id, project.workspaceId, project.name],
  )
  return rows.map(projectOf)
}

/** The numbers of the project's two scopes. */
export async function insertScopes(tx: Tx, projectId: string): Promise<{ id: number; environment: Environment }[]> {
  return tx.query<{ id: number; environment: Environment }>(
    `insert into scope (project_id, environment)
     values ($1, 'test'), ($1, 'live')
     returning id, environment`,
    [projectId],
  )
}

export async function selectProjects(sql: Sql, workspaceId: string, { limit, after }: Page): Promise<Project[]> {
  const rows = await sql.query<ProjectRow>(
    `select ${columns}
     from project
     where workspace_id = $1
       and deleted_at is null
       and ($2::text is null or (created_at, id) < (select created_at, id from project where workspace_id = $1 and id = $2))
     order by created_at desc, id desc
     limit $3`,
    [workspaceId, after, limit],
  )
  return rows.map(projectOf)
}

/** `lock`: nobody changes or deletes it before this transaction ends. */
export async function selectProject(
  sql: Sql,
  workspaceId: string,
  id: string,
  { lock }: { lock: boolean },
): Promise<Project | undefined> {
  const rows = await sql.query<ProjectRow>(
    `select ${columns}
     from project
     where workspace_id = $1
       and id = $2
       and deleted_at is null
     ${lock ? 'for update' : ''}`,
    [workspaceId, id],
  )
  return rows.map(projectOf)[0]
}

export async function updateProjectRow(
  tx: Tx,
  { id, name, deliverAlways, clientRuntime }: Omit<Project, 'workspaceId' | 'createdAt'>,
): Promise<void> {
  await tx.query(
    `update project
     set name = $2, deliver_always = $3, client_runtime = $4::jsonb
     where id = $1`,
    [id, name, deliverAlways, clientRuntime && JSON.stringify(clientRuntime)],
  )
}

export async function markProjectDeleted(tx: Tx, id: string): Promise<void> {
  await tx.query(`update project set deleted_at = now() where id = $1`, [id])
}
