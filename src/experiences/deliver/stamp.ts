import type { Platform } from '../../tenancy/index.ts'
import { asJudged } from '../compile/as-judged.ts'
import type { Plan } from '../compile/plan.ts'
import type { Draft } from '../draft/draft.ts'
import { nodesOf, readsClock } from '../ir/grammar.ts'
import type { PointerStatus } from '../publish/publication-store.ts'
import type { LegRow, PointerRow, StampRow } from './delivery-store.ts'

/** One version under one number in one app. */
export interface Stamp {
  experienceRowId: number
  experienceId: string
  appId: string
  seq: number
  versionId: string
  versionNumber: number
  buildId: string
  priority: number
  defaultLocale: string
  /** By leg, then by locale. */
  legs: Map<string, Map<string, LegRelease>>
  /** Segments that it names anywhere. */
  segments: Set<string>
}

/** Which release a leg is in one locale, and how many bytes its descriptor has. */
export interface LegRelease {
  sha256: string
  size: number
}

/** What holds in an app now, and who is let in. */
export interface Current extends Stamp {
  status: PointerStatus
  platforms: readonly Platform[]
  isDeviceEnrolled: boolean
  entryLegId: string
  trigger: Draft['policy']['entry']['trigger']
  frequency: Draft['policy']['entry']['frequency']
  eligibility: { expr: unknown } | null
  /** Its eligibility changes with time alone. */
  readsClock: boolean
}

export function stampOf(row: StampRow, legs: readonly LegRow[], draft = draftOf(row)): Stamp {
  const own = legs.filter((leg) => leg.app_id === row.app_id && leg.seq === row.seq)
  const byLeg = new Map<string, Map<string, LegRelease>>()
  for (const { leg_id: legId, locale, descriptor_sha256: sha256, size } of own) {
    const byLocale = byLeg.get(legId) ?? new Map<string, LegRelease>()
    byLeg.set(legId, byLocale.set(locale, { sha256, size }))
  }
  return {
    ...{ experienceRowId: row.experience_row_id, experienceId: row.experience_id, appId: row.app_id },
    ...{ seq: Number(row.seq), versionId: row.version_id, versionNumber: row.version_number, buildId: row.build_id },
    ...{
      priority: draft.priority ?? 0,
      defaultLocale: draft.locales.default,
      legs: byLeg,
      segments: segmentsIn(draft),
    },
  }
}

export function currentOf(row: PointerRow, legs: readonly LegRow[]): Current {
  const draft = draftOf(row)
  const plan = JSON.parse(row.plan) as Plan // it was written by the compiler
  // What it asks of past events, the plan asks of Segments.
  const { trigger, frequency, eligibility } = plan.policy.entry
  return {
    ...stampOf(row, legs, draft),
    segments: segmentsIn([draft, plan.policy]),
    ...{ status: row.status, platforms: draft.platforms, isDeviceEnrolled: plan.isDeviceEnrolled },
    ...{ entryLegId: plan.sections[plan.entry]?.legId ?? '', trigger, frequency },
    eligibility: (eligibility ?? null) as Current['eligibility'], // an envelope: it was judged before it was frozen
    readsClock: readsClock(eligibility),
  }
}

function segmentsIn(parts: unknown): Set<string> {
  const named = new Set<string>()
  for (const { type, id, segmentId } of nodesOf(parts)) {
    if (type === 'Segment' && typeof id === 'string') named.add(id)
    if (typeof segmentId === 'string') named.add(segmentId)
  }
  return named
}

/** As the server judges it. */
function draftOf({ draft, experience_id: experienceId }: StampRow): Draft {
  return asJudged(JSON.parse(draft) as Draft, experienceId).draft // it was found right when it was frozen
}

/** The release of a leg for a caller's locale: the exact tag, else its language, else the version's own. */
export function releaseFor(
  { legs, defaultLocale }: Stamp,
  legId: string,
  locale: string | null,
): LegRelease | undefined {
  const byLocale = legs.get(legId)
  if (!byLocale) return undefined
  if (locale === null) return byLocale.get(defaultLocale)
  const wanted = locale.replaceAll('_', '-').toLowerCase()
  const find = (tag: string | undefined) => [...byLocale].find(([one]) => one.toLowerCase() === tag)?.[1]
  return find(wanted) ?? find(wanted.split('-')[0]) ?? byLocale.get(defaultLocale)
}
