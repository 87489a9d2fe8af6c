import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'

/**
 * Keeps customers from being merged into others and from being deleted until the end of `tx`: what is written for them
 * meanwhile is seen by whoever merges or deletes them next. False: not all of them are there any more. Call it before
 * anything else of theirs is locked.
 */
export async function keepCustomers(tx: Tx, { scopeId }: Scope, customerIds: readonly string[]): Promise<boolean> {
  const ids = [...new Set(customerIds)]
  const rows = await tx.query(
    `select id
     from customer
     where scope_id = $1
       and id = any($2::uuid[])
       and merged_into is null
     order by id
     for share`,
    [scopeId, ids],
  )
  return rows.length === ids.length
}

/** For who merges or deletes them: waits for whoever keeps them. */
export async function takeCustomers(tx: Tx, { scopeId }: Scope, customerIds: readonly string[]): Promise<void> {
  await tx.query(
    `select id
     from customer
     where scope_id = $1
       and id = any($2::uuid[])
     order by id
     for no key update`,
    [scopeId, [...new Set(customerIds)]],
  )
}
