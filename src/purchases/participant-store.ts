import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { eraseNotifications } from './notifications/dead-store.ts'
import { personalClaims } from './personal-claims.ts'

/** Ids of rows, as text. */
export interface Moved {
  lineages: string[]
  bindings: string[]
}

interface Move {
  from: string
  to: string
}

export async function moveRows(tx: Tx, scope: Scope, { from, to }: Move): Promise<Moved> {
  const lineages = await tx.query<{ id: bigint }>(
    `update store_lineage
     set owner_customer_id = $3
     where scope_id = $1
       and owner_customer_id = $2
     returning id`,
    [scope.scopeId, from, to],
  )
  const bindings = await tx.query<{ id: bigint }>(
    `update account_binding
     set customer_id = $3
     where scope_id = $1
       and customer_id = $2
     returning id`,
    [scope.scopeId, from, to],
  )
  return { lineages: lineages.map(({ id }) => String(id)), bindings: bindings.map(({ id }) => String(id)) }
}

/** Those that moved and are still where they went. */
export async function restoreRows(
  tx: Tx,
  scope: Scope,
  { from, to }: Move,
  { lineages, bindings }: Moved,
): Promise<void> {
  await tx.query(
    `update store_lineage
     set owner_customer_id = $3
     where scope_id = $1
       and owner_customer_id = $2
       and id = any($4::bigint[])`,
    [scope.scopeId, from, to, lineages],
  )
  await tx.query(
    `update account_binding
     set customer_id = $3
     where scope_id = $1
       and customer_id = $2
       and id = any($4::bigint[])`,
    [scope.scopeId, from, to, bindings],
  )
}

export async function eraseRows(
  tx: Tx,
  scope: Scope,
  { customerIds, distinctIds }: { customerIds: string[]; distinctIds: string[] },
): Promise<void> {
  const whose = [scope.scopeId, customerIds]
  await eraseNotifications(tx, scope, customerIds)
  await tx.query(
    `update store_transaction t
     set claims = t.claims - $3::text[]
     from store_lineage l
     where l.scope_id = $1
       and l.owner_customer_id = any($2::uuid[])
       and t.scope_id = l.scope_id
       and t.lineage_id = l.id`,
    [...whose, personalClaims],
  )
  // What is to be written back to the App Store says whose it was.
  await tx.query(
    `delete from store_outbox o
     using store_lineage l
     where l.scope_id = $1
       and l.owner_customer_id = any($2::uuid[])
       and o.scope_id = l.scope_id
       and o.app_id = l.app_id
       and o.store = l.store
       and o.store_environment = l.store_environment
       and o.kind = 'account_token'
       and o.key = l.root_key`,
    whose,
  )
  await tx.query(
    `update store_lineage
     set owner_customer_id = null, owner_deleted = true, account_token = null, extra = extra - $3::text[]
     where scope_id = $1
       and owner_customer_id = any($2::uuid[])`,
    [...whose, personalClaims],
  )
  await tx.query(
    `delete from checkout_session c
     using account_binding b
     where c.scope_id = $1
       and b.scope_id = $1
       and b.store = 'stripe'
       and b.value = c.public_id
       and b.customer_id = any($2::uuid[])`,
    whose,
  )
  await tx.query(`delete from account_binding where scope_id = $1 and customer_id = any($2::uuid[])`, whose)
  await tx.query(`delete from intro_token where scope_id = $1 and customer_id = any($2::uuid[])`, whose)
  await tx.query(`delete from purchase_result where scope_id = $1 and customer_id = any($2::uuid[])`, whose)
  await tx.query(
    `delete from pending_claim
     where scope_id = $1
       and (customer_id = any($2::uuid[]) or distinct_id = any($3::text[]))`,
    [...whose, distinctIds],
  )
  await tx.query(
    `update store_period
     set granted_to = '00000000-0000-0000-0000-000000000000'
     where scope_id = $1
       and granted_to = any($2::uuid[])`,
    whose,
  )
  await tx.query(
    `update purchase_transfer
     set from_customer_id = case when from_customer_id = any($2::uuid[]) then null else from_customer_id end,
       to_customer_id = case
         when to_customer_id = any($2::uuid[]) then '00000000-0000-0000-0000-000000000000'
         else to_customer_id
       end
     where scope_id = $1
       and (from_customer_id = any($2::uuid[]) or to_customer_id = any($2::uuid[]))`,
    whose,
  )
}
