import type { Tx } from '../../db/pool.ts'
import { inboxRoundsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyInputs } from '../apply/apply.ts'
import { loadCustomerFacts } from '../apply/customer-facts.ts'
import { pinnedPlans } from '../apply/pinned-plans.ts'
import type { ApplyServices } from '../apply/services.ts'
import { enrol } from '../enrol/enrol.ts'
import type { Candidate } from '../enrol/types.ts'
import { type LivePlan, livePlans } from '../plans.ts'
import { selectLastApps } from '../plans-store.ts'
import { countDispositions } from '../store/facts-store.ts'
import type { Ms } from '../types.ts'
import { counted } from './counted.ts'
import type { InboxEvent, InboxRow } from './inbox.ts'
import { type KnownJourney, selectListening, selectWaiting } from './journeys-store.ts'
import {
  creditOf,
  exitsOf,
  type Happened,
  type Listener,
  losesEligibility,
  lostOf,
  type Told,
  waitsOf,
} from './listen.ts'
import { creditable, shownIn } from './named.ts'
import { isReportName } from './report.ts'
import { takeReports } from './reports.ts'
import { asksForCustomer, candidateOf, isPlaceless, mayStart, triggered } from './triggers.ts'

/**
 * Tells journeys what the rows say: in the order of the lane for each customer, customers side by side. Gives how many of the
 * rows it has done, which are the first of each customer.
 */
export async function consumeRows(
  tx: Tx,
  scope: Scope,
  rows: readonly InboxRow[],
  now: Ms,
  services: ApplyServices,
): Promise<InboxRow[]> {
  const live = await livePlans(tx, scope)
  const done: InboxRow[] = []
  const waiting = [...Map.groupBy(rows, ({ customerId }) => customerId).values()]
  for (let round = 0; round < inboxRoundsMax; round++) {
    const next = waiting.flatMap((own) => own[round] ?? [])
    if (next.length === 0) break
    await consumeRound(tx, scope, next, { live, now, services })
    done.push(...next)
  }
  return done
}

interface Round {
  live: readonly LivePlan[]
  now: Ms
  services: ApplyServices
}

/** One row of each customer. Reports come first for themselves: a row is one or something else. */
async function consumeRound(tx: Tx, scope: Scope, rows: readonly InboxRow[], round: Round): Promise<void> {
  const { now, services } = round
  const isReport = ({ body }: InboxRow) => body.kind === 'event' && isReportName(body.name)
  const reports = rows.filter(isReport)
  if (reports.length > 0) await takeReports(tx, scope, reports, now, services)
  const others = rows.filter((row) => !isReport(row))
  if (others.length === 0) return
  const { told, candidates, refused } = await listenTo(tx, scope, others, round)
  if (told.length > 0) await applyInputs(tx, scope, told, now, services)
  const starts = candidates.length > 0 ? await enrol(tx, scope, candidates, now, services) : []
  for (const start of starts) if (start.status === 'ineligible') refused.push(`not_started_${start.reason}`)
  await countDispositions(tx, scope, counted(refused), now)
}

interface Heard {
  told: Told[]
  candidates: Candidate[]
  /** Starts that came to nothing, by reason. */
  refused: string[]
}

async function listenTo(
  tx: Tx,
  scope: Scope,
  rows: readonly InboxRow[],
  { live, now, services }: Round,
): Promise<Heard> {
  const customerIds = rows.map(({ customerId }) => customerId)
  const journeys = await selectListening(tx, scope, customerIds, now)
  const plans = await pinnedPlans(tx, scope, journeys)
  const waits = Map.groupBy(await selectWaiting(tx, scope, customerIds), ({ customerId }) => customerId)
  const listeners = Map.groupBy(listenersOf(journeys, plans), ({ journey }) => journey.customerId)
  const asking = customerIds.flatMap((id) => askingOf(id, listeners.get(id) ?? [], live))
  const facts = await loadCustomerFacts(tx, scope, asking, now, services)
  const named = await creditable(tx, scope, rows, plans)
  const placeless = live.some(({ plan }) => !plan.isDeviceEnrolled) ? rows.filter(isPlaceless) : []
  const lastApps = await selectLastApps(
    tx,
    scope,
    placeless.map(({ customerId }) => customerId),
  )
  const heard: Heard = { told: [], candidates: [], refused: [] }
  for (const row of rows) {
    const { customerId, pos } = row
    const own = listeners.get(customerId) ?? []
    const of = { now, facts: facts.get(customerId) }
    const happened = happenedIn(row)
    if (happened) {
      const usable = happened.kind === 'edge' || mayStart(happened.event)
      heard.told.push(...shownIn(row, own))
      const credit = usable ? creditOf(own, happened, { now, named: named.get(row) }) : null
      if (credit) heard.told.push(credit)
      heard.told.push(...exitsOf(own, happened, of))
      if (happened.kind === 'event') heard.told.push(...waitsOf(waits.get(customerId) ?? [], happened.event))
      const entering = usable ? triggered(live, happened, { nowMs: now, ...of.facts }) : []
      for (const matching of entering) {
        const place = { customerId, pos, now, lastApps: lastApps.get(customerId) ?? [] }
        const candidate = candidateOf(matching, happened, place)
        if (candidate) heard.candidates.push(candidate)
        else heard.refused.push('not_started_no_app')
      }
    }
    heard.told.push(...lostOf(own, of))
  }
  return heard
}

function listenersOf(journeys: readonly KnownJourney[], plans: Awaited<ReturnType<typeof pinnedPlans>>): Listener[] {
  return journeys.flatMap((journey) => {
    const plan = plans.get(journey.buildId)
    return plan ? [{ journey, plan }] : []
  })
}

function happenedIn({ body, pos }: InboxRow): Happened | null {
  if (body.kind === 'touched') return null
  if (body.kind === 'event') return { kind: 'event', event: body satisfies InboxEvent }
  const { segmentId, edge, at } = body
  return { kind: 'edge', segmentId, edge, at, pos }
}

/** Plans that ask for more of the customer than what happened. */
function askingOf(customerId: string, own: readonly Listener[], live: readonly LivePlan[]) {
  const asking = own
    .filter(({ plan }) => losesEligibility(plan) || asksForCustomer(plan.policy.exitWhenAny))
    .map(({ plan, journey: { appId } }) => ({ plan, customerId, appId }))
  const triggers = live
    .filter(({ plan }) => !plan.isDeviceEnrolled && asksForCustomer(plan.policy.entry.trigger))
    .map(({ plan, appId }) => ({ plan, customerId, appId }))
  return [...asking, ...triggers]
}
