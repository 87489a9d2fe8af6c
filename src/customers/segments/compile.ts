import type { Condition, Leaf } from './definition.ts'
import { leafIdOf } from './leaf-id.ts'
import { emptyState } from './state.ts'
import { holds } from './truth.ts'

/** One definition as the lane asks it. */
export interface Version {
  id: number
  segmentId: number
  publicId: string
  /** Not served yet: it is still being told of all customers. */
  pending: boolean
  condition: Condition
  /** By the order in which they stand in the definition. */
  leaves: PlacedLeaf[]
  asked: Asked
  /** The version that each segment it asks for is judged by. */
  refs: Map<string, number>
  /** A customer of whom nothing is known is a member. */
  holdsOnNothing: boolean
}

/** The condition of a version, with its leaves in their places. */
export type Asked =
  | { kind: 'all' | 'any'; of: Asked[] }
  | { kind: 'not'; of: Asked }
  | { kind: 'leaf'; placed: PlacedLeaf }

/** A leaf of a version. Its id is unique in the lane, for ever. */
export interface PlacedLeaf {
  id: number
  leaf: Leaf
  version: Version
}

/** All definitions of one lane. */
export interface CompiledSet {
  /** What is asked for comes before what asks for it. */
  versions: Version[]
  byId: Map<number, Version>
  leaves: Map<number, PlacedLeaf>
  byEvent: Map<string, PlacedLeaf[]>
  byProperty: Map<string, PlacedLeaf[]>
  features: Map<string, Version[]>
  hasPending: boolean
  holdsOnNothing: boolean
  /** Pending versions whose definitions cannot be read, by id. */
  unread: readonly number[]
}

export interface Definition {
  id: number
  segmentId: number
  publicId: string
  pending: boolean
  condition: Condition
}

/** A pending version asks pending ones where there are, so that all of them can be swapped in together. */
export function compile(definitions: readonly Definition[]): CompiledSet {
  const versions = definitions.map((definition): Version => {
    const refs = new Map<string, number>()
    const version: Version = { ...definition, refs, leaves: [], asked: { kind: 'all', of: [] }, holdsOnNothing: false }
    version.asked = place(definition.condition, version)
    for (const { leaf } of version.leaves) {
      if (leaf.kind !== 'segment') continue
      const named = definitions.filter(({ publicId }) => publicId === leaf.id)
      const judge = named.find(({ pending }) => pending === definition.pending) ?? named.find(({ pending }) => !pending)
      if (judge) refs.set(leaf.id, judge.id)
    }
    return version
  })
  const set: CompiledSet = {
    versions: inOrder(versions),
    byId: new Map(versions.map((version) => [version.id, version])),
    leaves: new Map(versions.flatMap(({ leaves }) => leaves.map((placed) => [placed.id, placed]))),
    byEvent: new Map(),
    byProperty: new Map(),
    features: new Map(),
    hasPending: versions.some(({ pending }) => pending),
    holdsOnNothing: false,
    unread: [],
  }
  for (const placed of set.leaves.values()) index(set, placed)
  judgeNothing(set)
  return set
}

function place(condition: Condition, version: Version): Asked {
  if (condition.kind === 'not') return { kind: 'not', of: place(condition.of, version) }
  if (condition.kind !== 'leaf') return { kind: condition.kind, of: condition.of.map((part) => place(part, version)) }
  const placed = { id: leafIdOf(version.id, version.leaves.length), leaf: condition.leaf, version }
  version.leaves.push(placed)
  return { kind: 'leaf', placed }
}

function index(set: CompiledSet, placed: PlacedLeaf): void {
  const { leaf, version } = placed
  if ('event' in leaf) push(set.byEvent, leaf.event, placed)
  else if (leaf.kind === 'property') push(set.byProperty, leaf.key, placed)
  else if (leaf.kind === 'feature') push(set.features, leaf.feature, version)
}

function push<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}

/** No definition asks for itself, however far around: saving one that would is refused. */
function inOrder(versions: readonly Version[]): Version[] {
  const byId = new Map(versions.map((version) => [version.id, version]))
  const ordered = new Set<Version>()
  const visit = (version: Version) => {
    if (ordered.has(version)) return
    for (const id of version.refs.values()) {
      const asked = byId.get(id)
      if (asked) visit(asked)
    }
    ordered.add(version)
  }
  for (const version of versions) visit(version)
  return [...ordered]
}

function judgeNothing(set: CompiledSet): void {
  const nobody = emptyState()
  for (const placed of set.leaves.values()) {
    if (placed.leaf.kind === 'property' && placed.leaf.passes(undefined)) nobody.leaves.set(placed.id, true)
  }
  for (const version of set.versions) {
    version.holdsOnNothing = holds(version.asked, nobody, 0, { at: Infinity })
    if (version.holdsOnNothing) nobody.members.set(version.id, 0)
    set.holdsOnNothing ||= version.holdsOnNothing
  }
}
