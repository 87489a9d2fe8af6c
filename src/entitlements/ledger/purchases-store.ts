import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Those that a source made itself, not what their periods left. */
export async function selectGrantsOfRef(tx: Tx, scope: Scope, ref: string): Promise<bigint[]> {
  const rows = await tx.query<{ id: bigint }>(
    `select id
     from ledger_grant
     where scope_id = $1
       and source_ref = $2
     order by id`,
    [scope.scopeId, ref],
  )
  return rows.map(({ id }) => id)
}

/** Where its grants lie, and where entities that come later get theirs. */
export async function selectAccountsOfRef(tx: Tx, scope: Scope, ref: string): Promise<bigint[]> {
  const rows = await tx.query<{ account_id: bigint }>(
    `select account_id
     from ledger_grant
     where scope_id = $1
       and source_ref = $2
     union
     select account_id
     from entity_terms
     where scope_id = $1
       and source_ref = $2`,
    [scope.scopeId, ref],
  )
  return rows.map(({ account_id: id }) => id)
}

/** What entities that come later still get. Gives the accounts where they do. */
export async function updateTermsEnd(
  tx: Tx,
  scope: Scope,
  ref: string,
  { at, paidUntil }: { at: number | null; paidUntil?: number | null },
): Promise<bigint[]> {
  const rows = await tx.query<{ account_id: bigint }>(
    `update entity_terms
     set expires_at_ms = case when $3::bigint is not null then greatest($3, effective_at_ms + 1) end,
       paid_until_ms = case when $4 then $5::bigint else paid_until_ms end
     where scope_id = $1
       and source_ref = $2
     returning account_id`,
    [scope.scopeId, ref, at, paidUntil !== undefined, paidUntil ?? null],
  )
  return rows.map(({ account_id: id }) => id)
}
