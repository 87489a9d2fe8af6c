import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import type { CustomerChange } from './changes.ts'

/** By primary key. */
export async function selectChanges(
  sql: Sql,
  scope: Scope,
  { limit, after }: { limit: number; after: bigint },
): Promise<CustomerChange[]> {
  const rows = await sql.query<{
    pos: bigint
    kind: CustomerChange['kind']
    customer_id: string
    source_customer_id: string | null
    merge_id: bigint | null
    created_ms: number
    erased_ms: number | null
  }>(
    `select pos, kind, customer_id, source_customer_id, merge_id,
       round(extract(epoch from at) * 1000)::float8 as created_ms,
       case when kind = 'delete' then round(extract(epoch from settled_at) * 1000)::float8 end as erased_ms
     from customer_change
     where scope_id = $1
       and pos > $2
     order by pos
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map((row) => ({
    ...{ position: row.pos, kind: row.kind, customerId: row.customer_id, sourceCustomerId: row.source_customer_id },
    ...{ mergeId: row.merge_id, createdAt: row.created_ms, erasedAt: row.erased_ms },
  }))
}
