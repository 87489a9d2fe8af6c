import { takeNamed } from '../db/named-lock.ts'
import type { Sql, Tx } from '../db/pool.ts'
import { newId } from '../kernel/ids.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Lineage, Place } from './lineage-store.ts'
import type { Ms, OutboxItem, PurchaseIdentity, Store } from './types.ts'

export async function selectResult(sql: Sql, place: Place, evidenceKey: string): Promise<PurchaseIdentity | undefined> {
  const rows = await sql.query<{ body: PurchaseIdentity }>(
    `select body
     from purchase_result
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = $5`,
    [...keyOf(place), evidenceKey],
  )
  return rows[0]?.body
}

export async function insertResult(
  tx: Tx,
  place: Place,
  { evidenceKey, customerId, body, now }: { evidenceKey: string; customerId: string; body: PurchaseIdentity; now: Ms },
): Promise<void> {
  await tx.query(
    `insert into purchase_result (scope_id, app_id, store, store_environment, evidence_key, customer_id, body, created_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
     on conflict do nothing`,
    [...keyOf(place), evidenceKey, customerId, JSON.stringify(body), now],
  )
}

export interface NewClaim {
  evidenceKey: string
  customerId: string | null
  distinctId: string
  reason: string
  storeProductId: string | null
  evidenceSealed: string | null
  now: Ms
  expiresAt: Ms
}

export async function upsertClaim(tx: Sql, place: Place, claim: NewClaim): Promise<void> {
  await tx.query(
    `insert into pending_claim (scope_id, app_id, store, store_environment, evidence_key, customer_id, distinct_id, reason,
       store_product_id, evidence_sealed, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (scope_id, app_id, store, store_environment, evidence_key) do update
     set customer_id = excluded.customer_id,
       distinct_id = excluded.distinct_id,
       reason = excluded.reason,
       store_product_id = excluded.store_product_id,
       evidence_sealed = excluded.evidence_sealed,
       expires_at_ms = excluded.expires_at_ms`,
    [
      ...keyOf(place),
      ...[claim.evidenceKey, claim.customerId, claim.distinctId, claim.reason, claim.storeProductId],
      ...[claim.evidenceSealed, claim.now, claim.expiresAt],
    ],
  )
}

/** Who is waiting for any of these. */
export async function selectClaim(
  sql: Sql,
  place: Place,
  evidenceKeys: string[],
  now: Ms,
): Promise<{ distinctId: string } | undefined> {
  const rows = await sql.query<{ distinct_id: string }>(
    `select distinct_id
     from pending_claim
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = any($5::text[])
       and expires_at_ms > $6
     order by created_at_ms
     limit 1`,
    [...keyOf(place), evidenceKeys, now],
  )
  return rows.map((row) => ({ distinctId: row.distinct_id }))[0]
}

export async function deleteClaims(tx: Tx, place: Place, evidenceKeys: string[]): Promise<void> {
  await tx.query(
    `delete from pending_claim
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = any($5::text[])`,
    [...keyOf(place), evidenceKeys],
  )
}

/** By the wall clock: stores are told now, whatever a test clock says. */
const wallMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** Once each, ever: what was done is not done again. */
export async function insertOutbox(tx: Tx, place: Place, items: readonly OutboxItem[]): Promise<void> {
  for (const { kind, key, payload, deadline } of items) {
    await tx.query(
      `insert into store_outbox (scope_id, app_id, store, store_environment, kind, key, payload, due_at_ms, deadline_ms,
         created_at_ms)
       values ($1, $2, $3, $4, $5, $6, $7::jsonb, ${wallMs}, $8, ${wallMs})
       on conflict (scope_id, app_id, store, store_environment, kind, key) do nothing`,
      [...keyOf(place), kind, key, JSON.stringify(payload), deadline],
    )
  }
}

export interface Binding {
  scopeId: number
  publicId: string
  appId: string
  store: Store
  value: string
  customerId: string
  createdAt: Ms
}

/**
 * Held by whoever says whose an account token is, and by whoever writes down the first purchase that carries it: the second of them
 * finds what the first one did. Before any lineage is locked.
 */
export async function lockToken(
  tx: Tx,
  scope: Scope,
  token: Pick<Binding, 'appId' | 'store' | 'value'>,
): Promise<void> {
  const name = JSON.stringify(['account_token', token.appId, token.store, token.value])
  await takeNamed(tx, { scopeId: scope.scopeId, name })
}

export async function selectBinding(
  sql: Sql,
  scope: Scope,
  { appId, store, value }: { appId: string; store: Store; value: string },
): Promise<Binding | undefined> {
  const rows = await sql.query<{ public_id: string; customer_id: string; created_at_ms: bigint }>(
    `select public_id, customer_id, created_at_ms
     from account_binding
     where scope_id = $1
       and app_id = $2
       and store = $3
       and value = $4`,
    [scope.scopeId, appId, store, value],
  )
  return rows.map((row) => ({
    ...{ scopeId: scope.scopeId, publicId: row.public_id, appId, store, value },
    ...{ customerId: row.customer_id, createdAt: Number(row.created_at_ms) },
  }))[0]
}

/** False when the value is somebody's already. */
export async function insertBinding(
  tx: Tx,
  scope: Scope,
  binding: Pick<Binding, 'appId' | 'store' | 'value' | 'customerId'> & {
    source: 'rule' | 'registered' | 'first_claim' | 'checkout'
    now: Ms
  },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into account_binding (scope_id, public_id, app_id, store, value, customer_id, source, created_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (scope_id, app_id, store, value) do nothing
     returning id`,
    [
      ...[scope.scopeId, newId('bind'), binding.appId, binding.store, binding.value, binding.customerId],
      ...[binding.source, binding.now],
    ],
  )
  return rows.length === 1
}

export interface Transfer {
  fromId: string | null
  toId: string
  cause: 'claim' | 'operator'
  actor: string | null
  reason: string | null
  at: Ms
}

export async function insertTransfer(tx: Tx, lineage: Lineage, transfer: Transfer): Promise<void> {
  await tx.query(
    `insert into purchase_transfer (scope_id, lineage_id, from_customer_id, to_customer_id, cause, actor, reason, at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[lineage.scopeId, lineage.id, transfer.fromId, transfer.toId, transfer.cause],
      ...[transfer.actor, transfer.reason, transfer.at],
    ],
  )
}

/** Newest first. */
export async function selectTransfers(sql: Sql, lineage: Lineage, limit: number): Promise<Transfer[]> {
  const rows = await sql.query<{
    from_customer_id: string | null
    to_customer_id: string
    cause: Transfer['cause']
    actor: string | null
    reason: string | null
    at_ms: bigint
  }>(
    `select from_customer_id, to_customer_id, cause, actor, reason, at_ms
     from purchase_transfer
     where scope_id = $1
       and lineage_id = $2
     order by id desc
     limit $3`,
    [lineage.scopeId, lineage.id, limit],
  )
  return rows.map((row) => ({
    fromId: row.from_customer_id,
    toId: row.to_customer_id,
    cause: row.cause,
    actor: row.actor,
    reason: row.reason,
    at: Number(row.at_ms),
  }))
}

function keyOf({ scope, appId, store, storeEnvironment }: Place): [number, string, string, string] {
  return [scope.scopeId, appId, store, storeEnvironment]
}
