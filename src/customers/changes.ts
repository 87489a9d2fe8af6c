import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { selectChanges } from './changes-store.ts'

/** A merge, split or deletion, for whoever keeps a copy elsewhere. */
export interface CustomerChange {
  /** Of the lane: nothing is ever listed later at or below one that was listed. */
  position: bigint
  kind: 'merge' | 'split' | 'delete'
  customerId: string
  /** Of a merge, who went in; of a split, who came out. Null where a merge only added an id. */
  sourceCustomerId: string | null
  mergeId: bigint | null
  /** Unix milliseconds, both. */
  createdAt: number
  /** Of a deletion, when everything was erased; null while it is under way. */
  erasedAt: number | null
}

/** Oldest first, after this position. */
export function listChanges(sql: Sql, scope: Scope, page: { limit: number; after: bigint }): Promise<CustomerChange[]> {
  return selectChanges(sql, scope, page)
}
