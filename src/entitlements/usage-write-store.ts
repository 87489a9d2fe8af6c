import type pg from 'pg'
import { boolArray, intArray, textArray } from '../db/literal.ts'
import { raw, type Statement } from '../db/raw.ts'
import { rolloverJson } from './grant-row.ts'
import type { Account, Change, Grant } from './types.ts'

const write: Statement = {
  name: 'entitlements_write',
  text: `
    with operations as (
      insert into operation (scope_id, kind, operation_id, customer_id, feature_key, entity_id, mode, quantity, http_status,
        accepted, code, feature_type, balance, unlimited, active, occurred_at_ms, account_version)
      select scope_id, 0, operation_id, customer_id, feature_key, entity_id, mode, quantity, 200,
        accepted, code, feature_type, balance, unlimited, active, occurred_at_ms, account_version
      from unnest($1::int[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::bool[],
        $9::text[], $10::smallint[], $11::bigint[], $12::bool[], $13::bool[], $14::bigint[], $15::bigint[])
        as q(scope_id, operation_id, customer_id, feature_key, entity_id, mode, quantity, accepted,
          code, feature_type, balance, unlimited, active, occurred_at_ms, account_version)
      returning 1
    ), entries as (
      insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after,
        operation_id)
      select at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, operation_id
      from unnest($16::bigint[], $17::int[], $18::bigint[], $19::bigint[], $20::smallint[], $21::bigint[], $22::bigint[],
        $23::text[], $24::bigint[], $25::bigint[], $26::text[])
        as q(at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, operation_id)
    ), grants as (
      update ledger_grant g
      set remaining = q.remaining, period_no = q.period_no
      from unnest($27::bigint[], $28::bigint[], $29::bigint[]) as q(id, remaining, period_no)
      where g.id = q.id
      returning 1
    ), accounts as (
      update account a
      set used_total = q.used_total, last_at_ms = q.last_at_ms, version = q.version
      from unnest($30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[]) as q(id, used_total, last_at_ms, version)
      where a.id = q.id
      returning 1
    )
    select 1 / (case
      when (select count(*) from operations) = $34::bigint
        and (select count(*) from grants) = $35::bigint
        and (select count(*) from accounts) = $36::bigint then 1
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
  /** Accounts that took part in a decision, as they are now. */
  accounts: Account[]
  entities: { accountId: bigint; entityId: string; used: bigint }[]
}

/**
 * One statement writes operations, entries, grants and accounts, and divides by zero unless every row it meant to touch
 * was there: a wrong count aborts the transaction before the COMMIT that is already on its way behind it.
 */
export async function writeUsage(client: pg.ClientBase, batch: UsageWrite): Promise<void> {
  const { operations, entries, grants, accounts } = batch
  await raw(client, write, [
    intArray(operations.map((row) => row.scopeId)),
    textArray(operations.map((row) => row.operationId)),
    textArray(operations.map((row) => row.customerId)),
    textArray(operations.map((row) => row.featureKey)),
    textArray(operations.map((row) => row.entityId)),
    intArray(operations.map((row) => row.mode)),
    intArray(operations.map((row) => row.quantity)),
    boolArray(operations.map((row) => row.accepted)),
    textArray(operations.map((row) => row.code)),
    intArray(operations.map((row) => row.featureType)),
    intArray(operations.map((row) => row.balance)),
    boolArray(operations.map((row) => row.unlimited)),
    boolArray(operations.map((row) => row.active)),
    intArray(operations.map((row) => row.occurredAt)),
    intArray(operations.map((row) => row.accountVersion)),
    intArray(entries.map((row) => row.at)),
    intArray(entries.map((row) => row.scopeId)),
    intArray(entries.map((row) => row.accountId)),
    intArray(entries.map((row) => row.version)),
    intArray(entries.map((row) => row.line)),
    intArray(entries.map((row) => row.grantId)),
    intArray(entries.map((row) => row.period)),
    textArray(entries.map((row) => row.kind)),
    intArray(entries.map((row) => row.delta)),
    intArray(entries.map((row) => row.remaining)),
    textArray(entries.map((row) => row.operationId)),
    intArray(grants.map((grant) => grant.id)),
    intArray(grants.map((grant) => grant.remaining)),
    intArray(grants.map((grant) => grant.periodNo)),
    intArray(accounts.map((account) => account.id)),
    intArray(accounts.map((account) => account.used)),
    intArray(accounts.map((account) => account.lastAt)),
    intArray(accounts.map((account) => account.version)),
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
    intArray(entities.map((entity) => entity.accountId)),
    textArray(entities.map((entity) => entity.entityId)),
    intArray(entities.map((entity) => entity.used)),
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
    intArray(refills.map((row) => row.grantId)),
    intArray(refills.map((row) => row.periodNo)),
    intArray(refills.map((row) => row.lapsed)),
    intArray(refills.map((row) => row.rolled)),
    intArray(refills.map((row) => row.at)),
  ])
}

const insertRollover: Statement = {
  name: 'entitlements_insert_rollover',
  text: `
    insert into ledger_grant (scope_id, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
      remaining, effective_at_ms, expires_at_ms, anchor_ms, rollover, created_at_ms)
    select g.scope_id, g.account_id, g.feature_id, g.entity_id, $2, 'rollover', g.rank, false, $3, $3, $4, $5, $4, $6, $7
    from ledger_grant g
    where g.id = $1
    returning id`,
}

/** Gives a rollover grant its row and its number. `from` is the grant whose period it was left of. */
export async function writeRollover(client: pg.ClientBase, from: bigint, grant: Grant): Promise<bigint> {
  const [row] = await raw(client, insertRollover, [
    from,
    `rollover:${from}:${grant.effectiveAt}`,
    grant.amount,
    grant.effectiveAt,
    grant.expiresAt,
    rolloverJson(grant.rollover),
    grant.createdAt,
  ])
  return BigInt(row?.[0] ?? 0)
}
