import type { Tx } from '../db/pool.ts'
import { applyCommand, type Warning } from '../events/index.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { directivesOfEdit, type PropertyEdit } from './directives.ts'
import { draftOf, propertiesOf, touch, writeOf } from './draft.ts'
import { selectRecord } from './load-store.ts'
import { applyDirectives } from './properties.ts'
import { getCustomer } from './read.ts'
import { mark, ring } from './segments/state-store.ts'
import type { Customer } from './types.ts'
import { updateCustomers } from './write-store.ts'

/**
 * Edits a customer's properties at once, by the rules of the directives, at a position of the lane. Keys that can't be
 * written are told by warnings, and the position comes along. Values are such as an event could carry (`cleanJson`), `now` is in Unix milliseconds. 404
 * when there is no such customer in this scope.
 */
export async function patchProperties(
  tx: Tx,
  scope: Scope,
  customerId: string,
  edit: PropertyEdit,
  now: number,
): Promise<{ customer: Customer; warnings: Warning[]; pos: bigint }> {
  const pos = await applyCommand(tx, scope, 'patch_customer', { customer_id: customerId, ...edit, at: now })
  const { id } = await getCustomer(tx, scope, customerId)
  const warnings = await editProperties(tx, scope, { customerId: id, edit, now })
  return { customer: await getCustomer(tx, scope, id), warnings, pos }
}

/** The caller holds the lane: nobody else changes a customer before the transaction ends. */
export async function editProperties(tx: Tx, scope: Scope, edit: Edit): Promise<Warning[]> {
  const { changed, warnings } = await writeEdit(tx, scope, edit)
  if (changed) {
    await mark(tx, scope, [edit.customerId], 'event')
    await ring(tx, scope)
  }
  return warnings
}

export interface Edit {
  customerId: string
  edit: PropertyEdit
  /** Unix milliseconds. */
  now: number
}

/** The customer's row alone: nobody is told. */
export async function writeEdit(
  tx: Tx,
  scope: Scope,
  { customerId, edit, now }: Edit,
): Promise<{ changed: boolean; warnings: Warning[] }> {
  const record = await selectRecord(tx.client, scope, customerId)
  if (!record) throw refuse('not_found')
  const draft = draftOf(record)
  const warnings: Warning[] = []
  const directives = directivesOfEdit(edit, warnings)
  if (applyDirectives(propertiesOf(draft), directives, { at: now, live: true }, warnings)) {
    draft.propertiesChanged = true
    touch(draft, 0)
  }
  const row = writeOf(draft)
  if (row) await updateCustomers(tx, scope, [row])
  return { changed: row !== null, warnings }
}
