import { type JsonObject, parseTimestamp } from '../../events/index.ts'
import { reportIdCharsMax } from '../../kernel/limits.ts'
import { isObject } from '../is-object.ts'
import type { Outputs } from '../types.ts'

/** What a device says of a leg that it runs: it began, or how it ended. A claim: everybody who has a publishable key can make it. */
export interface Report {
  kind: 'started' | 'completed'
  /** Lower case. */
  journeyId: string
  experienceId: string
  versionId: string
  legId: string
  generation: number
  /** Unix milliseconds, as reported: clients compare them. */
  startedAt: number
  completedAt: number | null
  outcome: string | null
  outputs: Outputs
}

export const reportNames = { $journey_leg_started: 'started', $journey_leg_completed: 'completed' } as const

export function isReportName(name: string): name is keyof typeof reportNames {
  return Object.hasOwn(reportNames, name)
}

/** Null: something that a report can't do without is missing or of another kind. */
export function parseReport(name: keyof typeof reportNames, properties: JsonObject): Report | null {
  const kind = reportNames[name]
  const of = (key: string) => (Object.hasOwn(properties, key) ? properties[key] : undefined)
  const [journeyId, experienceId, versionId] = [of('journey_id'), of('experience_id'), of('experience_version_id')]
  const [legId, generation] = [of('leg_id'), of('leg_generation')]
  const startedAt = instantOf(of('started_at'))
  if (typeof journeyId !== 'string' || !isJourneyId(journeyId)) return null
  if (!isId(experienceId) || !isId(versionId)) return null
  if (typeof legId !== 'string' || !/^[0-9a-f]{64}$/.test(legId)) return null
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation) || generation < 0) return null
  if (startedAt === null || generation > generationMax) return null
  const report = {
    ...{ kind, experienceId, versionId, legId, generation, startedAt },
    journeyId: journeyId.toLowerCase(),
  }
  if (kind === 'started') return { ...report, completedAt: null, outcome: null, outputs: { event: {}, responses: {} } }
  const outcome = of('outcome')
  const completedAt = instantOf(of('completed_at'))
  if (!isId(outcome) || completedAt === null) return null
  return { ...report, completedAt, outcome, outputs: outputsOf(of('outputs')) }
}

const generationMax = 2 ** 31 - 1

/** UUID version 7 (RFC 9562), either case. */
export function isJourneyId(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(text)
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= reportIdCharsMax
}

/** From 1970 to 9999. */
function instantOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? parseTimestamp(value) : null
  return ms === null || ms < 0 ? null : ms
}

/** What is no object tells nothing. */
function outputsOf(value: unknown): Outputs {
  const part = (key: 'event' | 'responses') =>
    isObject(value) && Object.hasOwn(value, key) && isObject(value[key]) ? value[key] : {}
  return { event: part('event'), responses: part('responses') }
}
