import type { Tx } from '../db/pool.ts'
import { applyCommand, type LoggedEvent, StaleSlice } from '../events/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { commandLockMsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { decisionOf } from './apply.ts'
import { openFold } from './fold.ts'
import { mergeIds } from './identify.ts'
import { type MergeRefusal, namesOnePerson } from './identity.ts'
import { selectNewestMerge } from './journal-store.ts'
import { loadSlice } from './load.ts'
import { writeDecision, writeJournal } from './projection.ts'
import { getCustomer } from './read.ts'
import type { Customer, Merge, MergeParticipant } from './types.ts'

export interface IdentityServices {
  tombstoneKey: Buffer
  participants: readonly MergeParticipant[]
}

export interface MergeCommand {
  customerId: string
  /** Anything storable: what may not take part is refused like in an event. */
  sourceDistinctId: string
  /** Joins also a source that is identified; both must exist. */
  force: boolean
  /** Unix milliseconds. */
  now: number
}

/**
 * Joins the customer of `sourceDistinctId` to this one at once, at a position of the lane, by the rules of `$identify`.
 * `replay`: it was joined before, and that merge is given again. 404 for an unknown customer, 409 `identity_conflict` with
 * the reason when a rule forbids it; then nothing is changed.
 */
export async function mergeCustomers(
  tx: Tx,
  scope: Scope,
  { customerId, sourceDistinctId, force, now }: MergeCommand,
  services: IdentityServices,
): Promise<{ merge: Merge; replay: boolean }> {
  const body = { customer_id: customerId, source_distinct_id: sourceDistinctId, force, at: now }
  const pos = await takeLane(tx, scope, 'merge_customers', body)
  const target = await getCustomer(tx, scope, customerId)
  if (target.distinctIds.some(({ distinctId }) => distinctId === sourceDistinctId)) {
    const earlier = await selectNewestMerge(tx, scope, target.id, sourceDistinctId)
    if (!earlier) throw conflict('same_id')
    return { merge: earlier, replay: true }
  }
  const targetId = mainIdOf(target)
  await unlessStale(async () => {
    const event = asEvent({ targetId, sourceDistinctId, now })
    const fold = openFold(await loadSlice(tx.client, scope, [event], { tombstoneKey: services.tombstoneKey, force }))
    const request = { sourceId: sourceDistinctId, targetId, at: now, eventUuid: null, event: 0, force }
    const { reason } = mergeIds(fold, request, [])
    if (reason !== undefined) throw conflict(reason)
    const decision = decisionOf(fold, [])
    await writeDecision(tx, scope, decision, [pos])
    await writeJournal(tx, scope, decision, [pos], services.participants)
  })
  const merge = await selectNewestMerge(tx, scope, target.id, sourceDistinctId)
  return { merge: must(merge, 'the merge was written'), replay: false }
}

/** Takes the lane's next position, and from then on waits for no lock that may cost the lane a slice. */
export async function takeLane(
  tx: Tx,
  scope: Scope,
  kind: string,
  body: Parameters<typeof applyCommand>[3],
): Promise<bigint> {
  const pos = await applyCommand(tx, scope, kind, body)
  await tx.query(`set local lock_timeout = '${commandLockMsMax}ms'`)
  return pos
}

/** Births take no position, so they can still come between: then the caller tries again. */
export async function unlessStale<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof StaleSlice ? refuse('service_unavailable', { retryAfterS: 1, cause: error }) : error
  }
}

/** The name that the journal gives the customer: an identified one before others, and one that rules accept before all. */
function mainIdOf({ distinctIds }: Customer): string {
  const legal = distinctIds.filter(({ distinctId }) => namesOnePerson(distinctId))
  const main = legal.find(({ identified }) => identified) ?? legal[0] ?? distinctIds[0]
  return must(main, 'a live customer has a distinct id').distinctId
}

/** What a client would have sent: the same is loaded for it. */
function asEvent({ targetId, sourceDistinctId, now }: { targetId: string; sourceDistinctId: string; now: number }) {
  const uuid = ''
  const event: LoggedEvent = {
    ...{ uuid, distinctId: targetId, appId: null, at: now, receivedAt: now, live: true, recognised: true },
    payload: {
      ...{ event: '$identify', distinct_id: targetId, uuid, timestamp: new Date(now).toISOString() },
      ...{ properties: {}, $anon_distinct_id: sourceDistinctId, trust: 'server' },
    },
  }
  return event
}

const sentences: Record<MergeRefusal, string> = {
  same_id: 'This distinct id is the customer’s own.',
  illegal_id: 'A placeholder names many people and cannot be joined.',
  source_deleted: 'The customer of this distinct id was deleted.',
  source_missing: 'force needs a customer that this distinct id names.',
  source_identified: 'The other customer is identified. Join them with force if both are one person.',
  id_cap: 'Together they would have more than 1,000 distinct ids.',
}

function conflict(reason: MergeRefusal) {
  return refuse('identity_conflict', { message: sentences[reason], details: { reason } })
}
