import type { Sql, Tx } from '../db/pool.ts'
import type { JsonObject } from '../events/index.ts'
import { must } from '../kernel/assert.ts'
import { type Lineage, ms, type Place } from './lineage-store.ts'
import type { Ms, VerifiedPeriod, VerifiedTransaction } from './types.ts'

/** What was paid for at once, as it is kept. */
export interface Period {
  id: bigint
  transactionId: bigint
  evidenceKey: string
  line: string
  storeProductId: string
  basePlanId: string | null
  purchaseOptionId: string | null
  offerId: string | null
  productId: string
  type: 'subscription' | 'one_time'
  quantity: number
  refundedQuantity: number
  orderId: string | null
  startsAt: Ms
  paidUntil: Ms | null
  accessUntil: Ms | null
  revokedAt: Ms | null
  revocation: JsonObject | null
  supersededAt: Ms | null
  grantedTo: string | null
  grantRef: string | null
  grantedUntil: Ms | null
  grantsEnded: boolean
  /** Units of the product that were given at first; null: none yet. */
  grantedQuantity: number | null
  /** Parts of them that refunds took: of the App Store hundred-thousandths, of Google Play whole ones. */
  refundTaken: number
}

/** Its number, and whether what is told of it here is at least as new as what was known. */
export async function upsertTransaction(
  tx: Tx,
  place: Place,
  lineage: Lineage,
  transaction: VerifiedTransaction & { tokenSealed: string | null; now: Ms },
): Promise<{ id: bigint; isNewest: boolean; isSuperseded: boolean }> {
  const key = [place.scope.scopeId, place.appId, place.store, place.storeEnvironment, transaction.evidenceKey]
  const [written] = await tx.query<{ id: bigint; superseded: boolean }>(
    `insert into store_transaction as t (scope_id, app_id, store, store_environment, evidence_key, lineage_id, version_ms,
       token_sealed, superseded_by, claims, created_at_ms, signer)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11, $12)
     on conflict (scope_id, app_id, store, store_environment, evidence_key) do update
     set version_ms = excluded.version_ms,
       token_sealed = coalesce(excluded.token_sealed, t.token_sealed),
       superseded_by = coalesce(t.superseded_by, excluded.superseded_by),
       claims = case when excluded.claims = '{}' then t.claims else excluded.claims end,
       signer = coalesce(excluded.signer, t.signer)
     where t.version_ms <= excluded.version_ms
     returning id, superseded_by is not null as superseded`,
    [
      ...key,
      ...[lineage.id, transaction.version, transaction.tokenSealed, transaction.supersededBy],
      ...[JSON.stringify(transaction.claims), transaction.now, transaction.signer ?? null],
    ],
  )
  if (written) return { id: written.id, isNewest: true, isSuperseded: written.superseded }
  const [known] = await tx.query<{ id: bigint; superseded: boolean }>(
    `select id, superseded_by is not null as superseded
     from store_transaction
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = $5`,
    key,
  )
  const { id, superseded } = must(known, 'it was there already')
  return { id, isNewest: false, isSuperseded: superseded }
}

/** How an access is kept: what never was, or no longer is, has ended. */
export interface StoredAccess {
  accessUntil: Ms | null
  revokedAt: Ms | null
  revocation: JsonObject | null
  supersededAt: Ms | null
}

/** What was sold is fixed once it was granted: quantity and Product stay. */
export async function upsertPeriod(
  tx: Tx,
  lineage: Lineage,
  transactionId: bigint,
  period: VerifiedPeriod & { stored: StoredAccess; now: Ms },
): Promise<void> {
  const { stored } = period
  await tx.query(
    `insert into store_period as p (scope_id, lineage_id, transaction_id, line, period_key, store_product_id, base_plan_id,
       purchase_option_id, offer_id, product_id, type, quantity, order_id, starts_at_ms, paid_until_ms, access_until_ms,
       revoked_at_ms, revocation, superseded_at_ms, created_at_ms, refunded_quantity)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::jsonb, $19, $20, $21)
     on conflict (scope_id, transaction_id, line, period_key) do update
     set product_id = case when p.granted_to is null then excluded.product_id else p.product_id end,
       quantity = case when p.granted_to is null then excluded.quantity else p.quantity end,
       refunded_quantity = greatest(p.refunded_quantity, excluded.refunded_quantity),
       order_id = coalesce(excluded.order_id, p.order_id),
       paid_until_ms = case when $22 then least(p.paid_until_ms, excluded.paid_until_ms) else excluded.paid_until_ms end,
       access_until_ms = excluded.access_until_ms,
       revoked_at_ms = case when $23 then coalesce(p.revoked_at_ms, excluded.revoked_at_ms) else excluded.revoked_at_ms end,
       revocation = case when $23 then coalesce(p.revocation, excluded.revocation) else excluded.revocation end,
       superseded_at_ms = coalesce(p.superseded_at_ms, excluded.superseded_at_ms)`,
    [
      ...[lineage.scopeId, lineage.id, transactionId, period.line, period.key, period.storeProductId],
      ...[period.basePlanId, period.purchaseOptionId, period.offerId, period.mapped.product.publicId, period.type],
      ...[period.quantity, period.orderId, period.startsAt, period.paidUntil, stored.accessUntil, stored.revokedAt],
      ...[stored.revocation === null ? null : JSON.stringify(stored.revocation), stored.supersededAt, period.now],
      // What Google Play took back stays so; the App Store says in what it signs when a refund was reversed.
      ...[period.refundedQuantity ?? 0, period.inGrace ?? false, lineage.store === 'playstore'],
    ],
  )
}

/** Every other period of a subscription that was not over ended when this one began; `isOpen` also those that began with it. */
export async function supersedeOthers(
  tx: Tx,
  lineage: Lineage,
  { transactionId, at, isOpen }: { transactionId: bigint; at: Ms; isOpen: boolean },
): Promise<void> {
  await tx.query(
    `update store_period
     set superseded_at_ms = $4
     where scope_id = $1
       and lineage_id = $2
       and transaction_id <> $3
       and superseded_at_ms is null
       and revoked_at_ms is null
       and type = 'subscription'
       and (starts_at_ms < $4 or (starts_at_ms = $4 and $5))
       and (access_until_ms is null or access_until_ms > $4)`,
    [lineage.scopeId, lineage.id, transactionId, at, isOpen],
  )
}

/**
 * A period that was told of late, or whose refund was taken back, ended when the next one began: grace that a store speaks of
 * is that of the newest.
 */
export async function supersedeByLater(
  tx: Tx,
  lineage: Lineage,
  { transactionId, now }: { transactionId: bigint; now: Ms },
): Promise<void> {
  await tx.query(
    `update store_period p
     set superseded_at_ms = later.starts_at_ms
     from (
       select own.id, min(other.starts_at_ms) as starts_at_ms
       from store_period own
       join store_period other on other.scope_id = own.scope_id and other.lineage_id = own.lineage_id
       where own.scope_id = $1
         and own.lineage_id = $2
         and own.transaction_id = $3
         and own.type = 'subscription'
         and own.superseded_at_ms is null
         and other.type = 'subscription'
         and other.starts_at_ms > own.starts_at_ms
         and other.starts_at_ms <= $4
         and (own.access_until_ms is null or own.access_until_ms > other.starts_at_ms)
       group by own.id
     ) later
     where p.scope_id = $1
       and p.id = later.id`,
    [lineage.scopeId, lineage.id, transactionId, now],
  )
}

interface PeriodRow {
  id: bigint
  transaction_id: bigint
  evidence_key: string
  line: string
  store_product_id: string
  base_plan_id: string | null
  purchase_option_id: string | null
  offer_id: string | null
  product_id: string
  type: 'subscription' | 'one_time'
  quantity: number
  refunded_quantity: number
  order_id: string | null
  starts_at_ms: bigint
  paid_until_ms: bigint | null
  access_until_ms: bigint | null
  revoked_at_ms: bigint | null
  revocation: JsonObject | null
  superseded_at_ms: bigint | null
  granted_to: string | null
  grant_ref: string | null
  granted_until_ms: bigint | null
  grants_ended: boolean
  granted_quantity: number | null
  refund_taken: number
}

/** Newest first: those that give access, those whose grants stand, and the last few others. */
export async function selectPeriods(sql: Sql, lineage: Lineage, limit: number): Promise<Period[]> {
  const rows = await sql.query<PeriodRow>(
    `select p.id, p.transaction_id, t.evidence_key, p.line, p.store_product_id, p.base_plan_id, p.purchase_option_id,
       p.offer_id, p.product_id, p.type, p.quantity, p.refunded_quantity, p.order_id, p.starts_at_ms, p.paid_until_ms,
       p.access_until_ms, p.revoked_at_ms, p.revocation, p.superseded_at_ms, p.granted_to, p.grant_ref, p.granted_until_ms,
       p.grants_ended, p.granted_quantity, p.refund_taken
     from store_period p
     join store_transaction t on t.id = p.transaction_id
     where p.scope_id = $1
       and p.lineage_id = $2
     order by p.starts_at_ms desc, p.id desc
     limit $3`,
    [lineage.scopeId, lineage.id, limit],
  )
  return rows.map(periodOf)
}

function periodOf(row: PeriodRow): Period {
  return {
    id: row.id,
    transactionId: row.transaction_id,
    evidenceKey: row.evidence_key,
    line: row.line,
    storeProductId: row.store_product_id,
    basePlanId: row.base_plan_id,
    purchaseOptionId: row.purchase_option_id,
    offerId: row.offer_id,
    productId: row.product_id,
    type: row.type,
    quantity: row.quantity,
    refundedQuantity: row.refunded_quantity,
    orderId: row.order_id,
    startsAt: Number(row.starts_at_ms),
    paidUntil: ms(row.paid_until_ms),
    accessUntil: ms(row.access_until_ms),
    revokedAt: ms(row.revoked_at_ms),
    revocation: row.revocation,
    supersededAt: ms(row.superseded_at_ms),
    grantedTo: row.granted_to,
    grantRef: row.grant_ref,
    grantedUntil: ms(row.granted_until_ms),
    grantsEnded: row.grants_ended,
    grantedQuantity: row.granted_quantity,
    refundTaken: row.refund_taken,
  }
}

/** What refunds have taken of what a period gave. */
export async function updateRefund(
  tx: Tx,
  lineage: Lineage,
  { id, grantedQuantity, refundTaken }: Pick<Period, 'id' | 'grantedQuantity' | 'refundTaken'>,
): Promise<void> {
  await tx.query(
    `update store_period
     set granted_quantity = $3,
       refund_taken = $4
     where scope_id = $1
       and id = $2`,
    [lineage.scopeId, id, grantedQuantity, refundTaken],
  )
}

/** What stands in the ledger for a period now. */
export async function updateGranted(
  tx: Tx,
  lineage: Lineage,
  {
    id,
    grantedTo,
    grantRef,
    grantedUntil,
    grantsEnded,
  }: Pick<Period, 'id' | 'grantedTo' | 'grantRef' | 'grantedUntil' | 'grantsEnded'>,
): Promise<void> {
  await tx.query(
    `update store_period
     set granted_to = $3,
       grant_ref = $4,
       granted_until_ms = $5,
       grants_ended = $6
     where scope_id = $1
       and id = $2`,
    [lineage.scopeId, id, grantedTo, grantRef, grantedUntil, grantsEnded],
  )
}

export interface StoredTransaction {
  evidenceKey: string
  supersededBy: string | null
  claims: JsonObject
  createdAt: Ms
}

/** Newest first. */
export async function selectTransactions(sql: Sql, lineage: Lineage, limit: number): Promise<StoredTransaction[]> {
  const rows = await sql.query<{
    evidence_key: string
    superseded_by: string | null
    claims: JsonObject
    created_at_ms: bigint
  }>(
    `select evidence_key, superseded_by, claims, created_at_ms
     from store_transaction
     where scope_id = $1
       and lineage_id = $2
     order by id desc
     limit $3`,
    [lineage.scopeId, lineage.id, limit],
  )
  return rows.map((row) => ({
    evidenceKey: row.evidence_key,
    supersededBy: row.superseded_by,
    claims: row.claims,
    createdAt: Number(row.created_at_ms),
  }))
}
