import type pg from 'pg'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import { mergeChainMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Begins a statement: `owners` are the customer and every record that was merged into it. */
export function ownersOf(scopeId: string, customerId: string): string {
  return `with recursive owners as (
      select ${customerId}::uuid as id, 0 as step
      union
      select gone.id, owners.step + 1
      from owners
      cross join lateral (
        select source_customer_id as id
        from merge_journal
        where scope_id = ${scopeId}
          and customer_id = owners.id
          and status = 'merged'
          and source_customer_id is not null
        offset 0
      ) gone
      where owners.step < ${mergeChainMax}
    )`
}

const accounts: Statement = {
  name: 'entitlements_ledger_accounts',
  text: `
    ${ownersOf('$1', '$2')}
    select a.id
    from (select distinct id from owners) o
    join account a on a.scope_id = $1 and a.customer_id = o.id
    join feature f on f.id = a.feature_id
    where $3::text is null
       or f.key = $3`,
}

/** The accounts a customer's ledger is in: its own, and those of the records that were merged into it. */
export async function selectLedgerAccounts(
  client: pg.ClientBase,
  scope: Scope,
  { customerId, feature }: { customerId: string; feature: string | null },
): Promise<string[]> {
  const rows = await raw(client, accounts, [scope.scopeId, customerId, feature])
  return rows.map((row) => row[0] ?? '')
}

const entries: Statement = {
  name: 'entitlements_ledger_entries',
  text: `
    select e.at_ms, e.account_id, e.version, e.line, e.operation_id, e.grant_id, f.key, f.scale, g.entity_id, e.delta,
      e.remaining_after, e.kind, e.detail
    from unnest($1::bigint[]) as q(account_id)
    cross join lateral (
      select at_ms, account_id, version, line, operation_id, grant_id, delta, remaining_after, kind, detail
      from entry
      where account_id = q.account_id
        and at_ms <= $2
        and (at_ms, account_id, version, line) < ($2, $3, $4, $5)
        and ($6::text is null or operation_id = $6)
        and ($7::bigint is null or grant_id = $7)
      order by version desc, line desc
      limit $8
    ) e
    join ledger_grant g on g.id = e.grant_id
    join feature f on f.id = g.feature_id
    order by e.at_ms desc, e.account_id desc, e.version desc, e.line desc
    limit $8`,
}

export interface EntryPosition {
  at: bigint
  accountId: bigint
  version: bigint
  line: number
}

/**
 * Newest first. An account's versions rise with its instants, so each account gives its newest by (account, version) of
 * each month's partition, and only those few are sorted: the whole history of a busy account is never read.
 */
export function selectEntries(
  client: pg.ClientBase,
  accountIds: string[],
  before: EntryPosition,
  { operationId, grantId, limit }: { operationId: string | null; grantId: bigint | null; limit: number },
): Promise<RawRow[]> {
  return raw(client, entries, [
    `{${accountIds.join(',')}}`,
    before.at,
    before.accountId,
    before.version,
    before.line,
    operationId,
    grantId,
    limit,
  ])
}
