import { type Access, newest } from './access.ts'
import type { CompiledSet } from './compile.ts'
import { join, type LeafState } from './leaf.ts'
import { versionOfLeaf } from './leaf-id.ts'

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
  }
}

interface Stored {
  n: number
  t: number | null
  l: [number, LeafState][]
  m: [number, number][]
  r: number[]
  k: number[]
  a: [string, Access][]
}

export function parseState(text: string): CustomerState {
  const { n, t, l, m, r, k, a } = JSON.parse(text) as Stored // written by `stateText`
  return {
    now: n,
    due: t,
    leaves: new Map(l),
    members: new Map(m),
    told: new Set(r),
    known: new Set(k),
    access: new Map(a),
  }
}

export function stateText({ now, due, leaves, members, told, known, access }: CustomerState): string {
  const stored: Stored = {
    n: now,
    t: due,
    l: [...leaves],
    m: [...members],
    r: [...told],
    k: [...known],
    a: [...access],
  }
  return JSON.stringify(stored)
}

/** Drops what belongs to versions that are gone. */
export function forgetGone(state: CustomerState, set: CompiledSet): void {
  for (const id of state.leaves.keys()) if (!set.byId.has(versionOfLeaf(id))) state.leaves.delete(id)
  for (const id of state.members.keys()) if (!set.byId.has(id)) state.members.delete(id)
  for (const id of state.known) if (!set.byId.get(id)?.pending) state.known.delete(id)
  for (const feature of state.access.keys()) if (!set.features.has(feature)) state.access.delete(feature)
}

/** Drops what a version counted of the customer. Its membership changes when it is found to. */
export function forgetVersion(state: CustomerState, versionId: number): void {
  for (const id of state.leaves.keys()) if (versionOfLeaf(id) === versionId) state.leaves.delete(id)
  state.known.delete(versionId)
}

/**
 * The survivor of a merge, until it is evaluated: what both did, and a member of what either was, since the earlier time.
 * What was told of the target stays; nothing will be told of the source any more. Pending versions count the survivor again.
 */
export function joinStates(set: CompiledSet, source: CustomerState, target: CustomerState): CustomerState {
  const joined: CustomerState = {
    ...target,
    now: Math.max(source.now, target.now),
    leaves: new Map(target.leaves),
    members: new Map(target.members),
    access: new Map(target.access),
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
