import type { JsonObject } from '../../events/index.ts'
import type { CompiledSet, PlacedLeaf, Version } from './compile.ts'
import { type CustomerState, emptyState, forgetGone, forgetVersion, parseState, stateText } from './state.ts'
import { count, evaluate, type Happened, lookAt, type Outcome } from './step.ts'

/** Why a customer is looked at. */
export interface Visit {
  customerId: string
  events: Happened[]
  /** Properties that may have changed. */
  keys: Set<string>
  /** Ask everything again: its timer rang, its properties were edited, it was merged. */
  whole: boolean
  /** Count all its events again. */
  recount: boolean
  cause: Cause
  /** Of the last event that led here; null: none did. */
  pos: bigint | null
}

export type Cause = 'event' | 'timer' | 'merge' | 'backfill' | 'definition' | 'historical'

/** A customer as it was found. */
export interface Found {
  /** Null: segments know nothing of it yet. */
  text: string | null
  /** Null: no property is asked for. */
  properties: JsonObject | null
}

/** A visit under way. */
export interface Opened {
  visit: Visit
  /** As it was stored, and when its timer was to ring. */
  before: { text: string; now: number; due: number | null } | null
  state: CustomerState
  properties: JsonObject | null
  /** Versions that are told of all its events again; they come from the event table. */
  recounted: Set<Version>
  touched: Set<Version>
}

/**
 * Takes what is stored, and counts the visit's events. Pending versions know customers up to `walkedTo`; of one that they
 * do not know, they learn everything now.
 */
export function open(
  set: CompiledSet,
  visit: Visit,
  found: Found,
  at: { now: number; walkedTo: string | null },
): Opened {
  const { text } = found
  const state = text === null ? emptyState() : parseState(text)
  const before = text === null ? null : { text, now: state.now, due: state.due }
  forgetGone(state, set)
  state.now = Math.max(state.now, at.now)
  const walked = at.walkedTo !== null && visit.customerId <= at.walkedTo
  const isNew = (version: Version) => version.pending && walked && !state.known.has(version.id)
  const recounted = new Set(
    set.versions.filter((version) => isNew(version) || (visit.recount && knows(state, version))),
  )
  for (const { id } of recounted) forgetVersion(state, id)
  if (visit.recount) state.access.clear()
  for (const version of recounted) if (version.pending) state.known.add(version.id)

  const touched = new Set<Version>()
  const counts = (version: Version) => knows(state, version) && !recounted.has(version)
  for (const event of visit.events) for (const version of count(set, state, event, counts)) touched.add(version)
  return { visit, before, state, properties: found.properties, recounted, touched }
}

function knows(state: CustomerState, version: Version): boolean {
  return !version.pending || state.known.has(version.id)
}

/** One of the customer's stored events, for the versions that count them again. */
export function recount(set: CompiledSet, { state, recounted }: Opened, event: Happened): void {
  count(set, state, event, (version) => recounted.has(version))
}

/** What a visit comes to: the row to write, or null where it stays as it is. */
export interface Closed extends Outcome {
  opened: Opened
  text: string | null
  due: { at: number | null } | null
}

/** Looks at properties and asks what has to be asked. */
export function close(set: CompiledSet, opened: Opened): Closed {
  const { visit, before, state, properties, recounted, touched } = opened
  const everything = before === null || visit.whole || visit.recount
  const leaves = everything ? set.leaves.values() : leavesToLookAt(set, visit.keys, recounted)
  const known = [...leaves].filter(({ version }) => knows(state, version))
  for (const version of properties ? lookAt(state, known, properties) : []) touched.add(version)
  for (const version of recounted) touched.add(version)
  const outcome = evaluate(set, state, everything ? 'all' : touched, { tellAll: visit.cause === 'merge' })
  // That time went by is no change.
  const changed = before === null ? !isNothing(state) : stateText({ ...state, now: before.now }) !== before.text
  const rang = visit.whole || visit.recount
  return {
    ...outcome,
    opened,
    text: changed ? stateText(state) : null,
    due: rang || state.due !== (before?.due ?? null) ? { at: state.due } : null,
  }
}

function leavesToLookAt(set: CompiledSet, keys: Set<string>, recounted: Set<Version>): Iterable<PlacedLeaf> {
  const leaves = new Set([...recounted].flatMap((version) => version.leaves))
  for (const key of keys) for (const leaf of set.byProperty.get(key) ?? []) leaves.add(leaf)
  return leaves
}

function isNothing({ leaves, members, access, told, due }: CustomerState): boolean {
  return leaves.size + members.size + access.size + told.size === 0 && due === null
}
