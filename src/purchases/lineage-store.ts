import type { Sql, Tx } from '../db/pool.ts'
import type { JsonObject } from '../events/index.ts'
import { newId } from '../kernel/ids.ts'
import type { Page } from '../kernel/page.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Ms, Store, StoreApp, StoreEnvironment, VerifiedPurchase } from './types.ts'

export interface Lineage {
  scopeId: number
  id: bigint
  publicId: string
  appId: string
  store: Store
  storeEnvironment: StoreEnvironment
  rootKey: string
  ownerId: string | null
  ownerDeleted: boolean
  accountToken: string | null
  familyShared: boolean
  status: string
  autoRenews: boolean | null
  pendingProduct: string | null
  version: Ms
  lastReadAt: Ms | null
  nextCheckAt: Ms | null
  unpolled: boolean
  extra: JsonObject | null
  attachedAt: Ms | null
  createdAt: Ms
}

interface LineageRow {
  scope_id: number
  id: bigint
  public_id: string
  app_id: string
  store: Store
  store_environment: StoreEnvironment
  root_key: string
  owner_customer_id: string | null
  owner_deleted: boolean
  account_token: string | null
  family_shared: boolean
  status: string
  auto_renews: boolean | null
  pending_product: string | null
  version_ms: bigint
  last_read_at_ms: bigint | null
  next_check_at_ms: bigint | null
  unpolled: boolean
  extra: JsonObject | null
  attached_at_ms: bigint | null
  created_at_ms: bigint
}

const columns = `l.scope_id, l.id, l.public_id, l.app_id, l.store, l.store_environment, l.root_key, l.owner_customer_id, l.owner_deleted,
  l.account_token, l.family_shared, l.status, l.auto_renews, l.pending_product, l.version_ms, l.last_read_at_ms,
  l.next_check_at_ms, l.unpolled, l.extra, l.attached_at_ms, l.created_at_ms`

function lineageOf(row: LineageRow): Lineage {
  return {
    scopeId: row.scope_id,
    id: row.id,
    publicId: row.public_id,
    appId: row.app_id,
    store: row.store,
    storeEnvironment: row.store_environment,
    rootKey: row.root_key,
    ownerId: row.owner_customer_id,
    ownerDeleted: row.owner_deleted,
    accountToken: row.account_token,
    familyShared: row.family_shared,
    status: row.status,
    autoRenews: row.auto_renews,
    pendingProduct: row.pending_product,
    version: Number(row.version_ms),
    lastReadAt: ms(row.last_read_at_ms),
    nextCheckAt: ms(row.next_check_at_ms),
    unpolled: row.unpolled,
    extra: row.extra,
    attachedAt: ms(row.attached_at_ms),
    createdAt: Number(row.created_at_ms),
  }
}

export function ms(value: bigint | null): Ms | null {
  return value === null ? null : Number(value)
}

/** Where a purchase lies: everything of a store is unique for an app and an environment of the store. */
export interface Place {
  scope: Scope
  appId: string
  store: Store
  storeEnvironment: StoreEnvironment
}

export function placeOf({ scope, appId }: StoreApp, { store, storeEnvironment }: VerifiedPurchase): Place {
  return { scope, appId, store, storeEnvironment }
}

/** By its first key, else by a transaction of it; locked when told so. */
export async function selectLineage(
  sql: Sql,
  { scope, appId, store, storeEnvironment }: Place,
  { rootKey, evidenceKeys, lock }: { rootKey: string; evidenceKeys: string[]; lock: boolean },
): Promise<Lineage | undefined> {
  const rows = await sql.query<LineageRow>(
    `select ${columns}
     from store_lineage l
     where l.scope_id = $1
       and l.app_id = $2
       and l.store = $3
       and l.store_environment = $4
       and (
         l.root_key = $5
         or l.id in (
           select t.lineage_id
           from store_transaction t
           where t.scope_id = $1
             and t.app_id = $2
             and t.store = $3
             and t.store_environment = $4
             and t.evidence_key = any($6::text[])
         )
       )
     order by l.root_key = $5 desc, l.id
     limit 1
     ${lock ? 'for update of l' : ''}`,
    [scope.scopeId, appId, store, storeEnvironment, rootKey, evidenceKeys],
  )
  return rows.map(lineageOf)[0]
}

/** Nothing when somebody else was quicker: it can be read then. */
export async function insertLineage(
  tx: Tx,
  place: Place,
  purchase: VerifiedPurchase,
  now: Ms,
): Promise<Lineage | undefined> {
  const rows = await tx.query<LineageRow>(
    `insert into store_lineage as l (scope_id, public_id, app_id, store, store_environment, root_key, account_token,
       family_shared, status, version_ms, created_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (scope_id, app_id, store, store_environment, root_key) do nothing
     returning ${columns}`,
    [
      ...[place.scope.scopeId, newId('pur'), place.appId, place.store, place.storeEnvironment, purchase.rootKey],
      ...[purchase.accountToken, purchase.familyShared, purchase.status, purchase.version, now],
    ],
  )
  return rows.map(lineageOf)[0]
}

/** The state of a newer version. An account token once signed stays: renewals may carry another one. */
export async function updateLineageState(tx: Tx, lineage: Lineage, purchase: VerifiedPurchase): Promise<void> {
  await tx.query(
    `update store_lineage
     set status = $3,
       auto_renews = coalesce($4, auto_renews),
       pending_product = $5,
       version_ms = $6,
       last_read_at_ms = coalesce($7, last_read_at_ms),
       next_check_at_ms = $8,
       unpolled = $9,
       account_token = case when owner_deleted then null else coalesce(account_token, $10) end,
       extra = coalesce($11::jsonb, extra)
     where scope_id = $1
       and id = $2`,
    [
      ...[lineage.scopeId, lineage.id, purchase.status, purchase.autoRenews, purchase.pendingProduct],
      ...[purchase.version, purchase.readAt, purchase.nextCheckAt, purchase.unpolled, purchase.accountToken],
      purchase.extra === null ? null : JSON.stringify(purchase.extra),
    ],
  )
}

export async function updateOwner(
  tx: Tx,
  lineage: Lineage,
  { customerId, now }: { customerId: string; now: Ms },
): Promise<void> {
  await tx.query(
    `update store_lineage
     set owner_customer_id = $3,
       owner_deleted = false,
       attached_at_ms = $4
     where scope_id = $1
       and id = $2`,
    [lineage.scopeId, lineage.id, customerId, now],
  )
}

/** Newest first. `after` is the public id of the last one of the page before. */
export async function selectLineagesOf(
  sql: Sql,
  scope: Scope,
  customerId: string,
  { limit, after }: Page,
): Promise<Lineage[]> {
  const rows = await sql.query<LineageRow>(
    `select ${columns}
     from store_lineage l
     where l.scope_id = $1
       and l.owner_customer_id = $2
       and ($3::text is null or l.id < (select id from store_lineage where public_id = $3))
     order by l.id desc
     limit $4`,
    [scope.scopeId, customerId, after, limit],
  )
  return rows.map(lineageOf)
}

export async function selectLineageById(
  sql: Sql,
  scopes: Scope[],
  publicId: string,
  { lock }: { lock: boolean },
): Promise<Lineage | undefined> {
  const rows = await sql.query<LineageRow>(
    `select ${columns}
     from store_lineage l
     where l.scope_id = any($1::int[])
       and l.public_id = $2
     ${lock ? 'for update of l' : ''}`,
    [scopes.map(({ scopeId }) => scopeId), publicId],
  )
  return rows.map(lineageOf)[0]
}

export async function lockLineageById(tx: Tx, scope: Scope, id: bigint): Promise<Lineage | undefined> {
  const rows = await tx.query<LineageRow>(
    `select ${columns}
     from store_lineage l
     where l.scope_id = $1
       and l.id = $2
     for update of l`,
    [scope.scopeId, id],
  )
  return rows.map(lineageOf)[0]
}

/** Unowned ones that carry a value, for a binding that came later. */
export async function selectUnowned(
  sql: Sql,
  scope: Scope,
  { appId, store, value }: { appId: string; store: Store; value: string },
): Promise<bigint[]> {
  const rows = await sql.query<{ id: bigint }>(
    `select id
     from store_lineage
     where scope_id = $1
       and app_id = $2
       and store = $3
       and account_token = $4
       and owner_customer_id is null
       and not owner_deleted`,
    [scope.scopeId, appId, store, value],
  )
  return rows.map(({ id }) => id)
}
