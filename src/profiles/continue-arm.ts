import { type Delivery, legIdOf, type Pin, releaseFor, type Stamp } from '../experiences/index.ts'
import type { Arm } from './arm.ts'
import type { OpenJourney, ProfileInput } from './types.ts'

/** Why a journey that has not ended has no arm. */
export type ContinueReason =
  | 'not_armed'
  | 'other_app'
  | 'held'
  | 'release_unverified'
  | 'input_missing'
  | 'limit_arms'
  | 'limit_bytes'

export type Onward =
  | { kind: 'arm'; arm: Arm }
  | { kind: 'none'; reason: ContinueReason }
  /** To be read first. */
  | { kind: 'missing'; pin: Pin }

/** The arm of an open journey, as far as it can be told without its release. It stays until the device has begun the leg or its time is over, whatever is published by then. */
export function judgeContinue({ delivery, app, locale }: ProfileInput, journey: OpenJourney): Onward {
  const { sectionKey, appId, held, status } = journey
  if (status !== 'armed' || sectionKey === null) return { kind: 'none', reason: 'not_armed' }
  if (appId !== app.appId) return { kind: 'none', reason: 'other_app' }
  if (held) return { kind: 'none', reason: 'held' }
  const stamp = stampOf(delivery, journey)
  if (stamp === undefined) return { kind: 'missing', pin: journey }
  if (stamp === null) return { kind: 'none', reason: 'release_unverified' }
  const legId = legIdOf(stamp.experienceId, sectionKey)
  const release = releaseFor(stamp, legId, locale)
  if (!release) return { kind: 'none', reason: 'release_unverified' }
  const binding = { type: 'continue', journeyId: journey.id, generation: journey.generation } as const
  return { kind: 'arm', arm: { stamp, legId, release, binding, journey } }
}

/** The newest stamp of the journey's version. What holds in the app now is newer than all before it. */
function stampOf({ current, pinned }: Delivery, journey: OpenJourney): Stamp | null | undefined {
  const { appId, experienceRowId, versionNumber } = journey
  const live = current.get(appId)?.find((one) => one.experienceRowId === experienceRowId)
  return live?.versionNumber === versionNumber ? live : pinned(journey)
}
