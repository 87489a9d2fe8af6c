import type pg from 'pg'
import { bools, int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { Account, Change, Grant } from '../types.ts'
import { rolloverJson } from './grant-row.ts'

const write: Statement = {
  name: 'entitlements_write',
  text: `
    with operations as (
      insert into operation (scope_id, kind, operation_id, customer_id, feature_key, entity_id, mode, quantity, http_status,
        accepted, code, feature_type, balance, unlimited, active, occurred_at_ms, account_version)
      select scope_id, 0, operation_id, customer_id, feature_key, entity_id, mode, quantity, 200,
        accepted, code, feature_type, balance, unlimited, active, occurred_at_ms, account_version
      from unnest($1::int[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::int[], $7::bigint[], $8::bool[],
        $9::text[], $10::int[], $11::bigint[], $12::bool[], $13::bool[], $14::bigint[], $15::bigint[])
        as q(scope_id, operation_id, customer_id, feature_key, entity_id, mode, quantity, accepted,
          code, feature_type, balance, unlimited, active, occurred_at_ms, account_version)
      returning 1
    ), accounts as (
      update account a
      set used_total = q.used_total, last_at_ms = greatest(a.last_at_ms, q.last_at_ms), version = q.version
      from unnest($30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[], $34::bigint[])
        as q(id, used_total, last_at_ms, version, read_version)
      where a.id = q.id
        and a.version = q.read_version
        and a.merged_into is null
      returning 1
    ), entries as (
      insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after,
        operation_id)
      select at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, operation_id
      from unnest($16::bigint[], $17::int[], $18::bigint[], $19::bigint[], $20::int[], $21::bigint[], $22::bigint[],
        $23::text[], $24::bigint[], $25::bigint[], $26::text[])
        as q(at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, operation_id)
    ), grants as (
      update ledger_grant g
      set remaining = q.remaining, period_no = q.period_no
      from unnest($27::bigint[], $28::bigint[], $29::bigint[]) as q(id, remaining, period_no)
      where g.id = q.id
        and (select count(*) from accounts) = $37::bigint
      returning 1
    )
    select 1 / (case
      when (select count(*) from operations) = $35::bigint
        and (select count(*) from grants) = $36::bigint
        and (select count(*) from accounts) = $37::bigint then 1
      else 0 end)`,
}

/** A decided command, as it is saved and replayed. */
export interface OperationRow {
  scopeId: number
  operationId: string
  customerId: string
  featureKey: string
  entityId: string | null
  mode: number
  quantity: bigint
  accepted: boolean
  code: string
  featureType: number
  balance: number | null
  unlimited: boolean
  active: boolean
  occurredAt: number
  accountVersion: bigint
}

export interface EntryRow {
  at: number
  scopeId: number
  accountId: bigint
  version: bigint
  line: number
  operationId: string
  kind: Exclude<Change['kind'], 'used'>
  grantId: bigint
  period: bigint
  delta: bigint
  /** Of the grant, after the movement. */
  remaining: bigint
}

/** Everything one batch writes. */
export interface UsageWrite {
  operations: OperationRow[]
  entries: EntryRow[]
  /** Grants whose units or period moved, as they are now. */
  grants: Grant[]
  /** Accounts that took part in a decision, as they are now, in id order, and the versions the decisions were made on. */
  accounts: Account[]
  readVersions: bigint[]
  entities: { accountId: bigint; entityId: string; used: bigint }[]
}

/**
 * One statement writes operations, entries, grants and accounts, and is a transaction by itself. An account is written only
 * in the version the decision was made on, and grants only once all accounts were: whoever came in between makes the
 * statement divide by zero, which takes everything back. Denials leave the version as it is, so several may have been made on
 * one: the account keeps the latest clock among them. Sorted ids keep writers from waiting for each other in a ring.
 */
export async function writeUsage(client: pg.ClientBase, batch: UsageWrite): Promise<void> {
  const { operations, entries, grants, accounts, readVersions } = batch
  await raw(client, write, [
    int4s(operations.map((row) => row.scopeId)),
    texts(operations.map((row) => row.operationId)),
    uuids(operations.map((row) => row.customerId)),
    texts(operations.map((row) => row.featureKey)),
    texts(operations.map((row) => row.entityId)),
    int4s(operations.map((row) => row.mode)),
    int8s(operations.map((row) => row.quantity)),
    bools(operations.map((row) => row.accepted)),
    texts(operations.map((row) => row.code)),
    int4s(operations.map((row) => row.featureType)),
    int8s(operations.map((row) => row.balance)),
    bools(operations.map((row) => row.unlimited)),
    bools(operations.map((row) => row.active)),
    int8s(operations.map((row) => row.occurredAt)),
    int8s(operations.map((row) => row.accountVersion)),
    int8s(entries.map((row) => row.at)),
    int4s(entries.map((row) => row.scopeId)),
    int8s(entries.map((row) => row.accountId)),
    int8s(entries.map((row) => row.version)),
    int4s(entries.map((row) => row.line)),
    int8s(entries.map((row) => row.grantId)),
    int8s(entries.map((row) => row.period)),
    texts(entries.map((row) => row.kind)),
    int8s(entries.map((row) => row.delta)),
    int8s(entries.map((row) => row.remaining)),
    texts(entries.map((row) => row.operationId)),
    int8s(grants.map((grant) => grant.id)),
    int8s(grants.map((grant) => grant.remaining)),
    int8s(grants.map((grant) => grant.periodNo)),
    int8s(accounts.map((account) => account.id)),
    int8s(accounts.map((account) => account.used)),
    int8s(accounts.map((account) => account.lastAt)),
    int8s(accounts.map((account) => account.version)),
    int8s(readVersions),
    operations.length,
    grants.length,
    accounts.length,
  ])
}

const upsertEntities: Statement = {
  name: 'entitlements_upsert_entities',
  text: `
    insert into account_entity (account_id, entity_id, used_total)
    select account_id, entity_id, used_total
    from unnest($1::bigint[], $2::text[], $3::bigint[]) as q(account_id, entity_id, used_total)
    on conflict (account_id, entity_id) do update set used_total = excluded.used_total`,
}

/** Under the lock of the account, which guards its entities too. */
export async function writeEntities(client: pg.ClientBase, entities: UsageWrite['entities']): Promise<void> {
  await raw(client, upsertEntities, [
    int8s(entities.map((entity) => entity.accountId)),
    texts(entities.map((entity) => entity.entityId)),
    int8s(entities.map((entity) => entity.used)),
  ])
}

const insertRefills: Statement = {
  name: 'entitlements_insert_refills',
  text: `
    insert into refill (grant_id, period_no, lapsed, rolled, at_ms)
    select grant_id, period_no, lapsed, rolled, at_ms
    from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
      as q(grant_id, period_no, lapsed, rolled, at_ms)`,
}

export interface RefillRow {
  grantId: bigint
  periodNo: bigint
  lapsed: bigint
  rolled: bigint
  at: number
}

/** The primary key (grant, period) makes a second refill of a period impossible. */
export async function writeRefills(client: pg.ClientBase, refills: RefillRow[]): Promise<void> {
  await raw(client, insertRefills, [
    int8s(refills.map((row) => row.grantId)),
    int8s(refills.map((row) => row.periodNo)),
    int8s(refills.map((row) => row.lapsed)),
    int8s(refills.map((row) => row.rolled)),
    int8s(refills.map((row) => row.at)),
  ])
}

const insertRollover: Statement = {
  name: 'entitlements_insert_rollover',
  text: `
    insert into ledger_grant (scope_id, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
      remaining, effective_at_ms, expires_at_ms, anchor_ms, rollover, created_at_ms, rolled_from)
    select g.scope_id, g.account_id, g.feature_id, g.entity_id, $2, 'rollover', g.rank, false, $3, $3, $4, $5, $4, $6, $7, g.id
    from ledger_grant g
    where g.id = $1
    returning id`,
}

/** Gives a rollover grant its row and its number. `from` is the grant whose period it was left of. */
export async function writeRollover(
  client: pg.ClientBase,
  { from, period, grant }: Pick<Extract<Change, { kind: 'rollover' }>, 'from' | 'period' | 'grant'>,
): Promise<bigint> {
  const [row] = await raw(client, insertRollover, [
    from,
    `rollover:${from}:${period}`,
    grant.amount,
    grant.effectiveAt,
    grant.expiresAt,
    rolloverJson(grant.rollover),
    grant.createdAt,
  ])
  return BigInt(row?.[0] ?? 0)
}

const insertOpened: Statement = {
  name: 'entitlements_insert_opened',
  text: `
    with offer as (
      update entity_terms
      set granted = granted + 1
      where id = $1
        and granted < max_entities
      returning scope_id, account_id, feature_id, source_ref, origin, rank, product_id, expires_at_ms, paid_until_ms
    )
    insert into ledger_grant (scope_id, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
      remaining, effective_at_ms, expires_at_ms, paid_until_ms, cycle_unit, anchor_ms, rollover, product_id, created_at_ms)
    select scope_id, account_id, feature_id, $2, source_ref, origin, rank, $3, $4, $4, $5, expires_at_ms, paid_until_ms, $6,
      $5, $7, product_id, $5
    from offer
    returning id`,
}

/** Gives an entity its place in an offer, and its grant the row and the number. The account's version guards both. */
export async function writeOpened(
  client: pg.ClientBase,
  { offer, grant }: Pick<Extract<Change, { kind: 'grant' }>, 'offer' | 'grant'>,
): Promise<bigint> {
  const [row] = await raw(client, insertOpened, [
    offer,
    grant.entityId,
    grant.unlimited,
    grant.amount,
    grant.effectiveAt,
    grant.cycle?.unit ?? null,
    rolloverJson(grant.rollover),
  ])
  // Somebody else took the last place since the offer was read, and raised the version: the write will be refused.
  return BigInt(row?.[0] ?? 0)
}

/** Apart from the statement that every spend goes through: few come with a purchase. */
export async function notePurchase(
  client: pg.ClientBase,
  { scopeId, operationId, purchaseKey }: { scopeId: number; operationId: string; purchaseKey: string },
): Promise<void> {
  await client.query(
    `update operation
    set purchase_key = $3,
      http_status = case when code = 'insufficient_balance' then 402 else 200 end
    where scope_id = $1
      and kind = 0
      and operation_id = $2`,
    [scopeId, operationId, purchaseKey],
  )
}
