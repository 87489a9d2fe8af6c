import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Segment } from './manage-store.ts'
import { type Membership, selectMembers, selectMemberships } from './read-store.ts'

/** Who is a member, the newest first. `before` is the last one of the page before. */
export function listMembers(
  sql: Sql,
  scope: Scope,
  segment: Segment,
  page: { limit: number; before: { since: number; customerId: string } | null },
): Promise<Membership[]> {
  return selectMembers(sql, scope, segment.id, page)
}

/** Segments that each customer is a member of, with the time since when; those it is not in are left out. */
export async function membershipsOf(
  sql: Sql,
  scope: Scope,
  customerIds: readonly string[],
): Promise<Map<string, Membership[]>> {
  return Map.groupBy(await selectMemberships(sql, scope, customerIds), ({ customerId }) => customerId)
}
