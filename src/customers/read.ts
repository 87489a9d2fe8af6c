import type { Sql } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { selectMerges, selectRecordIds, selectSurvivorIds } from './journal-store.ts'
import { selectByDistinctId, selectNewest, selectRecord, selectSurvivor } from './read-store.ts'
import type { Customer, CustomerCursor, Merge } from './types.ts'

/** The customer with this id; of a merged one the survivor. 404 when there is none in this scope. */
export async function getCustomer(sql: Sql, scope: Scope, customerId: string): Promise<Customer> {
  const record = await selectRecord(sql, scope, customerId)
  const customer = record?.mergedInto ? await selectSurvivor(sql, scope, customerId) : record
  if (!customer) throw refuse('not_found')
  return customer
}

/** The customer that a distinct id names, or null. */
export async function byDistinctId(sql: Sql, scope: Scope, distinctId: string): Promise<Customer | null> {
  return (await selectByDistinctId(sql, scope, distinctId)) ?? null
}

/** Newest first, without merged ones. `before` is the last customer of the page before, null for the first page. */
export function listCustomers(
  sql: Sql,
  scope: Scope,
  page: { limit: number; before: CustomerCursor | null },
): Promise<Customer[]> {
  return selectNewest(sql, scope, page)
}

/**
 * What was decided about the identity of a customer and of all that were merged into it, newest first. `before` is the id
 * of the last merge of the page before.
 */
export function listMerges(
  sql: Sql,
  scope: Scope,
  customerId: string,
  page: { limit: number; before: bigint | null },
): Promise<Merge[]> {
  return selectMerges(sql, scope, customerId, page)
}

/** For each of these records that exists the one that it has become through merges. */
export async function survivorsOf(
  sql: Sql,
  scope: Scope,
  customerIds: readonly string[],
): Promise<Map<string, string>> {
  const found = await selectSurvivorIds(sql, scope, customerIds)
  return new Map(found.map(({ asked, survivor }) => [asked, survivor]))
}

/**
 * Every record that is one of these customers by now: what they have become, and all that went into that. What is kept under
 * a customer's id, such as an event, may stand under any of them. Ids that name no record are left out.
 */
export async function recordsOf(sql: Sql, scope: Scope, customerIds: readonly string[]): Promise<string[]> {
  const survivors = await survivorsOf(sql, scope, customerIds)
  return selectRecordIds(sql, scope, [...new Set(survivors.values())])
}
