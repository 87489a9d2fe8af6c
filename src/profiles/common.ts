import { LRUCache } from 'lru-cache'
import type { DeliveredRelease, Delivery } from '../experiences/index.ts'
import { commonPartsMax } from '../kernel/limits.ts'
import { compare } from './arm.ts'
import { type Declared, declaredBy } from './facts.ts'

/** What is the same in all profiles that arm the same releases, but for the bytes of those. */
export interface Common {
  /** Each release once, in its order: places in the list of arms. */
  order: readonly number[]
  declared: Declared
}

/** They go with the snapshot, which is of one revision of the catalogue. */
const bySnapshot = new WeakMap<Delivery, LRUCache<string, Common>>()

/** One release for each arm. Made once: customers are many, what is published is little. */
export function commonOf(delivery: Delivery, releases: readonly DeliveredRelease[]): Common {
  let known = bySnapshot.get(delivery)
  if (!known) {
    known = new LRUCache({ max: commonPartsMax })
    bySnapshot.set(delivery, known)
  }
  const key = releases.map(({ sha256 }) => sha256).join(' ')
  let common = known.get(key)
  if (!common) {
    common = { order: orderOf(releases), declared: declaredBy(releases) }
    known.set(key, common)
  }
  return common
}

function orderOf(releases: readonly DeliveredRelease[]): number[] {
  const places = new Map([...releases.entries()].map(([place, release]) => [release.sha256, { place, release }]))
  return [...places.values()].toSorted((a, b) => compareReleases(a.release, b.release)).map(({ place }) => place)
}

function compareReleases(a: DeliveredRelease, b: DeliveredRelease): number {
  return (
    compare(a.experienceId, b.experienceId) ||
    compare(a.seq, b.seq) ||
    compare(a.legId, b.legId) ||
    compare(a.sha256, b.sha256)
  )
}
