import { int4s, int8s, texts } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Grant, Units } from '../types.ts'
import { grantColumns } from './grant-row.ts'

export interface HeldAccount {
  id: bigint
  feature_id: number
  used_total: bigint
  last_at_ms: bigint
  version: bigint
}

/** Locked in id order, as every verb locks them. */
export function lockAccountsById(tx: Tx, scope: Scope, ids: bigint[]): Promise<HeldAccount[]> {
  return tx.query<HeldAccount>(
    `select id, feature_id, used_total, last_at_ms, version
     from account
     where scope_id = $1
       and id = any($2::bigint[])
     order by id
     for update`,
    [scope.scopeId, int8s(ids)],
  )
}

/** Where grants lie now, and whose periods left their units. */
export function selectPlaces(
  sql: Sql,
  scope: Scope,
  grantIds: bigint[],
): Promise<{ id: bigint; account_id: bigint; rolled_from: bigint | null }[]> {
  return sql.query(
    `select id, account_id, rolled_from
     from ledger_grant
     where scope_id = $1
       and id = any($2::bigint[])`,
    [scope.scopeId, int8s(grantIds)],
  )
}

/** Settled while something else keeps access live: drained, and not ended. */
const goesOn = `coalesce(least(g.expires_at_ms, g.revoked_at_ms), ${2n ** 62n}) >
        floor(extract(epoch from clock_timestamp()) * 1000)`

const grantsOf: Statement = {
  name: 'entitlements_grants_of_accounts',
  text: `
    select ${grantColumns}
    from ledger_grant g
    where g.account_id = any($1::bigint[])
      and not g.settled
    union all
    select ${grantColumns}
    from ledger_grant g
    where g.account_id = any($1::bigint[])
      and g.settled
      and (g.id = any($2::bigint[]) or ${goesOn})`,
}

/** The grants of the accounts that have not ended, those not settled yet, and others as far as they are named. */
export function selectGrantsIn(tx: Tx, accountIds: bigint[], named: bigint[]): Promise<RawRow[]> {
  return raw(tx.client, grantsOf, [int8s(accountIds), int8s(named)])
}

export interface MovementRow {
  at: number
  accountId: bigint
  version: bigint
  line: number
  grantId: bigint
  period: bigint
  kind: string
  delta: Units
  remaining: Units
}

/** Entries that one command by hand caused; all carry its operation and detail. */
export async function insertMovements(
  tx: Tx,
  scope: Scope,
  rows: MovementRow[],
  { operationId, detail }: { operationId: string | null; detail: string | null },
): Promise<void> {
  await tx.query(
    `insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after,
       operation_id, detail)
     select at_ms, $1, account_id, version, line, grant_id, period_no, kind, delta, remaining_after, $2, $3::jsonb
     from unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::int[], $8::bigint[], $9::bigint[], $10::text[],
       $11::bigint[], $12::bigint[])
       as q(at_ms, account_id, version, line, grant_id, period_no, kind, delta, remaining_after)`,
    [
      scope.scopeId,
      operationId,
      detail,
      int8s(rows.map((row) => row.at)),
      int8s(rows.map((row) => row.accountId)),
      int8s(rows.map((row) => row.version)),
      int4s(rows.map((row) => row.line)),
      int8s(rows.map((row) => row.grantId)),
      int8s(rows.map((row) => row.period)),
      texts(rows.map((row) => row.kind)),
      int8s(rows.map((row) => row.delta)),
      int8s(rows.map((row) => row.remaining)),
    ],
  )
}

/** `uncollected` is written where it is not null. What moved is worth looking at again: no grant stays settled. */
export async function updateMoved(
  tx: Tx,
  grants: { grant: Grant; uncollected: Units | null }[],
): Promise<{ id: bigint }[]> {
  return tx.query<{ id: bigint }>(
    `update ledger_grant g
     set remaining = q.remaining,
       period_no = q.period_no,
       revoked_at_ms = q.revoked_at_ms,
       expires_at_ms = q.expires_at_ms,
       paid_until_ms = q.paid_until_ms,
       uncollected = coalesce(q.uncollected, g.uncollected),
       settled = false
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
       $6::bigint[], $7::bigint[])
       as q(id, remaining, period_no, revoked_at_ms, uncollected, expires_at_ms, paid_until_ms)
     where g.id = q.id
     returning g.id`,
    [
      int8s(grants.map(({ grant }) => grant.id)),
      int8s(grants.map(({ grant }) => grant.remaining)),
      int8s(grants.map(({ grant }) => grant.periodNo)),
      int8s(grants.map(({ grant }) => grant.revokedAt)),
      int8s(grants.map(({ uncollected }) => uncollected)),
      int8s(grants.map(({ grant }) => grant.expiresAt)),
      int8s(grants.map(({ grant }) => grant.paidUntil)),
    ],
  )
}

/** An end was brought forward: drained grants behind it may be what keeps access live again. */
export async function showDrained(tx: Tx, accountId: bigint): Promise<void> {
  await tx.query(`update ledger_grant g set settled = false where g.account_id = $1 and g.settled and ${goesOn}`, [
    accountId,
  ])
}
