import { int8s } from '../../db/binary-array.ts'
import type { Pool, Tx } from '../../db/pool.ts'
import { type RawRow, raw } from '../../db/raw.ts'
import { grantSettledAfterMs, sweptGrantsPerPage } from '../../kernel/limits.ts'
import { grantColumns } from './grant-row.ts'

/**
 * The accounts of the next grants by number that may be hidden: ended long ago, or drained beside others. In the order of the
 * primary key, so that a page reads a fixed number of rows; `next` is null behind the last one.
 */
export async function selectGrantPage(
  pool: Pool,
  after: bigint,
): Promise<{ accountIds: bigint[]; next: bigint | null }> {
  const [row] = await pool.query<{ last: bigint | null; accounts: string[] | null }>(
    `select max(page.id) as last,
       array_agg(distinct page.account_id::text) filter (where not page.settled and (
         least(page.expires_at_ms, page.revoked_at_ms) < extract(epoch from clock_timestamp()) * 1000 - $2
         or (page.remaining = 0 and page.amount > 0 and page.cycle_unit is null)
       )) as accounts
     from (
       select id, account_id, settled, expires_at_ms, revoked_at_ms, remaining, amount, cycle_unit
       from ledger_grant
       where id > $1
       order by id
       limit ${sweptGrantsPerPage}
     ) page`,
    [after, grantSettledAfterMs],
  )
  return { accountIds: (row?.accounts ?? []).map(BigInt), next: row?.last ?? null }
}

/** In id order, as every verb locks them; those that somebody holds are left out. */
export function lockFreeAccounts(
  tx: Tx,
  accountIds: bigint[],
): Promise<{ id: bigint; feature_id: number; last_at_ms: bigint }[]> {
  return tx.query(
    `select id, feature_id, last_at_ms
     from account
     where id = any($1::bigint[])
     order by id
     for update skip locked`,
    [int8s(accountIds)],
  )
}

const shown = {
  name: 'entitlements_shown_grants',
  text: `
    select ${grantColumns}
    from ledger_grant g
    where g.account_id = any($1::bigint[])
      and not g.settled`,
}

export function selectShownGrants(tx: Tx, accountIds: bigint[]): Promise<RawRow[]> {
  return raw(tx.client, shown, [int8s(accountIds)])
}

export async function hideGrants(tx: Tx, grantIds: bigint[]): Promise<void> {
  await tx.query(`update ledger_grant set settled = true where id = any($1::bigint[])`, [int8s(grantIds)])
}
