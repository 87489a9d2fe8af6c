import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Units } from '../types.ts'

export interface RefundedGrant {
  id: bigint
  amount: Units
  uncollected: Units
  /** What refunds took in the present period and nobody gave back. */
  taken: Units
}

/** Grants of one source, in id order. Seldom asked: the entries of their accounts are looked through. */
export function selectRefunded(tx: Tx, scope: Scope, ref: string): Promise<RefundedGrant[]> {
  return tx.query<RefundedGrant>(
    `select g.id, g.amount, g.uncollected,
       coalesce((
         select -sum(e.delta)
         from entry e
         where e.grant_id = g.id
           and e.account_id in (
             with recursive family as (
               select g.account_id as id
               union all
               select a.id from account a join family f on a.merged_into = f.id
             )
             select id from family
           )
           and e.period_no = g.period_no
           and e.kind in ('revoke', 'shrink', 'restore')
       ), 0)::bigint as taken
     from ledger_grant g
     where g.scope_id = $1
       and g.source_ref = $2
     order by g.id`,
    [scope.scopeId, ref],
  )
}
