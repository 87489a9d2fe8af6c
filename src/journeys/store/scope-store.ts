import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** In the order of their numbers. */
export async function selectScopes(sql: Sql, scopeIds: readonly number[]): Promise<Scope[]> {
  return sql.query<Scope>(
    `select s.id as "scopeId", p.workspace_id as "workspaceId", s.project_id as "projectId", s.environment
     from scope s
     join project p on p.id = s.project_id
     where s.id = any($1)
     order by s.id`,
    [scopeIds],
  )
}
