import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Store, StoreApp } from '../types.ts'
import { erasedBecause } from './about.ts'

export interface NotificationRow {
  id: bigint
  app_id: string
  store: Store
  notification_id: string
  kind: string
  status: 'waiting' | 'done' | 'ignored' | 'dead'
  attempts: number
  error: string | null
  received_at_ms: bigint
}

const columns = 'id, app_id, store, notification_id, kind, status, attempts, error, received_at_ms'

/** Uses store_inbox_dead. */
export function selectDeadNotifications(
  sql: Sql,
  { scopeId }: Scope,
  { limit, after }: Page,
): Promise<NotificationRow[]> {
  return sql.query<NotificationRow>(
    `select ${columns}
     from store_inbox
     where scope_id = $1
       and status = 'dead'
       and ($3::bigint is null or id < $3)
     order by id desc
     limit $2`,
    [scopeId, limit, after],
  )
}

export function selectNotification(sql: Sql, scopeIds: number[], id: bigint): Promise<NotificationRow[]> {
  return sql.query<NotificationRow>(`select ${columns} from store_inbox where id = $2 and scope_id = any($1)`, [
    scopeIds,
    id,
  ])
}

export function reviveNotification(tx: Tx, scopeIds: number[], id: bigint): Promise<NotificationRow[]> {
  return tx.query<NotificationRow>(
    `update store_inbox
     set status = 'waiting', attempts = 0, due_at_ms = (extract(epoch from clock_timestamp()) * 1000)::bigint
     where id = $2
       and scope_id = any($1)
       and status = 'dead'
     returning ${columns}`,
    [scopeIds, id],
  )
}

/**
 * Forgets what waiting and dead notifications say of customers: of their purchases and of their account tokens. Before those
 * are erased. What the store thinks of the purchase by now is found by reading it again.
 */
export async function eraseNotifications(tx: Tx, scope: Scope, customerIds: string[]): Promise<void> {
  await tx.query(
    `with keys as (
       select root_key as key
       from store_lineage
       where scope_id = $1
         and owner_customer_id = any($2::uuid[])
       union
       select t.evidence_key
       from store_lineage l
       join store_transaction t on t.scope_id = l.scope_id and t.lineage_id = l.id
       where l.scope_id = $1
         and l.owner_customer_id = any($2::uuid[])
       union
       select value
       from account_binding
       where scope_id = $1
         and customer_id = any($2::uuid[])
     )
     update store_inbox
     set payload = payload - 'sealed' - 'about', status = 'ignored', error = $4, due_at_ms = null
     where scope_id in (select id from scope where project_id = $3)
       and (status = 'dead' or due_at_ms is not null)
       and payload -> 'about' ?| array(select key from keys)`,
    [scope.scopeId, customerIds, scope.projectId, erasedBecause],
  )
}

/** Whether a purchase with one of these keys is a deleted customer's, in either environment of the project. */
export async function isOfErased(
  sql: Sql,
  { scopeId, appId, store }: { scopeId: number; appId: StoreApp['appId']; store: Store },
  keys: string[],
): Promise<boolean> {
  const [row] = await sql.query<{ is: boolean }>(
    `with place as (
       select other.id
       from scope own
       join scope other on other.project_id = own.project_id
       where own.id = $1
     ), held as (
       select l.owner_deleted
       from store_lineage l
       where l.scope_id in (select id from place)
         and l.app_id = $2
         and l.store = $3
         and l.store_environment in ('production', 'sandbox', 'xcode')
         and l.root_key = any($4)
       union all
       select l.owner_deleted
       from store_transaction t
       join store_lineage l on l.scope_id = t.scope_id and l.id = t.lineage_id
       where t.scope_id in (select id from place)
         and t.app_id = $2
         and t.store = $3
         and t.store_environment in ('production', 'sandbox', 'xcode')
         and t.evidence_key = any($4)
     )
     select coalesce(bool_or(owner_deleted), false) as is
     from held`,
    [scopeId, appId, store, keys],
  )
  return row?.is === true
}
