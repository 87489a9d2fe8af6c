import type { Tx } from '../../db/pool.ts'
import type { Happening, Json, JsonObject } from '../../events/index.ts'
import { StartError } from '../../kernel/start-error.ts'
import type { PropertyEdit } from '../directives.ts'
import { writeEdits } from '../edit.ts'
import { selectNames } from '../load-store.ts'
import { mergeCustomers } from '../merge.ts'
import { byDistinctId, getCustomer } from '../read.ts'
import { splitMerge } from '../split.ts'
import type { Shadow } from './replay.ts'
import { bear, seedIds, selectSilent } from './seed.ts'
import { insertIncomplete, isDeleted, selectIncomplete, selectMergeHere } from './shadow-store.ts'

type Command = Extract<Happening, { kind: 'command' }>

/** They take a position and change no customer; of a deletion the tombstones count, from the beginning. */
const others = new Set([
  ...['delete_customer', 'rebuild_customers'],
  ...['create_segment', 'redefine_segment', 'delete_segment', 'segments_step', 'repair_segments'],
])

/** Throws Refusal when it can't be done here, and StartError for a command that this version does not know. */
export async function replayCommand(tx: Tx, shadow: Shadow, { name, body, pos }: Command): Promise<void> {
  // Erased with the customer whom it changed.
  if (others.has(name) || Object.keys(body).length === 0) return
  switch (name) {
    case 'patch_customer':
      return patch(tx, shadow, body)
    case 'resolve_customer':
      return resolve(tx, shadow, body)
    case 'merge_customers':
      return merge(tx, shadow, body)
    case 'split_merge':
      return split(tx, shadow, body)
    default:
      throw new StartError(`position ${pos} is a command "${name}", which this version cannot repeat`)
  }
}

async function patch(tx: Tx, shadow: Shadow, body: JsonObject): Promise<void> {
  const ids = await idsOf(tx, shadow, textOf(body.customer_id))
  if (!ids || (await anyIncomplete(tx, ids.distinctIds))) return
  await writeEdits(tx, shadow.scope, [{ customerId: ids.id, edit: editOf(body) }], Number(body.at))
}

async function resolve(tx: Tx, shadow: Shadow, body: JsonObject): Promise<void> {
  const { scope, tombstoneKey } = shadow
  const distinctId = textOf(body.distinct_id)
  const [name] = await selectNames(tx.client, scope, { tombstoneKey, distinctIds: [distinctId], whole: [false] })
  if (name?.deleted || (await anyIncomplete(tx, [distinctId]))) return
  await seedIds(tx, shadow, new Map([[distinctId, Number(body.at)]]))
  if (!(await byDistinctId(tx, scope, distinctId))) await bear(tx, scope, new Map([[distinctId, Number(body.at)]]))
  const customer = await byDistinctId(tx, scope, distinctId)
  if (customer) await writeEdits(tx, scope, [{ customerId: customer.id, edit: editOf(body) }], Number(body.at))
}

async function merge(tx: Tx, shadow: Shadow, body: JsonObject): Promise<void> {
  const { scope, tombstoneKey } = shadow
  const sourceDistinctId = textOf(body.source_distinct_id)
  const target = await idsOf(tx, shadow, textOf(body.customer_id))
  if (!target) return
  const ids = [...target.distinctIds, sourceDistinctId]
  if (await anyIncomplete(tx, ids)) return insertIncomplete(tx, scope, ids)
  await seedIds(tx, shadow, new Map([[sourceDistinctId, Number(body.at)]]))
  const command = { customerId: target.id, sourceDistinctId, force: body.force === true, now: Number(body.at) }
  await mergeCustomers(tx, scope, command, { tombstoneKey, participants: [] })
}

async function split(tx: Tx, shadow: Shadow, body: JsonObject): Promise<void> {
  const { scope, live } = shadow
  const ids = await idsOf(tx, shadow, textOf(body.customer_id))
  if (!ids || (await anyIncomplete(tx, ids.distinctIds))) return
  const mergeId = await selectMergeHere(tx, live, scope, textOf(body.merge_id))
  // Without the merge there is nothing to take back, and no telling what it was.
  if (mergeId === undefined) await insertIncomplete(tx, scope, ids.distinctIds)
  else await splitMerge(tx, scope, { customerId: ids.id, mergeId }, { participants: [] })
}

/** Null for a customer who was deleted since. Throws Refusal when neither the history nor a call made it. */
async function idsOf(
  tx: Tx,
  shadow: Shadow,
  customerId: string,
): Promise<{ id: string; distinctIds: string[] } | null> {
  if (await isDeleted(tx, shadow.live, shadow.scope, customerId)) return null
  const silent = await selectSilent(tx, shadow, customerId)
  // Of those whose history is not all there nothing was repeated.
  if (silent && (await anyIncomplete(tx, silent.distinctIds))) return { id: customerId, ...silent }
  if (silent) await bear(tx, shadow.scope, silent.birth)
  const { id, distinctIds } = await getCustomer(tx, shadow.scope, customerId)
  return { id, distinctIds: distinctIds.map(({ distinctId }) => distinctId) }
}

async function anyIncomplete(tx: Tx, distinctIds: string[]): Promise<boolean> {
  return (await selectIncomplete(tx, distinctIds)).size > 0
}

/** What `applyCommand` recorded. */
function editOf({ set, set_once, increment, unset }: JsonObject): PropertyEdit {
  return {
    ...(isObject(set) && { set }),
    ...(isObject(set_once) && { set_once }),
    ...(isObject(increment) && { increment }),
    ...(Array.isArray(unset) && { unset }),
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}
