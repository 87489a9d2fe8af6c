import type { Json, JsonObject, LoggedEvent, Warning } from '../events/index.ts'
import { assert, must, unreachable } from '../kernel/assert.ts'
import { customerIdCharsMax } from '../kernel/limits.ts'
import { type Draft, imageOf } from './draft.ts'
import { attach, birth, type Fold, identifiedBy, join, named, namesOf } from './fold.ts'
import { type MergeRefusal, type MergeRuling, namesOnePerson, type Party, ruleMerge } from './identity.ts'

export type MergeOutcome = { status: 'merged' | 'refused' | 'same'; reason?: MergeRefusal }

/** The id that an event wants joined to its own; undefined when it has none. */
export function anonymousIdOf({ payload }: LoggedEvent): Json | undefined {
  return payload.$anon_distinct_id ?? payload.properties.$anon_distinct_id ?? undefined
}

/** Whether the event leads to a ruling about two ids, whatever its outcome. */
export function asksToIdentify(event: LoggedEvent): boolean {
  return event.payload.event === '$identify' && anonymousIdOf(event) !== undefined
}

/** Decides and carries out the merge that an `$identify` asks for. Null: the event asks for none. */
export function identify(fold: Fold, event: LoggedEvent, i: number, warnings: Warning[]): MergeOutcome | null {
  const sourceId = anonymousIdOf(event)
  if (sourceId === undefined) return null
  if (event.payload.event !== '$identify') {
    warnings.push({ code: 'anon_id_ignored', detail: '$anon_distinct_id counts on $identify only' })
    return null
  }
  const { distinctId: targetId, at, uuid: eventUuid } = event
  return mergeIds(fold, { sourceId, targetId, at, eventUuid, event: i }, warnings)
}

/** Two ids that somebody says are of one person. */
export interface MergeRequest {
  /** Anything that an event can carry. */
  sourceId: Json
  targetId: string
  /** Unix milliseconds. */
  at: number
  /** Null: it is a command. */
  eventUuid: string | null
  /** Where its position stands in the list given to the write. */
  event: number
  force?: boolean
}

export function mergeIds(fold: Fold, request: MergeRequest, warnings: Warning[]): MergeOutcome {
  const { sourceId, targetId, eventUuid, event, force = false } = request
  // What is not legal was not looked up either.
  const legalId = namesOnePerson(sourceId) ? sourceId : null
  const source = legalId === null ? null : named(fold, legalId)
  const target = named(fold, targetId)
  const ruling = ruleMerge({
    sourceId,
    targetId,
    source: source && partyOf(source),
    target: target && partyOf(target),
    sourceDeleted: legalId !== null && fold.state.deleted.has(legalId),
    force,
  })
  const carried = carryOut(fold, request, { ruling, legalId, source, target }, warnings)
  if (ruling.kind !== 'refused' || ruling.identifies) identifiedBy(fold, carried.customer, targetId, event)
  if (ruling.kind === 'same') return { status: 'same' }
  const reason = ruling.kind === 'refused' ? ruling.reason : null
  fold.journal.push({
    customerId: carried.customer.id,
    sourceCustomerId: source?.id ?? null,
    // The journal must not keep what a deletion took away.
    sourceDistinctId: reason === 'source_deleted' ? '' : shown(sourceId),
    targetDistinctId: targetId,
    eventUuid,
    event,
    status: reason === null ? 'merged' : 'refused',
    reason,
    moved: carried.moved,
    merge: carried.merge,
  })
  if (reason === null) return { status: 'merged' }
  warnings.push({ code: 'merge_refused', detail: reason })
  return { status: 'refused', reason }
}

function partyOf({ id, identified, aliasCount }: Draft): Party {
  return { customerId: id, identified, aliasCount }
}

interface Ruled {
  ruling: MergeRuling
  legalId: string | null
  source: Draft | null
  target: Draft | null
}

interface Carried {
  /** Whom the event belongs to from here on. */
  customer: Draft
  moved: JsonObject | null
  /** Index in the list of customers that became one. */
  merge: number | null
}

function carryOut(fold: Fold, { targetId, at, event }: MergeRequest, ruled: Ruled, warnings: Warning[]): Carried {
  const { kind } = ruled.ruling
  const targetOrNew = () => ruled.target ?? birth(fold, { distinctId: targetId, at }, event)
  switch (kind) {
    case 'refused':
    case 'same':
      return { customer: targetOrNew(), moved: null, merge: null }
    case 'birth':
    case 'attach_source': {
      const customer = targetOrNew()
      const sourceId = must(ruled.legalId, 'only legal ids are attached')
      attach(fold, customer, sourceId, at, event)
      return { customer, moved: { how: kind, distinct_ids: [sourceId] }, merge: null }
    }
    case 'attach_target': {
      const customer = must(ruled.source, 'the source exists')
      // The record goes on under the target's name: from here on only this tells what was the source's.
      const image = imageOf(customer)
      const sourceIds = namesOf(fold, customer.id)
      assert(sourceIds.length === customer.aliasCount, 'all distinct ids of the source are known')
      const moved = { how: kind, distinct_ids: sourceIds.toSorted(), source: image }
      attach(fold, customer, targetId, at, event)
      return { customer, moved, merge: null }
    }
    case 'join': {
      const source = must(ruled.source, 'the source exists')
      const customer = must(ruled.target, 'the target exists')
      const images = { source: imageOf(source), target: imageOf(customer) }
      const distinctIds = join(fold, source, customer, event, warnings)
      return { customer, moved: { how: kind, distinct_ids: distinctIds, ...images }, merge: fold.merges.length - 1 }
    }
    default:
      return unreachable(kind)
  }
}

/** The source id as the journal can hold it: a refused one may be anything. */
function shown(id: Json): string {
  const text = (typeof id === 'string' ? id : JSON.stringify(id)).slice(0, 2 * customerIdCharsMax)
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
