import type { Sql } from '../../db/pool.ts'
import type { Environment, Scope } from '../../tenancy/index.ts'
import type { Store } from '../types.ts'

interface ScopeRow {
  id: number
  workspace_id: string
  project_id: string
  environment: Environment
}

const scopeOf = (row: ScopeRow): Scope => ({
  ...{ scopeId: row.id, workspaceId: row.workspace_id, projectId: row.project_id, environment: row.environment },
})

/** The environments in which an app has credentials of a store, live first. */
export async function selectScopesOfApp(sql: Sql, appId: string, kind: Store): Promise<Scope[]> {
  const rows = await sql.query<ScopeRow>(
    `select s.id, p.workspace_id, s.project_id, s.environment
     from app a
     join project p on p.id = a.project_id
     join scope s on s.project_id = a.project_id
     where a.id = $1
       and a.deleted_at is null
       and exists (
         select
         from store_credential c
         where c.scope_id = s.id
           and c.app_id = a.id
           and c.kind = $2
       )
     order by s.environment = 'live' desc`,
    [appId, kind],
  )
  return rows.map(scopeOf)
}

export async function existsApp(sql: Sql, appId: string): Promise<boolean> {
  const rows = await sql.query<{ id: string }>(`select id from app where id = $1 and deleted_at is null`, [appId])
  return rows.length > 0
}

export async function selectScope(sql: Sql, scopeId: number): Promise<Scope | undefined> {
  const rows = await sql.query<ScopeRow>(
    `select s.id, p.workspace_id, s.project_id, s.environment
     from scope s
     join project p on p.id = s.project_id
     where s.id = $1`,
    [scopeId],
  )
  return rows.map(scopeOf)[0]
}
