import { texts, uuids } from '../db/binary-array.ts'
import type { Tx } from '../db/pool.ts'
import { newId } from '../kernel/ids.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Ms, Store, StoreSettings } from './types.ts'

export interface IndexingApp {
  appId: string
  platform: 'ios' | 'android'
  bundleId: string | null
  accountTokenNamespace: string
  settings: Partial<StoreSettings> | null
}

/** Apps of the scope that have credentials of their store. */
export async function selectIndexingApps(tx: Tx, scope: Scope): Promise<IndexingApp[]> {
  const rows = await tx.query<{
    id: string
    platform: 'ios' | 'android'
    bundle_id: string | null
    account_token_namespace: string
    settings: Partial<StoreSettings> | null
  }>(
    `select a.id, a.platform, a.bundle_id, a.account_token_namespace, s.settings
     from store_credential c
     join app a on a.id = c.app_id and a.deleted_at is null
     left join store_setting s on s.scope_id = c.scope_id and s.app_id = a.id
     where c.scope_id = $1
       and c.kind = case a.platform when 'ios' then 'appstore' when 'android' then 'playstore' end`,
    [scope.scopeId],
    'purchases_indexing_apps',
  )
  return rows.map((row) => ({
    appId: row.id,
    platform: row.platform,
    bundleId: row.bundle_id,
    accountTokenNamespace: row.account_token_namespace,
    settings: row.settings,
  }))
}

export interface IndexedToken {
  appId: string
  store: Store
  value: string
  customerId: string
}

/** What somebody registered stays theirs; what a rule gives follows the id. */
export async function upsertTokens(tx: Tx, scope: Scope, tokens: IndexedToken[], now: Ms): Promise<void> {
  await tx.query(
    `insert into account_binding as b (scope_id, public_id, app_id, store, value, customer_id, source, created_at_ms)
     select $1, public_id, app_id, store, value, customer_id, 'rule', $2
     from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[])
       as q(public_id, app_id, store, value, customer_id)
     order by value
     on conflict (scope_id, app_id, store, value) do update
     set customer_id = excluded.customer_id
     where b.source = 'rule'
       and b.customer_id <> excluded.customer_id`,
    [
      ...[scope.scopeId, now, texts(tokens.map(() => newId('bind'))), texts(tokens.map(({ appId }) => appId))],
      ...[texts(tokens.map(({ store }) => store)), texts(tokens.map(({ value }) => value))],
      uuids(tokens.map(({ customerId }) => customerId)),
    ],
    'purchases_index_tokens',
  )
}

/** Purchases that nobody has and that carry one of these are looked at again. */
export async function wakeWaiting(tx: Tx, scope: Scope, tokens: IndexedToken[], now: Ms): Promise<void> {
  await tx.query(
    `update store_lineage l
     set next_check_at_ms = $2
     from unnest($3::text[], $4::text[], $5::text[]) as q(app_id, store, value)
     where l.scope_id = $1
       and l.app_id = q.app_id
       and l.store = q.store
       and l.account_token = q.value
       and l.owner_customer_id is null
       and not l.owner_deleted`,
    [
      ...[scope.scopeId, now, texts(tokens.map(({ appId }) => appId))],
      ...[texts(tokens.map(({ store }) => store)), texts(tokens.map(({ value }) => value))],
    ],
    'purchases_wake_waiting',
  )
}
