import type { DeliveredRelease, LegRelease, Stamp } from '../experiences/index.ts'
import { contextOf } from './context.ts'
import type { Conversion, OpenJourney } from './types.ts'

/** A leg that a device may begin: of a new journey, or of one that goes on. */
export interface Arm {
  stamp: Stamp
  legId: string
  release: LegRelease
  binding: { type: 'new' } | { type: 'continue'; journeyId: string; generation: number }
  /** That goes on. */
  journey?: OpenJourney
}

/** Priority downwards, then Experience, leg, generation with `new` first, journey. */
export function compareArms(a: Arm, b: Arm): number {
  return (
    b.stamp.priority - a.stamp.priority ||
    compare(a.stamp.experienceId, b.stamp.experienceId) ||
    compare(a.legId, b.legId) ||
    compare(generationOf(a), generationOf(b)) ||
    compare(journeyOf(a), journeyOf(b))
  )
}

/** By code unit. */
export function compare(a: string | number, b: string | number): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/** Of a release, the arm that begins a journey: it names nobody. */
const newArms = new WeakMap<DeliveredRelease, string>()

/** Null when what the leg requires is not there: the device would refuse it silently. */
export function armJson(arm: Arm, release: DeliveredRelease): string | null {
  if (arm.journey) return written(arm, release)
  const known = newArms.get(release)
  if (known !== undefined) return known
  const json = written(arm, release)
  if (json !== null) newArms.set(release, json)
  return json
}

function written({ stamp, binding, journey }: Arm, release: DeliveredRelease): string | null {
  const context = journey ? contextOf(release, journey.context) : { event: {}, responses: {} }
  if (context === null) return null
  const { sha256: descriptorSha256, legId, entryCondition, hasGoal } = release
  const { experienceId, versionId } = stamp
  const reference = JSON.stringify({ experienceId, versionId, legId, descriptorSha256 })
  const measured = journey && hasGoal ? `,"conversion":${conversionJson(journey.conversion)}` : ''
  const rest = `"context":${JSON.stringify(context)},"entryCondition":${entryCondition}${measured}`
  return `{"reference":${reference},"binding":${JSON.stringify(binding)},${rest}}`
}

function conversionJson({ startedAt, revision, basis, conversion }: Conversion): string {
  const moment = (one: { eventId: string; occurredAt: number }) => ({
    eventId: one.eventId,
    occurredAt: one.occurredAt,
  })
  return JSON.stringify({
    ...{ startedAt, revision },
    ...(basis ? { basis: moment(basis) } : {}),
    ...(conversion ? { conversion: moment(conversion) } : {}),
  })
}

function generationOf({ binding }: Arm): number {
  return binding.type === 'new' ? -1 : binding.generation
}

function journeyOf({ binding }: Arm): string {
  return binding.type === 'new' ? '' : binding.journeyId
}
