import type { Sql, Tx } from '../../db/pool.ts'
import { forgetRowsAtOnce, membershipChangeDays } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

/** True: none is left. By the index membership_change_customer. */
export async function deleteChangesOf(tx: Tx, { scopeId }: Scope, customerIds: string[]): Promise<boolean> {
  const rows = await tx.query(
    `delete from membership_change
     where (scope_id, pos, n) in (
       select scope_id, pos, n
       from membership_change
       where customer_id = any ($2)
         and scope_id = $1
       limit ${forgetRowsAtOnce}
     )
     returning n`,
    [scopeId, customerIds],
  )
  return rows.length < forgetRowsAtOnce
}

/** Changes that have had their time, a slice at once. True: none is left. */
export async function deleteOldChanges(sql: Sql): Promise<boolean> {
  const rows = await sql.query(
    `delete from membership_change
     where (scope_id, pos, n) in (
       select scope_id, pos, n
       from membership_change
       where at < clock_timestamp() - interval '${membershipChangeDays} days'
       limit ${forgetRowsAtOnce}
     )
     returning n`,
  )
  return rows.length < forgetRowsAtOnce
}
