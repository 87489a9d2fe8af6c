import { randomUUID } from 'node:crypto'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Environment, Scope } from '../../tenancy/index.ts'

/** Ids are hashes, so the next ones after a random place are random customers; around the end it begins again. */
export async function auditedCustomers(
  tx: Tx,
  { scopeId }: Scope,
  { customers, since }: { customers: number; since: number | null },
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id
     from (
       (
         select id, created_at, 0 as round
         from customer
         where scope_id = $1
           and id >= $2
           and merged_into is null
         order by id
         limit $3
       )
       union all
       (
         select id, created_at, 1
         from customer
         where scope_id = $1
           and id < $2
           and merged_into is null
         order by id
         limit $3
       )
     ) around
     where $4::timestamptz is null
       or created_at > $4
     order by round, id
     limit $3`,
    [scopeId, randomUUID(), customers, since === null ? null : new Date(since).toISOString()],
  )
  return rows.map(({ id }) => id)
}

export async function saveAudit(
  tx: Tx,
  { scopeId }: Scope,
  { checked, repaired }: { checked: number; repaired: number },
): Promise<void> {
  await tx.query(
    `update segment_set
     set audited_at = clock_timestamp(),
       audited = audited + $2,
       repaired = repaired + $3
     where scope_id = $1`,
    [scopeId, checked, repaired],
  )
}

/** Lanes with segments that were not audited for so long. */
export async function lanesToAudit(sql: Sql, hours: number): Promise<Scope[]> {
  const rows = await sql.query<{
    scope_id: number
    workspace_id: string
    project_id: string
    environment: Environment
  }>(
    `select s.scope_id, project.workspace_id, scope.project_id, scope.environment
     from segment_set s
     join scope on scope.id = s.scope_id
     join project on project.id = scope.project_id
     where s.audited_at <= clock_timestamp() - $1 * interval '1 hour'`,
    [hours],
  )
  return rows.map((row) => ({
    scopeId: row.scope_id,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    environment: row.environment,
  }))
}

/** Customers counted again by audits, and how many of them were put right. */
export async function selectAudits(sql: Sql): Promise<{ audited: number; repaired: number }> {
  const [row] = await sql.query<{ audited: bigint; repaired: bigint }>(
    'select coalesce(sum(audited), 0)::bigint as audited, coalesce(sum(repaired), 0)::bigint as repaired from segment_set',
  )
  return { audited: Number(row?.audited ?? 0), repaired: Number(row?.repaired ?? 0) }
}
