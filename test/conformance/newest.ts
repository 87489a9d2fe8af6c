import { isDeepStrictEqual } from 'node:util'
import { type At, hold, into } from './check.ts'
import type { Identity } from './descriptor.ts'
import type { Profile } from './profile.ts'

/** What a device has seen: the newest publication of each Experience. */
export type Highest = ReadonlyMap<string, Identity>

/** Publications reached by a `new` arm: one of each Experience, and none older than what the device has seen. */
export function checkNewest(profile: Profile, highest: Highest, at: At): void {
  const seen = new Map<string, Identity>()
  for (const [index, identity] of newIdentities(profile)) {
    const there = into(into(into(at, 'releases'), index), 'locator')
    const key = experienceKey(identity)
    const other = seen.get(key) ?? identity
    seen.set(key, other)
    hold(there, isDeepStrictEqual(identity, other), 'is of the same publication as the other legs of the Experience')
    const known = highest.get(key)
    if (known === undefined || identity.publishedAtSeq > known.publishedAtSeq) continue
    hold(there, isDeepStrictEqual(identity, known), 'is not older than what the device has seen')
  }
}

/** What a device remembers once it has taken the profile. */
export function raised(highest: Highest, profile: Profile): Map<string, Identity> {
  const next = new Map(highest)
  for (const [, identity] of newIdentities(profile)) {
    const key = experienceKey(identity)
    if ((next.get(key)?.publishedAtSeq ?? -1) < identity.publishedAtSeq) next.set(key, identity)
  }
  return next
}

function newIdentities({ armedLegs, releases }: Profile): [number, Identity][] {
  const anew = new Set(
    armedLegs.flatMap((each) => (each.binding.type === 'new' ? [each.reference.descriptorSha256] : [])),
  )
  // Shown to be the locator without legId when the release was verified.
  return releases.flatMap(({ descriptor: { identity }, descriptorSha256 }, index) =>
    anew.has(descriptorSha256) ? [[index, identity]] : [],
  )
}

function experienceKey({ appId, environment, experienceId }: Identity): string {
  return JSON.stringify([appId, environment, experienceId])
}
