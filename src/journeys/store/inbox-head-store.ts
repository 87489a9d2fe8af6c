import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** When the oldest row was received that waits for the customer of each journey; a journey that nothing waits for is left out. */
export async function selectInboxHeads(
  sql: Sql,
  { scopeId }: Scope,
  journeyIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await sql.query<{ id: string; head: bigint }>(
    `select k.id, i.head
     from unnest($2::uuid[]) as k(id)
     cross join lateral (
       select customer_id
       from journey
       where scope_id = $1
         and id = k.id
       limit 1
     ) j
     cross join lateral (
       select min(received_at_ms) as head
       from journey_inbox
       where scope_id = $1
         and customer_id = j.customer_id
     ) i
     where i.head is not null`,
    [scopeId, journeyIds],
  )
  return new Map(rows.map(({ id, head }) => [id, Number(head)]))
}
