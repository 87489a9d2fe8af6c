import { type Access, newest } from './access.ts'
import type { CompiledSet } from './compile.ts'
import { join, type LeafState } from './leaf.ts'
import { versionOfLeaf } from './leaf-id.ts'
import type { Place } from './place.ts'

/** All that segments know of one customer. */
export interface CustomerState {
  /** The latest instant it was looked at: its time never goes back, whatever clocks do. */
  now: number
  /** When its timer rings; null: never. */
  due: number | null
  /** By leaf id. Nothing there: no event of the leaf. */
  leaves: Map<number, LeafState>
  /** By id of the version: since when it is a member. */
  members: Map<number, number>
  /** Segments of which a change has said last that it is a member. */
  told: Set<number>
  /** Pending versions that know all of its events. */
  known: Set<number>
  /** By Feature. */
  access: Map<string, Access>
  /** An event was too old to count: it is by this instant for ever, so the instant is kept. Not stored. */
  leftOut: boolean
  /** Null: none of its events are being counted again. */
  counting: Counting | null
}

/** A count of stored events that takes several steps. It is kept beside what serves, and takes its place when it is whole. */
export interface Counting {
  versions: Set<number>
  /** The last event counted; null: none yet. */
  after: Place | null
  /** Everything is counted again, and told as a merge is. */
  whole: boolean
  leaves: Map<number, LeafState>
  access: Map<string, Access>
}

export function emptyState(): CustomerState {
  return {
    now: 0,
    due: null,
    leaves: new Map(),
    members: new Map(),
    told: new Set(),
    known: new Set(),
    access: new Map(),
    leftOut: false,
    counting: null,
  }
}

type Stored = [
  due: number | null,
  leaves: (number | LeafState)[],
  members: [number, number][],
  told: number[],
  known: number[],
  access: [string, Access][],
  counting: StoredCounting | null,
]

type StoredCounting = [
  versions: number[],
  after: Place | null,
  whole: boolean,
  leaves: (number | LeafState)[],
  access: [string, Access][],
]

export function parseState(text: string): CustomerState {
  const body = text.indexOf('[')
  const [due, leaves, members, told, known, access, counting] = JSON.parse(text.slice(body)) as Stored // by `stateText`
  return {
    ...{ now: Number(text.slice(0, body)), due },
    leaves: leavesFrom(leaves),
    members: new Map(members),
    told: new Set(told),
    known: new Set(known),
    access: new Map(access),
    leftOut: false,
    counting: counting && parseCounting(counting),
  }
}

function parseCounting([versions, after, whole, leaves, access]: StoredCounting): Counting {
  return { versions: new Set(versions), after, whole, leaves: leavesFrom(leaves), access: new Map(access) }
}

/** What it knows comes behind the instant, which changes with every look: two texts are told apart from there on. */
export function stateText(state: CustomerState): string {
  return `${state.now}${bodyText(state)}`
}

export function bodyText({ due, leaves, members, told, known, access, counting }: CustomerState): string {
  const stored: Stored = [
    due,
    flat(leaves),
    [...members],
    [...told],
    [...known],
    [...access],
    counting && [[...counting.versions], counting.after, counting.whole, flat(counting.leaves), [...counting.access]],
  ]
  return JSON.stringify(stored)
}

/** One after the other: pairs take twice as long to read and to write. */
function flat(leaves: Map<number, LeafState>): (number | LeafState)[] {
  const list: (number | LeafState)[] = []
  for (const [id, leaf] of leaves) list.push(id, leaf)
  return list
}

function leavesFrom(list: readonly (number | LeafState)[]): Map<number, LeafState> {
  const leaves = new Map<number, LeafState>()
  for (let i = 0; i < list.length; i += 2) leaves.set(list[i] as number, list[i + 1] as LeafState) // as `flat` lays them
  return leaves
}

/** Drops what belongs to versions that are gone. */
export function forgetGone(state: CustomerState, set: CompiledSet): void {
  for (const id of state.leaves.keys()) if (!set.byId.has(versionOfLeaf(id))) state.leaves.delete(id)
  for (const id of state.members.keys()) if (!set.byId.has(id)) state.members.delete(id)
  for (const id of state.known) if (!set.byId.get(id)?.pending) state.known.delete(id)
  for (const feature of state.access.keys()) if (!set.features.has(feature)) state.access.delete(feature)
  const { counting } = state
  if (!counting) return
  for (const id of counting.versions) if (!set.byId.has(id)) counting.versions.delete(id)
  for (const id of counting.leaves.keys()) if (!set.byId.has(versionOfLeaf(id))) counting.leaves.delete(id)
  if (counting.versions.size === 0) state.counting = null
}

/** Drops what a version counted of the customer. Its membership changes when it is found to. */
export function forgetVersion(state: CustomerState, versionId: number): void {
  for (const id of state.leaves.keys()) if (versionOfLeaf(id) === versionId) state.leaves.delete(id)
  state.known.delete(versionId)
}

/**
 * The survivor of a merge, until it is evaluated: what both did, and a member of what either was, since the earlier time.
 * What was told of the target stays; nothing will be told of the source any more. Pending versions count the survivor again,
 * and a count under way begins anew.
 */
export function joinStates(set: CompiledSet, source: CustomerState, target: CustomerState): CustomerState {
  const joined: CustomerState = {
    ...target,
    now: Math.max(source.now, target.now),
    leaves: new Map(target.leaves),
    members: new Map(target.members),
    access: new Map(target.access),
    counting: restarted(source.counting, target.counting),
  }
  for (const [id, state] of source.leaves) {
    const leaf = set.leaves.get(id)?.leaf
    const both = leaf && join(leaf, target.leaves.get(id), state)
    if (both !== undefined) joined.leaves.set(id, both)
  }
  for (const [id, since] of source.members) joined.members.set(id, Math.min(since, target.members.get(id) ?? since))
  for (const [feature, access] of source.access) joined.access.set(feature, newest(target.access.get(feature), access))
  for (const version of set.versions) if (version.pending) forgetVersion(joined, version.id)
  return joined
}

function restarted(a: Counting | null, b: Counting | null): Counting | null {
  if (!a && !b) return null
  const versions = new Set([...(a?.versions ?? []), ...(b?.versions ?? [])])
  return { versions, after: null, whole: Boolean(a?.whole || b?.whole), leaves: new Map(), access: new Map() }
}
