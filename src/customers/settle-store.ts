import type { Sql, Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Erasure } from './types.ts'

/** A row of customer_change that is not settled, held by this transaction. */
export interface Change {
  scope: Scope
  pos: bigint
  kind: 'merge' | 'split' | 'delete'
  customerId: string
  sourceCustomerId: string | null
  /** Unix milliseconds. */
  at: number
  work: unknown
}

interface ChangeRow {
  scope_id: number
  workspace_id: string
  project_id: string
  environment: Scope['environment']
  pos: bigint
  kind: Change['kind']
  customer_id: string
  source_customer_id: string | null
  at_ms: number
  work: unknown
}

/**
 * The oldest change of a scope, or of the next scope that has one. Undefined too while somebody else holds it: the changes of
 * a scope come one after the other.
 */
export async function lockNextChange(
  tx: Tx,
  which: { afterScope: number } | { scopeId: number },
): Promise<Change | undefined> {
  const after = 'afterScope' in which
  const [row] = await tx.query<ChangeRow>(
    `select c.scope_id, p.workspace_id, s.project_id, s.environment, c.pos, c.kind, c.customer_id, c.source_customer_id,
       extract(epoch from c.at)::float8 * 1000 as at_ms, c.work
     from (
       select scope_id, pos
       from customer_change
       where settled_at is null
         and scope_id ${after ? '>' : '='} $1
       order by scope_id, pos
       limit 1
     ) next
     join customer_change c on c.scope_id = next.scope_id and c.pos = next.pos
     join scope s on s.id = c.scope_id
     join project p on p.id = s.project_id
     where c.settled_at is null
     for update of c skip locked`,
    [after ? which.afterScope : which.scopeId],
  )
  return (
    row && {
      scope: {
        scopeId: row.scope_id,
        workspaceId: row.workspace_id,
        projectId: row.project_id,
        environment: row.environment,
      },
      ...{ pos: row.pos, kind: row.kind, customerId: row.customer_id, sourceCustomerId: row.source_customer_id },
      ...{ at: row.at_ms, work: row.work },
    }
  )
}

export async function saveWork(tx: Tx, { scope, pos }: Change, work: object): Promise<void> {
  await tx.query('update customer_change set work = $3 where scope_id = $1 and pos = $2', [
    ...[scope.scopeId, pos],
    JSON.stringify(work),
  ])
}

export async function settleChange(tx: Tx, { scope, pos }: Change): Promise<void> {
  await tx.query(
    `update customer_change
     set settled_at = clock_timestamp(), work = null
     where scope_id = $1
       and pos = $2`,
    [scope.scopeId, pos],
  )
}

export async function eraseJournal(tx: Tx, scope: Scope, { customerIds, distinctIds }: Erasure): Promise<void> {
  await tx.query(
    `update merge_journal
     set source_distinct_id = '', target_distinct_id = '', event_uuid = null, moved = null
     where scope_id = $1
       and (customer_id = any($2::uuid[])
         or source_customer_id = any($2::uuid[])
         or source_distinct_id = any($3::text[])
         or target_distinct_id = any($3::text[]))`,
    [scope.scopeId, customerIds, distinctIds],
  )
}

/** What waits to be settled: changes, the deletions among them, and how long the oldest of these has waited. */
export async function selectBacklog(
  sql: Sql,
): Promise<{ changes: number; deletions: number; oldestDeletionSeconds: number }> {
  const [row] = await sql.query<{ changes: number; deletions: number; seconds: number }>(
    `select count(*)::int as changes, (count(*) filter (where kind = 'delete'))::int as deletions,
       coalesce(extract(epoch from clock_timestamp() - min(at) filter (where kind = 'delete')), 0)::float8 as seconds
     from customer_change
     where settled_at is null`,
  )
  return { changes: row?.changes ?? 0, deletions: row?.deletions ?? 0, oldestDeletionSeconds: row?.seconds ?? 0 }
}
