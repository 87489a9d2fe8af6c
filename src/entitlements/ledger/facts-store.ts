import { int8s } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import type { AccountName } from './facts.ts'

/** How events name these accounts: by the first distinct id of the customer. */
export async function selectAccountNames(tx: Tx, accountIds: bigint[]): Promise<Map<bigint, AccountName>> {
  const rows = await tx.query<{ id: bigint; scope_id: number; key: string; scale: number; distinct_id: string }>(
    `select a.id, a.scope_id, f.key, f.scale, first.distinct_id
     from account a
     join feature f on f.id = a.feature_id
     cross join lateral (
       select distinct_id
       from customer_alias
       where scope_id = a.scope_id
         and customer_id = a.customer_id
       order by since_pos, first_seen_at, distinct_id
       limit 1
     ) first
     where a.id = any($1::bigint[])`,
    [int8s(accountIds)],
  )
  return new Map(
    rows.map(({ id, scope_id, key, scale, distinct_id }) => {
      return [id, { scopeId: scope_id, distinctId: distinct_id, feature: { key, scale } }]
    }),
  )
}
