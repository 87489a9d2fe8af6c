import type { Tx } from '../db/pool.ts'
import { assert, must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { decideSplit, type MovedRecord, movedRecordOf, type SplitParts } from './decide-split.ts'
import { selectMerge, writeSplit } from './journal-store.ts'
import { foreseeBirths } from './load.ts'
import { selectRecord } from './load-store.ts'
import { type IdentityServices, takeLane, unlessStale } from './merge.ts'
import { jsonText, parsePropertySet } from './property-set.ts'
import { getCustomer } from './read.ts'
import type { AliasWrite, CustomerRecord, CustomerWrite } from './slice.ts'
import type { Customer, DistinctId, Merge, MergeParticipant } from './types.ts'
import { insertCustomers, updateAliases, updateCustomers } from './write-store.ts'

/**
 * Takes the newest merge of a customer back, at a position of the lane: the source is a customer again with its ids, its
 * properties as they were, and what participants give back; events are its own again by their distinct ids. `replay`: it was
 * taken back before. 404 for an unknown customer or merge; 409 `conflict` when a newer merge stands, or nothing was merged.
 */
export async function splitMerge(
  tx: Tx,
  scope: Scope,
  { customerId, mergeId }: { customerId: string; mergeId: bigint },
  { participants }: Pick<IdentityServices, 'participants'>,
): Promise<{ merge: Merge; replay: boolean }> {
  const pos = await takeLane(tx, scope, 'split_merge', { customer_id: customerId, merge_id: String(mergeId) })
  const target = await getCustomer(tx, scope, customerId)
  const found = await selectMerge(tx, scope, target.id, mergeId)
  if (!found) throw refuse('not_found', { message: 'This customer has no such merge.' })
  const { merge, newest } = found
  if (merge.status === 'split') return { merge, replay: true }
  if (merge.status === 'refused') throw refuse('conflict', { message: 'Nothing was merged here.' })
  if (newest !== mergeId) {
    const message = 'Newer merges of this customer come first.'
    throw refuse('conflict', { message, details: { merge_id: `merge_${newest}` } })
  }
  const moved = movedRecordOf(found.moved)
  if (!moved) throw refuse('conflict', { message: 'This merge kept too little to be taken back.' })
  const sourceId = await unlessStale(() => write(tx, scope, { merge, moved, target, pos, participants }))
  const work = { customer_ids: [target.id, sourceId], distinct_ids: moved.distinctIds }
  const split = await writeSplit(tx, scope, { mergeId, customerId: target.id, sourceCustomerId: sourceId, pos, work })
  return { merge: must(split, 'the merge stood'), replay: false }
}

const ways = { join: 'join', attach_target: 'rename', attach_source: 'add', birth: 'add' } as const

interface Split {
  merge: Merge
  moved: MovedRecord
  target: Customer
  pos: bigint
  participants: readonly MergeParticipant[]
}

/** Gives the id of the customer that came out. */
async function write(tx: Tx, scope: Scope, { merge, moved, target, pos, participants }: Split): Promise<string> {
  const record = must(await selectRecord(tx.client, scope, target.id), 'the customer was just read')
  const names = target.distinctIds.filter(({ distinctId }) => moved.distinctIds.includes(distinctId))
  assert(names.length === moved.distinctIds.length, 'the ids of a source stay with its survivor')
  assert(names.length < target.distinctIds.length, 'the target keeps an id')
  const parts = decideSplit(
    moved,
    { properties: parsePropertySet(record.properties ?? '{}', record.times ?? '{}'), createdAt: record.createdAt },
    {
      firstSeenAt: Math.min(...names.map(({ firstSeenAt }) => firstSeenAt)),
      identified: names.some(({ identified }) => identified),
    },
  )
  const sourceId = await writeSource(tx, scope, { merge, moved, parts, aliasCount: names.length })
  await updateCustomers(tx, scope, [targetRow(record, parts, names.length)])
  await updateAliases(
    tx,
    scope,
    names.map((name) => aliasRow(name, target.id, sourceId)),
    [pos],
  )
  for (const { name, split } of participants) {
    await split(tx, scope, {
      ...{ sourceCustomerId: sourceId, targetCustomerId: target.id, position: pos, mergedAt: merge.createdAt },
      ...{ how: ways[moved.how], moved: moved.elsewhere[name] ?? null },
    })
  }
  return sourceId
}

/** The source's own record returns; where it had none, or its record went on as the target's, its id gives birth again. */
async function writeSource(
  tx: Tx,
  scope: Scope,
  { merge, moved, parts, aliasCount }: { merge: Merge; moved: MovedRecord; parts: SplitParts; aliasCount: number },
): Promise<string> {
  const { source } = parts
  const row = {
    properties: jsonText(source.properties.values),
    times: jsonText(source.properties.times),
    ...{ identified: source.identified, createdAt: source.createdAt, aliasCount, mergedInto: null },
  }
  if (moved.how === 'join') {
    const id = must(merge.sourceCustomerId, 'two records were joined')
    const { version, generation } = must(await selectRecord(tx.client, scope, id), 'a merged record stays')
    await updateCustomers(tx, scope, [{ ...row, id, generation, version: version + 1, expectedVersion: version }])
    return id
  }
  const births = await foreseeBirths(tx.client, scope, [merge.sourceDistinctId])
  const { customerId: id, generation } = must(births.get(merge.sourceDistinctId), 'the birth was foreseen')
  await insertCustomers(tx, scope, [{ ...row, id, generation, version: 1, expectedVersion: 0 }])
  return id
}

function targetRow(
  { id, identified, version, generation, aliasCount }: CustomerRecord,
  { target }: SplitParts,
  leaving: number,
): CustomerWrite {
  return {
    id,
    properties: jsonText(target.properties.values),
    times: jsonText(target.properties.times),
    // An id that was logged in with stays so, whoever it is joined to.
    ...{ identified, createdAt: target.createdAt, generation, mergedInto: null },
    aliasCount: aliasCount - leaving,
    version: version + 1,
    expectedVersion: version,
  }
}

function aliasRow({ distinctId, identified, firstSeenAt }: DistinctId, before: string, customerId: string): AliasWrite {
  return { distinctId, customerId, identified, firstSeenAt, before, event: 0 }
}
