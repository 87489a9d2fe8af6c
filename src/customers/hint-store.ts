import { int4s, texts } from '../db/binary-array.ts'
import type { Pool } from '../db/pool.ts'
import { raw, type Statement } from '../db/raw.ts'
import type { Scope } from '../tenancy/index.ts'

/** Prepared: planning over sixteen partitions costs ten times as much as one look-up. */
const readCustomerIds: Statement = {
  name: 'customers_read_ids',
  text: `
    select a.customer_id
    from unnest($1::int[], $2::text[]) with ordinality as q(scope_id, distinct_id, n)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) a on true
    order by q.n`,
}

/** The customer of each distinct id, in order; null: it names nobody. */
export async function selectCustomerIds(
  pool: Pool,
  names: { scope: Scope; distinctId: string }[],
): Promise<(string | null)[]> {
  const values = [int4s(names.map(({ scope }) => scope.scopeId)), texts(names.map(({ distinctId }) => distinctId))]
  const rows = await pool.connected((client) => raw(client, readCustomerIds, values))
  return rows.map(([customerId]) => customerId ?? null)
}
