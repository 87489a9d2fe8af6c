import type { Tx } from '../db/pool.ts'
import { applyCommand, type JsonObject, StaleSlice, type Warning } from '../events/index.ts'
import { assert } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { newborn, writeOf } from './draft.ts'
import { editProperties } from './edit.ts'
import { foreseeBirths } from './load.ts'
import { selectNames } from './load-store.ts'
import { getCustomer } from './read.ts'
import { mark } from './segments/state-store.ts'
import type { AliasWrite, CustomerWrite } from './slice.ts'
import type { Customer } from './types.ts'
import { deleteCustomer, insertAliases, insertCustomers } from './write-store.ts'

export interface ResolveOptions {
  tombstoneKey: Buffer
  /** Unix milliseconds: when a new customer was created. */
  now: number
  /** Set on the customer, new or not, at a position of the lane; such as an event could carry (`cleanJson`). */
  properties?: JsonObject
}

/**
 * The customer that a distinct id names; a new one when it names nobody. Without properties it takes no lock that the
 * lane waits for. With them it locks the lane: call it before anything that locks customers. 410 when the id was deleted.
 */
export async function resolveOrCreate(
  tx: Tx,
  scope: Scope,
  distinctId: string,
  { tombstoneKey, now, properties }: ResolveOptions,
): Promise<{ customer: Customer; created: boolean; warnings: Warning[] }> {
  const edit = properties && Object.keys(properties).length > 0 ? { set: properties } : null
  if (edit) await applyCommand(tx, scope, 'resolve_customer', { distinct_id: distinctId, ...edit, at: now })
  const { customerId, created } = await nameOrCreate(tx, scope, distinctId, { tombstoneKey, now })
  const warnings = edit ? await editProperties(tx, scope, { customerId, edit, now }) : []
  return { customer: await getCustomer(tx, scope, customerId), created, warnings }
}

/** Times somebody else may be quicker: once they were, the id names somebody. */
const triesMax = 3

async function nameOrCreate(
  tx: Tx,
  scope: Scope,
  distinctId: string,
  { tombstoneKey, now }: { tombstoneKey: Buffer; now: number },
): Promise<{ customerId: string; created: boolean }> {
  for (let tries = 0; tries < triesMax; tries++) {
    const [name] = await selectNames(tx.client, scope, { tombstoneKey, distinctIds: [distinctId], whole: [false] })
    assert(name, 'each id is answered')
    if (name.deleted) throw refuse('customer_deleted')
    if (name.alias) return { customerId: name.alias.customerId, created: false }
    const customerId = await create(tx, scope, distinctId, { createdAt: now, pos: name.pos })
    if (customerId !== null) return { customerId, created: true }
  }
  throw refuse('service_unavailable', { retryAfterS: 1 })
}

/** Null when somebody else gave the id a customer meanwhile. */
async function create(
  tx: Tx,
  scope: Scope,
  distinctId: string,
  { createdAt, pos }: { createdAt: number; pos: bigint },
): Promise<string | null> {
  const birth = (await foreseeBirths(tx.client, scope, [distinctId])).get(distinctId)
  assert(birth, 'the birth was foreseen')
  const { row, alias } = rowsOfBirth(birth, distinctId, createdAt)
  const { customerId } = birth
  if (!(await inserted(insertCustomers(tx, scope, [row])))) return null
  if (await inserted(insertAliases(tx, scope, [alias], [pos]))) {
    await mark(tx, scope, [customerId], 'event')
    return customerId
  }
  await deleteCustomer(tx, scope, customerId)
  return null
}

/** A customer that only has a name. */
export function rowsOfBirth(
  birth: { customerId: string; generation: number },
  distinctId: string,
  createdAt: number,
): { row: CustomerWrite; alias: AliasWrite } {
  const row = writeOf({ ...newborn(birth, createdAt, 0), aliasCount: 1 })
  assert(row, 'a newborn is written')
  const { customerId } = birth
  const alias = { distinctId, customerId, identified: false, firstSeenAt: createdAt, before: null, event: 0 }
  return { row, alias }
}

async function inserted(insert: Promise<void>): Promise<boolean> {
  try {
    await insert
    return true
  } catch (error) {
    if (error instanceof StaleSlice) return false
    throw error
  }
}
