import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** What queries have to know of segments, which lie above this module. */
export interface SegmentSource {
  /** SQL for: the customer of an expression is in the segment whose id is another one. */
  isMember: (names: { scopeId: string; customer: string; segment: string }) => string
  /** Those of the ids that are no segments of the scope. */
  unknown: (sql: Sql, scope: Scope, ids: string[]) => Promise<string[]>
}

/** Members of the definition that serves. Found by primary keys and segment_version_serving. */
export const segments: SegmentSource = {
  isMember: ({ scopeId, customer, segment }) => `exists (
    select
    from segment g
    join segment_version v on v.scope_id = g.scope_id and v.segment_id = g.id and v.state = 'serving'
    join membership m on m.scope_id = v.scope_id and m.version_id = v.id
    where g.scope_id = ${scopeId}
      and g.public_id = ${segment}
      and m.customer_id = ${customer}
  )`,
  async unknown(sql, { scopeId }, ids) {
    const found = await sql.query<{ id: string }>(
      `select public_id as id
      from segment
      where scope_id = $1
        and public_id = any ($2::text[])
        and deleted_at is null`,
      [scopeId, ids],
    )
    const known = new Set(found.map(({ id }) => id))
    return ids.filter((id) => !known.has(id))
  },
}
