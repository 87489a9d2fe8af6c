import { keepCustomers } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import { dayMs, deviceEnrolmentsPerDay } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyInputs } from '../apply/apply.ts'
import type { ApplyServices } from '../apply/services.ts'
import { countDeviceEnrolments, selectPaused } from '../enrol/enrol-store.ts'
import { type OpenJourney, selectHolding, selectOpenOf } from '../manage/command-store.ts'
import { namedPlans } from '../plans.ts'
import { countDispositions } from '../store/facts-store.ts'
import type { Ms } from '../types.ts'
import { counted } from './counted.ts'
import type { InboxEvent, InboxRow } from './inbox.ts'
import { selectJourneys, selectOffers } from './journeys-store.ts'
import { judgeReport, type Reported, type Telemetry } from './judge-report.ts'
import { isReportName, parseReport, type Report } from './report.ts'

interface Read {
  row: InboxRow
  event: InboxEvent
  report: Report
}

/** What devices say of their legs: at most one of each customer. What is no more than telemetry is counted by why. */
export async function takeReports(
  tx: Tx,
  scope: Scope,
  rows: readonly InboxRow[],
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  const telemetry: Telemetry[] = []
  const read: Read[] = []
  for (const row of rows) {
    const { body } = row
    if (body.kind !== 'event' || !isReportName(body.name)) continue
    const report = parseReport(body.name, body.properties)
    if (!body.live) telemetry.push('historical')
    else if (report === null) telemetry.push('invalid')
    else if (body.appId === null) telemetry.push('unknown_release')
    else read.push({ row, event: body, report })
  }
  // Whoever names a journey second is judged by what the first made of it.
  for (const wave of wavesOf(read)) telemetry.push(...(await takeWave(tx, scope, wave, now, services)))
  await countDispositions(tx, scope, counted(telemetry), now)
}

function wavesOf(read: readonly Read[]): Read[][] {
  const waves: Read[][] = []
  for (const own of Map.groupBy(read, ({ report }) => report.journeyId).values()) {
    for (const [i, one] of own.entries()) {
      const wave = waves[i]
      if (wave) wave.push(one)
      else waves.push([one])
    }
  }
  return waves
}

/** Each of another journey. */
async function takeWave(
  tx: Tx,
  scope: Scope,
  read: readonly Read[],
  now: Ms,
  services: ApplyServices,
): Promise<Telemetry[]> {
  const telemetry: Telemetry[] = []
  const planOf = await namedPlans(
    tx,
    scope,
    read.map(({ event, report }) => ({ appId: event.appId ?? '', ...report })),
  )
  const reports = read.map(({ report }) => report)
  const journeys = await selectJourneys(
    tx,
    scope,
    reports.map(({ journeyId }) => journeyId),
  )
  const offerOf = await selectOffers(tx, scope, reports)
  const verdicts = read.map(({ row, event, report }) => {
    const reported: Reported = {
      ...{ report, customerId: row.customerId, appId: event.appId ?? '', eventId: event.uuid },
      ...{
        receivedAt: event.receivedAt,
        plan: planOf({ appId: event.appId ?? '', ...report }),
        offer: offerOf(report),
      },
    }
    return { reported, verdict: judgeReport(reported, journeys.get(report.journeyId)) }
  })
  const enrolling = verdicts.flatMap(({ reported, verdict }) =>
    'inputs' in verdict && verdict.enrols ? [reported.customerId] : [],
  )
  if (enrolling.length > 0 && !(await keepCustomers(tx, scope, enrolling))) {
    throw new StaleSlice('a customer was merged or deleted meanwhile')
  }
  const enrolled =
    enrolling.length > 0 ? await countDeviceEnrolments(tx, scope, enrolling, now - dayMs) : new Map<string, number>()
  const works = verdicts.flatMap(({ reported: { report, plan, customerId }, verdict }) => {
    if ('telemetry' in verdict) {
      telemetry.push(verdict.telemetry)
      return []
    }
    if (verdict.enrols && (enrolled.get(customerId) ?? 0) >= deviceEnrolmentsPerDay) {
      telemetry.push('over_quota')
      return []
    }
    const pinned = must(plan, 'its version was found')
    return verdict.inputs.map((input) => ({ journeyId: report.journeyId, plan: pinned, input }))
  })
  await applyInputs(tx, scope, works, now, services)
  const begun = works.flatMap(({ input, journeyId }) =>
    input.kind === 'enrol' ? [{ journeyId, customerId: input.customerId }] : [],
  )
  if (begun.length > 0) await holdBegun(tx, scope, begun, now, services)
  return telemetry
}

/** What a device began while its Experience or its customer rests, rests as what was open before. */
async function holdBegun(
  tx: Tx,
  scope: Scope,
  begun: readonly { journeyId: string; customerId: string }[],
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  const customerIds = begun.map(({ customerId }) => customerId)
  const paused = await selectPaused(tx, scope, customerIds)
  const holding = await selectHolding(tx, scope)
  if (paused.size + holding.length === 0) return
  const own = new Set(begun.map(({ journeyId }) => journeyId))
  const rests = ({ id, held, customerId, experienceId, appId }: OpenJourney) =>
    own.has(id) &&
    !held &&
    (paused.has(customerId) || holding.some((one) => one.experienceId === experienceId && one.appId === appId))
  const open = await selectOpenOf(tx, scope, customerIds)
  const told = open.filter(rests).map(({ id }) => ({ journeyId: id, input: { kind: 'hold' } as const }))
  if (told.length > 0) await applyInputs(tx, scope, told, now, services)
}
