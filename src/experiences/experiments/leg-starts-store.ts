import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Of the versions that there are. */
export function selectDrafts(
  sql: Sql,
  { scopeId }: Scope,
  versionIds: readonly string[],
): Promise<{ versionId: string; draft: string }[]> {
  return sql.query(
    `select public_id as "versionId", draft
     from experience_version
     where public_id = any($2)
       and scope_id = $1`,
    [scopeId, versionIds],
  )
}
