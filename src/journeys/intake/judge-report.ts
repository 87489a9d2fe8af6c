import type { PinnedPlan } from '../plan.ts'
import { sectionOfLeg } from '../plans.ts'
import type { Input, Ms } from '../types.ts'
import type { KnownJourney } from './journeys-store.ts'
import type { Report } from './report.ts'

/** What became of a report that tells no journey anything. */
export type Telemetry =
  | 'historical'
  | 'invalid'
  | 'unknown_release'
  | 'unknown_generation'
  | 'reference_mismatch'
  | 'owner_mismatch'
  | 'over_quota'

export interface Reported {
  report: Report
  /** Of the event: who, where, which. */
  customerId: string
  appId: string
  eventId: string
  receivedAt: Ms
  /** Of the version that it names, if that was ever published in the app. */
  plan: PinnedPlan | undefined
  /** Of the generation that it names. */
  offer: { versionNumber: number; legId: string } | undefined
}

export type ReportVerdict = { telemetry: Telemetry } | { inputs: Input[]; enrols: boolean }

/** Pure: what a report is to whom it names, before its journey judges it by generation. */
export function judgeReport(reported: Reported, journey: KnownJourney | undefined): ReportVerdict {
  const { report, plan, customerId, appId, offer } = reported
  const section = plan && sectionOfLeg(plan, report.legId)
  if (!plan || section === undefined) return { telemetry: 'unknown_release' }
  if (journey) {
    if (journey.customerId !== customerId) return { telemetry: 'owner_mismatch' }
    if (journey.appId !== appId || journey.experienceId !== plan.experienceId)
      return { telemetry: 'reference_mismatch' }
    if (offer && offer.versionNumber !== plan.versionNumber) return { telemetry: 'reference_mismatch' }
    return { inputs: [inputOf(reported)], enrols: false }
  }
  if (report.generation > 0) return { telemetry: 'unknown_generation' }
  // Nothing else is ever offered to begin with.
  if (!plan.isDeviceEnrolled || section !== plan.entry) return { telemetry: 'reference_mismatch' }
  const enrolled = enrolmentOf(reported)
  return { inputs: report.kind === 'started' ? [enrolled] : [enrolled, inputOf(reported)], enrols: true }
}

function enrolmentOf({ report, customerId, appId, eventId, receivedAt }: Reported): Input {
  const { journeyId, startedAt, kind } = report
  return {
    ...{ kind: 'enrol', by: 'device', journeyId, customerId, appId, occurrence: `dev:${journeyId}` },
    at: Math.min(startedAt, receivedAt),
    context: { event: {}, responses: {} },
    leg: { startedAt, eventId: kind === 'started' ? eventId : null },
  }
}

function inputOf({ report, eventId }: Reported): Input {
  const { generation, legId, startedAt } = report
  if (report.kind === 'started') return { kind: 'legStarted', generation, legId, startedAt, eventId }
  const { completedAt, outcome, outputs } = report
  return {
    ...{ kind: 'legCompleted', generation, legId, startedAt, eventId, outputs },
    completedAt: completedAt ?? startedAt,
    outcome: outcome ?? 'abandoned',
  }
}
