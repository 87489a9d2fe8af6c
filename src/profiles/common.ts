import { LRUCache } from 'lru-cache'
import type { DeliveredRelease, Delivery } from '../experiences/index.ts'
import { commonPartsMax, commonRestsBytesMax } from '../kernel/limits.ts'
import { compare } from './arm.ts'
import { type Declared, declaredBy } from './facts.ts'

/** What is the same in all profiles that arm the same releases. */
export interface Common {
  /** Each release once, in its order. */
  releases: readonly Buffer[]
  declared: Declared
}

interface Known {
  lists: LRUCache<string, Common>
  /** The list that was asked for last: mostly it is the next one too. */
  last: { releases: readonly DeliveredRelease[]; common: Common } | undefined
}

/** They go with the snapshot, which is of one revision of the catalogue. */
const bySnapshot = new WeakMap<Delivery, Known>()

/** One release for each arm. Made once: customers are many, what is published is little. */
export function commonOf(delivery: Delivery, releases: readonly DeliveredRelease[]): Common {
  let known = bySnapshot.get(delivery)
  if (!known) {
    known = { lists: new LRUCache({ max: commonPartsMax }), last: undefined }
    bySnapshot.set(delivery, known)
  }
  if (known.last && isSame(known.last.releases, releases)) return known.last.common
  const key = releases.map(({ sha256 }) => sha256).join(' ')
  let common = known.lists.get(key)
  if (!common) {
    common = { releases: inOrder(releases).map(({ json }) => json), declared: declaredBy(releases) }
    known.lists.set(key, common)
  }
  known.last = { releases, common }
  return common
}

const rests = new LRUCache<Common, Buffer>({
  maxSize: commonRestsBytesMax,
  sizeCalculation: ({ length }) => 1000 + length,
})

/** What follows the facts where no arm names anybody. */
export function commonRest(common: Common, make: () => Buffer): Buffer {
  let rest = rests.get(common)
  if (!rest) {
    rest = make()
    rests.set(common, rest)
  }
  return rest
}

function isSame(a: readonly DeliveredRelease[], b: readonly DeliveredRelease[]): boolean {
  return a.length === b.length && a.every((release, i) => release === b[i])
}

function inOrder(releases: readonly DeliveredRelease[]): DeliveredRelease[] {
  return [...new Map(releases.map((release) => [release.sha256, release])).values()].toSorted(compareReleases)
}

function compareReleases(a: DeliveredRelease, b: DeliveredRelease): number {
  return (
    compare(a.experienceId, b.experienceId) ||
    compare(a.seq, b.seq) ||
    compare(a.legId, b.legId) ||
    compare(a.sha256, b.sha256)
  )
}
