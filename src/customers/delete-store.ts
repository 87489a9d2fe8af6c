import type { Sql, Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Buried } from './delete.ts'
import { raiseRevs } from './rev-store.ts'
import type { Erasure } from './types.ts'

export async function insertTombstones(
  tx: Tx,
  scope: Scope,
  distinctIds: string[],
  tombstoneKey: Buffer,
): Promise<void> {
  await tx.query(
    `insert into customer_tombstone (scope_id, id_hash)
     select $1, sha256($3::bytea || convert_to(id, 'UTF8'))
     from unnest($2::text[]) as q(id)
     on conflict do nothing`,
    [scope.scopeId, distinctIds, tombstoneKey],
  )
}

/** False when the customers have other distinct ids by now. In the order in which others lock: customers first, by id. */
export async function deleteRows(tx: Tx, scope: Scope, customerIds: string[], distinctIds: string[]): Promise<boolean> {
  await tx.query(
    `select id
     from customer
     where scope_id = $1
       and id = any($2::uuid[])
     order by id
     for update`,
    [scope.scopeId, customerIds],
  )
  await tx.query('delete from customer where scope_id = $1 and id = any($2::uuid[])', [scope.scopeId, customerIds])
  const aliases = await tx.query(
    `delete from customer_alias
     where scope_id = $1
       and customer_id = any($2::uuid[])
     returning 1`,
    [scope.scopeId, customerIds],
  )
  await raiseRevs(
    tx,
    customerIds.map((customerId) => ({ scopeId: scope.scopeId, customerId })),
  )
  return aliases.length === distinctIds.length
}

/** The events that name one of the ids as the one to be joined, whoever sent them. */
export async function selectMentions(sql: Sql, scope: Scope, distinctIds: string[]): Promise<string[]> {
  const rows = await sql.query<{ event_uuid: string }>(
    `select distinct event_uuid
     from merge_journal
     where scope_id = $1
       and source_distinct_id = any($2::text[])
       and event_uuid is not null`,
    [scope.scopeId, distinctIds],
  )
  return rows.map(({ event_uuid: uuid }) => uuid)
}

export async function insertDeletion(
  tx: Tx,
  scope: Scope,
  { pos, customerId, work }: { pos: bigint; customerId: string; work: Erasure },
): Promise<void> {
  await tx.query(
    `insert into customer_change (scope_id, pos, kind, customer_id, work)
     values ($1, $2, 'delete', $3, $4)`,
    [scope.scopeId, pos, customerId, JSON.stringify(work)],
  )
}

/** Customers that have a distinct id with a tombstone. Reads every distinct id there is. */
export async function selectBuried(sql: Sql, tombstoneKey: Buffer, limit: number): Promise<Buried[]> {
  const rows = await sql.query<{
    scope_id: number
    environment: Scope['environment']
    project_id: string
    workspace_id: string
    customer_id: string
  }>(
    `select distinct a.scope_id, s.environment, s.project_id, p.workspace_id, a.customer_id
     from customer_alias a
     join customer_tombstone t on t.scope_id = a.scope_id and t.id_hash = sha256($1::bytea || convert_to(a.distinct_id, 'UTF8'))
     join scope s on s.id = a.scope_id
     join project p on p.id = s.project_id
     limit $2`,
    [tombstoneKey, limit],
  )
  return rows.map(({ scope_id, environment, project_id, workspace_id, customer_id }) => ({
    scope: { scopeId: scope_id, environment, projectId: project_id, workspaceId: workspace_id },
    customerId: customer_id,
  }))
}
