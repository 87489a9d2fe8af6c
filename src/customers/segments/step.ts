import { type JsonObject, propertyOf } from '../../events/index.ts'
import { accessEvent, newest, readAccess } from './access.ts'
import type { CompiledSet, PlacedLeaf, Version } from './compile.ts'
import { add, isPast, type LeafState } from './leaf.ts'
import type { Place } from './place.ts'
import type { CustomerState } from './state.ts'
import { holds } from './truth.ts'

/** An event, as far as segments look at it. */
export interface Happened {
  name: string
  /** The earlier of event time and receipt, in Unix milliseconds. */
  at: number
  properties: JsonObject
  /** The service itself said it. */
  fact: boolean
  place: Place
}

/** Counts an event for the versions of `of`. Those it may have changed are added to `touched`. */
export function count(
  set: CompiledSet,
  state: CustomerState,
  event: Happened,
  of: (version: Version) => boolean,
  touched: Set<Version>,
): void {
  for (const { id, leaf, version } of set.byEvent.get(event.name) ?? []) {
    if (!of(version) || !('event' in leaf) || !leaf.passes(event.properties)) continue
    if (isPast(leaf, event.at, state.now)) {
      state.leftOut = true
      continue
    }
    const value = leaf.kind === 'sum' ? propertyOf(event.properties, leaf.property) : undefined
    put(state, id, add(leaf, state.leaves.get(id), { at: event.at, value, now: state.now }))
    touched.add(version)
  }
  if (event.name !== accessEvent || !event.fact) return
  const said = readAccess(event.properties)
  const asking = said && set.features.get(said.feature)
  if (!asking) return
  state.access.set(said.feature, newest(state.access.get(said.feature), said.access))
  for (const version of asking) if (of(version)) touched.add(version)
}

/** Asks property leaves again. Gives the versions of those that changed. */
export function lookAt(state: CustomerState, leaves: Iterable<PlacedLeaf>, properties: JsonObject): Set<Version> {
  const touched = new Set<Version>()
  for (const { id, leaf, version } of leaves) {
    if (leaf.kind !== 'property') continue
    const passes = leaf.passes(propertyOf(properties, leaf.key))
    if (passes === (state.leaves.get(id) === true)) continue
    put(state, id, passes ? true : undefined)
    touched.add(version)
  }
  return touched
}

function put({ leaves }: CustomerState, id: number, value: LeafState | undefined): void {
  if (value === undefined) leaves.delete(id)
  else leaves.set(id, value)
}

export type Edge = 'entered' | 'left'

/** What an evaluation found. */
export interface Outcome {
  /** Versions whose truth is another than before, and since when it holds; null: it no longer does. */
  memberships: { version: Version; since: number | null }[]
  /** What is to be told of versions that serve: at most one for each. */
  edges: { version: Version; edge: Edge }[]
}

/**
 * Asks versions again, and those that ask for them, and arms the timer. `asked` 'all' asks every version that knows the
 * customer; `tellAll` tells also what was not told of an earlier change. Changes `state`; its `now` is the instant.
 */
export function evaluate(
  set: CompiledSet,
  state: CustomerState,
  asked: 'all' | ReadonlySet<Version>,
  { tellAll = false } = {},
): Outcome {
  const outcome: Outcome = { memberships: [], edges: [] }
  const changed = new Set<number>()
  const flip = { at: asked === 'all' ? Infinity : (state.due ?? Infinity) }
  for (const version of set.versions) {
    if (version.pending && !state.known.has(version.id)) continue
    if (asked !== 'all' && !asked.has(version) && !asksOne(version, changed)) continue
    const is = holds(version.asked, state, state.now, flip)
    const differs = is !== state.members.has(version.id)
    if (differs) {
      changed.add(version.id)
      if (is) state.members.set(version.id, state.now)
      else state.members.delete(version.id)
      outcome.memberships.push({ version, since: is ? state.now : null })
    }
    const edge = !version.pending && (differs || tellAll) ? tell(state, version) : null
    if (edge) outcome.edges.push({ version, edge })
  }
  state.due = flip.at === Infinity ? null : flip.at
  return outcome
}

function asksOne({ refs }: Version, changed: ReadonlySet<number>): boolean {
  if (changed.size > 0) for (const id of refs.values()) if (changed.has(id)) return true
  return false
}

/** What a change must say of a version that serves; null: what was said last is still so. */
export function tell(state: CustomerState, { id, segmentId }: Version): Edge | null {
  const is = state.members.has(id)
  if (is === state.told.has(segmentId)) return null
  if (is) state.told.add(segmentId)
  else state.told.delete(segmentId)
  return is ? 'entered' : 'left'
}
