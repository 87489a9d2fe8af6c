import type { JsonObject } from '../../events/index.ts'
import { newest } from './access.ts'
import type { CompiledSet, PlacedLeaf, Version } from './compile.ts'
import { isCounted, type Place } from './place.ts'
import {
  bodyText,
  type Counting,
  type CustomerState,
  emptyState,
  forgetGone,
  forgetVersion,
  parseState,
} from './state.ts'
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
  before: { text: string; due: number | null } | null
  state: CustomerState
  properties: JsonObject | null
  /** Stored events that are to be counted now; null: none. */
  again: Again | null
  touched: Set<Version>
}

/** A count of stored events under way: from its `counting.after` on. */
interface Again {
  counting: Counting
  versions: Set<Version>
  /** What was counted so far. */
  counted: CustomerState
  /** All events there are have been counted. */
  isWhole: boolean
}

const nothing: ReadonlySet<Version> = new Set()

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
  const before = text === null ? null : { text, due: state.due }
  forgetGone(state, set)
  state.now = Math.max(state.now, at.now)
  const again = beginCount(set, visit, state, at.walkedTo)

  const touched = new Set<Version>()
  const knowing = set.hasPending ? (version: Version) => knows(state, version) : everyVersion
  for (const event of visit.events) {
    count(set, state, event, knowing, touched)
    const { counting } = state
    if (counting && isCounted(counting.after, event.place)) countInto(set, counting, state.now, event)
  }
  return { visit, before, state, properties: found.properties, again, touched }
}

const everyVersion = () => true

function knows(state: CustomerState, version: Version): boolean {
  return !version.pending || state.known.has(version.id)
}

/** A count goes on where it is, unless there is more to count: then all of it begins anew. */
function beginCount(set: CompiledSet, visit: Visit, state: CustomerState, walkedTo: string | null): Again | null {
  const { counting } = state
  if (!visit.recount && !set.hasPending && !counting) return null
  const walked = walkedTo !== null && visit.customerId <= walkedTo
  const wanted = set.versions.filter(
    (version) =>
      (version.pending && walked && !state.known.has(version.id)) || (visit.recount && knows(state, version)),
  )
  const isNew = visit.recount || wanted.some(({ id }) => !counting?.versions.has(id))
  if (!isNew && !(counting && visit.whole)) return null
  const ids = new Set([...(counting?.versions ?? []), ...wanted.map(({ id }) => id)])
  const current: Counting =
    isNew || !counting
      ? {
          ...{ versions: ids, after: null, whole: visit.recount || Boolean(counting?.whole) },
          ...{ leaves: new Map(), access: new Map() },
        }
      : counting
  state.counting = current
  const versions = new Set(set.versions.filter(({ id }) => ids.has(id)))
  return { counting: current, versions, counted: countedBy(current, state.now), isWhole: true }
}

function countedBy({ leaves, access }: Counting, now: number): CustomerState {
  return { ...emptyState(), now, leaves, access }
}

function countInto(set: CompiledSet, counting: Counting, now: number, event: Happened): void {
  count(set, countedBy(counting, now), event, ({ id }) => counting.versions.has(id), new Set())
}

/** One of the customer's stored events, for the versions that count them again. */
export function recount(set: CompiledSet, { again }: Opened, event: Happened): void {
  if (again) count(set, again.counted, event, (version) => again.versions.has(version), new Set())
}

/** The count stops after the event at `after` for now. */
export function interrupt({ again }: Opened, after: Place | null): void {
  if (!again) return
  again.isWhole = false
  again.counting.after = after ?? again.counting.after
}

/** What a visit comes to: the row to write, or null where it stays as it is. */
export interface Closed extends Outcome {
  opened: Opened
  text: string | null
  due: Due | null
}

export interface Due {
  /** Unix milliseconds; null: never. */
  at: number | null
  cause: 'timer' | 'count'
  /** Whatever it was to be looked at for has been done. */
  rang: boolean
}

/** Looks at properties and asks what has to be asked. */
export function close(set: CompiledSet, opened: Opened): Closed {
  const { visit, before, state, properties, again, touched } = opened
  const counted = again?.isWhole ? finish(state, again) : nothing
  const everything = before === null || visit.whole || visit.recount
  const leaves = properties ? leavesToLookAt(set, opened, everything ? 'all' : counted) : []
  for (const version of lookAt(state, leaves, properties ?? {})) touched.add(version)
  for (const version of counted) touched.add(version)
  const isCounting = again !== null && !again.isWhole
  const tellAll = !isCounting && (visit.cause === 'merge' || again?.counting.whole === true)
  const outcome = evaluate(set, state, everything ? 'all' : touched, { tellAll })
  const body = bodyText(state)
  // That time went by is no change.
  const changed =
    state.leftOut || (before === null ? !isNothing(state) : before.text.slice(before.text.indexOf('[')) !== body)
  const rang = visit.whole || visit.recount
  const due: Due = isCounting
    ? { at: -Infinity, cause: 'count', rang }
    : { at: state.due, cause: 'timer', rang: rang && state.counting === null }
  return {
    ...outcome,
    opened,
    text: changed ? `${state.now}${body}` : null,
    due: rang || isCounting || state.due !== (before?.due ?? null) ? due : null,
  }
}

function leavesToLookAt(
  set: CompiledSet,
  { visit, state }: Opened,
  asked: 'all' | ReadonlySet<Version>,
): Iterable<PlacedLeaf> {
  if (asked !== 'all' && asked.size + visit.keys.size === 0) return []
  const leaves = asked === 'all' ? new Set(set.leaves.values()) : new Set([...asked].flatMap(({ leaves: own }) => own))
  for (const key of visit.keys) for (const leaf of set.byProperty.get(key) ?? []) leaves.add(leaf)
  return [...leaves].filter(({ version }) => knows(state, version))
}

/** What was counted takes the place of what was known before. */
function finish(state: CustomerState, { counting, versions, counted }: Again): ReadonlySet<Version> {
  for (const version of versions) {
    forgetVersion(state, version.id)
    if (version.pending) state.known.add(version.id)
  }
  for (const [id, leaf] of counted.leaves) state.leaves.set(id, leaf)
  if (counting.whole) state.access.clear()
  for (const [feature, access] of counted.access) state.access.set(feature, newest(state.access.get(feature), access))
  state.counting = null
  return versions
}

function isNothing({ leaves, members, access, told, due, counting }: CustomerState): boolean {
  return leaves.size + members.size + access.size + told.size === 0 && due === null && counting === null
}
