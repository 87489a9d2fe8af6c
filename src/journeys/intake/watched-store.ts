import type { Sql, Tx } from '../../db/pool.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { Scope } from '../../tenancy/index.ts'

/** By the primary keys of scope and publication. */
const readRevision: Statement = {
  name: 'journeys_revision',
  text: `
    select s.revision
    from scope s
    where s.id = $1
      and exists (select from publication p where p.scope_id = $1)`,
}

/** Of the scope's catalogue; null when nothing was ever published there. */
export async function selectPublishedRevision(tx: Tx, { scopeId }: Scope): Promise<string | null> {
  const [row] = await raw(tx.client, readRevision, [scopeId])
  return row?.[0] ?? null
}

/** Every build that was ever live: journeys of old ones may be open. */
export async function selectBuilds(sql: Sql, { scopeId }: Scope): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `select distinct build_id as id
     from publication
     where scope_id = $1`,
    [scopeId],
  )
  return rows.map(({ id }) => id)
}

export async function selectPlans(
  sql: Sql,
  { scopeId }: Scope,
  buildIds: string[],
): Promise<{ id: string; plan: string }[]> {
  return sql.query<{ id: string; plan: string }>(
    `select distinct on (build_id) build_id as id, plan
     from publication
     where scope_id = $1
       and build_id = any($2)
     order by build_id`,
    [scopeId, buildIds],
  )
}
