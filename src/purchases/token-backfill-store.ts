import type { Sql, Tx } from '../db/pool.ts'
import type { Environment, Scope } from '../tenancy/index.ts'
import type { IndexingApp } from './token-index-store.ts'
import type { Ms, StoreSettings } from './types.ts'

/** An app with credentials of its store, and of what the tokens written so far were made. */
export interface BackfilledApp extends IndexingApp {
  scope: Scope
  basis: string | null
}

export async function selectBackfilledApps(sql: Sql): Promise<BackfilledApp[]> {
  const rows = await sql.query<{
    scope_id: number
    workspace_id: string
    project_id: string
    environment: Environment
    id: string
    platform: 'ios' | 'android'
    bundle_id: string | null
    account_token_namespace: string
    settings: Partial<StoreSettings> | null
    basis: string | null
  }>(
    `select c.scope_id, p.workspace_id, s.project_id, s.environment, a.id, a.platform, a.bundle_id, a.account_token_namespace,
       st.settings, b.basis
     from store_credential c
     join scope s on s.id = c.scope_id
     join project p on p.id = s.project_id and p.deleted_at is null
     join app a on a.id = c.app_id and a.deleted_at is null
     left join store_setting st on st.scope_id = c.scope_id and st.app_id = a.id
     left join account_token_backfill b on b.scope_id = c.scope_id and b.app_id = a.id
     where c.kind = case a.platform when 'ios' then 'appstore' when 'android' then 'playstore' end`,
  )
  return rows.map((row) => ({
    scope: {
      ...{ scopeId: row.scope_id, workspaceId: row.workspace_id },
      ...{ projectId: row.project_id, environment: row.environment },
    },
    ...{ appId: row.id, platform: row.platform, bundleId: row.bundle_id, settings: row.settings, basis: row.basis },
    accountTokenNamespace: row.account_token_namespace,
  }))
}

/** Ids that come while an app has no credentials are nobody's: with new ones it begins anew. */
export async function deleteStaleBackfills(sql: Sql): Promise<void> {
  await sql.query(
    `delete from account_token_backfill b
     where not exists (
       select
       from store_credential c
       where c.scope_id = b.scope_id
         and c.app_id = b.app_id
         and c.kind in ('appstore', 'playstore')
     )`,
  )
}

export async function beginBackfill(
  sql: Sql,
  { scope, appId }: BackfilledApp,
  { basis, passes, now }: { basis: string; passes: number; now: Ms },
): Promise<void> {
  await sql.query(
    `insert into account_token_backfill as b (scope_id, app_id, basis, after_distinct_id, passes_left, due_at_ms)
     values ($1, $2, $3, '', $4, $5)
     on conflict (scope_id, app_id) do update
     set basis = excluded.basis, after_distinct_id = '', passes_left = excluded.passes_left, due_at_ms = excluded.due_at_ms
     where b.basis <> excluded.basis`,
    [scope.scopeId, appId, basis, passes, now],
  )
}

export interface Backfill {
  after: string
  passesLeft: number
}

/** Undefined: not due, or another process is at it. */
export async function lockBackfill(
  tx: Tx,
  { scope, appId }: BackfilledApp,
  { basis, now }: { basis: string; now: Ms },
): Promise<Backfill | undefined> {
  const [row] = await tx.query<{ after_distinct_id: string; passes_left: number }>(
    `select after_distinct_id, passes_left
     from account_token_backfill
     where scope_id = $1
       and app_id = $2
       and basis = $3
       and due_at_ms <= $4
     for update skip locked`,
    [scope.scopeId, appId, basis, now],
  )
  return row && { after: row.after_distinct_id, passesLeft: row.passes_left }
}

export async function moveBackfill(
  tx: Tx,
  { scope, appId }: BackfilledApp,
  { after, passesLeft, dueAt }: Backfill & { dueAt: Ms | null },
): Promise<void> {
  await tx.query(
    `update account_token_backfill
     set after_distinct_id = $3, passes_left = $4, due_at_ms = $5
     where scope_id = $1
       and app_id = $2`,
    [scope.scopeId, appId, after, passesLeft, dueAt],
  )
}

/** Held until the end: a merge or a deletion of one of them waits, and finds what was written. */
export async function selectNames(
  tx: Tx,
  scope: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<{ distinctId: string; customerId: string }[]> {
  const rows = await tx.query<{ distinct_id: string; customer_id: string }>(
    `select distinct_id, customer_id
     from customer_alias
     where scope_id = $1
       and distinct_id > $2
     order by distinct_id
     limit $3
     for share`,
    [scope.scopeId, after, limit],
  )
  return rows.map((row) => ({ distinctId: row.distinct_id, customerId: row.customer_id }))
}
