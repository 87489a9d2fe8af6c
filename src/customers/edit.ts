import type { Tx } from '../db/pool.ts'
import { applyCommand, applyCommands, type Warning } from '../events/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { editsAtOnce } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { directivesOfEdit, type PropertyEdit } from './directives.ts'
import { draftOf, propertiesOf, touch, writeOf } from './draft.ts'
import { selectRecords } from './load-store.ts'
import { applyDirectives } from './properties.ts'
import { getCustomer, survivorsOf } from './read.ts'
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

/** An edit of one of many. */
export interface CustomerEdit {
  customerId: string
  edit: PropertyEdit
}

/**
 * The same for many customers, in the order given, each at a position of its own: a statement of each kind for all of them,
 * as long as what they are made of is small. Gives whom each came to, and where.
 */
export async function patchMany(
  tx: Tx,
  scope: Scope,
  edits: readonly CustomerEdit[],
  now: number,
): Promise<{ customerId: string; pos: bigint }[]> {
  const bodies = edits.map(({ customerId, edit }) => ({ customer_id: customerId, ...edit, at: now }))
  const positions = await applyCommands(tx, scope, 'patch_customer', bodies)
  const ids = [...new Set(edits.map(({ customerId }) => customerId))]
  const survivors = await survivorsOf(tx, scope, ids)
  const live = edits.map(({ customerId, edit }) => ({ customerId: survivors.get(customerId) ?? customerId, edit }))
  for (let from = 0; from < live.length; from += editsAtOnce) {
    const { changed } = await writeEdits(tx, scope, live.slice(from, from + editsAtOnce), now)
    if (changed.length === 0) continue
    await mark(tx, scope, changed, 'event')
    await ring(tx, scope)
  }
  return live.map(({ customerId }, i) => ({ customerId, pos: must(positions[i], 'each has one') }))
}

/** The caller holds the lane: nobody else changes a customer before the transaction ends. */
export async function editProperties(tx: Tx, scope: Scope, edit: Edit): Promise<Warning[]> {
  const { changed, warnings } = await writeEdits(tx, scope, [edit], edit.now)
  if (changed.length > 0) {
    await mark(tx, scope, [edit.customerId], 'event')
    await ring(tx, scope)
  }
  return warnings
}

export interface Edit extends CustomerEdit {
  /** Unix milliseconds. */
  now: number
}

/** The rows of customers alone, one after the other where one is edited twice: nobody is told. Gives who changed. */
export async function writeEdits(
  tx: Tx,
  scope: Scope,
  edits: readonly CustomerEdit[],
  now: number,
): Promise<{ changed: string[]; warnings: Warning[] }> {
  // By id, as everybody locks them.
  const ids = [...new Set(edits.map(({ customerId }) => customerId))].toSorted()
  const drafts = new Map((await selectRecords(tx.client, scope, ids)).map((record) => [record.id, draftOf(record)]))
  const warnings: Warning[] = []
  for (const [i, { customerId, edit }] of edits.entries()) {
    const draft = drafts.get(customerId)
    if (!draft) throw refuse('not_found')
    const directives = directivesOfEdit(edit, warnings)
    if (!applyDirectives(propertiesOf(draft), directives, { at: now, live: true }, warnings)) continue
    draft.propertiesChanged = true
    touch(draft, i)
  }
  const rows = [...drafts.values()].flatMap((draft) => writeOf(draft) ?? [])
  if (rows.length > 0) await updateCustomers(tx, scope, rows)
  return { changed: rows.map(({ id }) => id), warnings }
}
