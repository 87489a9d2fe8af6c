import { keepCustomers, raiseRevs } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import { holdOut, passes } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import { uuidV7 } from '../../kernel/ids.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyInputs } from '../apply/apply.ts'
import { loadCustomerFacts } from '../apply/customer-facts.ts'
import type { ApplyServices } from '../apply/services.ts'
import { frequencyAllows } from '../engine/frequency.ts'
import { countEnrolments, lockEnrolments } from '../store/enrolment-store.ts'
import type { Ms } from '../types.ts'
import {
  claimOccurrences,
  type OccurrenceRow,
  occurrenceKey,
  selectOccurrences,
  selectPaused,
  settleOccurrences,
} from './enrol-store.ts'
import type { Candidate, Reason, Start } from './types.ts'

/**
 * Lets customers in, or says why not: one answer for each candidate, in their order. A key that was decided before is not
 * judged again; whoever is deciding one at the moment is waited for. A key given twice is one. Throws `StaleSlice` when a customer
 * was merged or deleted meanwhile: then the transaction is tried again.
 */
export async function enrol(
  tx: Tx,
  scope: Scope,
  candidates: readonly Candidate[],
  now: Ms,
  services: ApplyServices,
): Promise<Start[]> {
  if (candidates.length === 0) return []
  const kept = await keepCustomers(
    tx,
    scope,
    candidates.map(({ customerId }) => customerId),
  )
  if (!kept) throw new StaleSlice('a customer was merged or deleted meanwhile')
  const byKey = new Map<string, Candidate>()
  for (const candidate of candidates) {
    const key = keyOf(candidate)
    if (!byKey.has(key)) byKey.set(key, candidate)
  }
  // Everybody takes keys in this order, so that two never wait for each other.
  const sorted = [...byKey.values()].toSorted(inOrder)
  const claimed = await claimOccurrences(
    tx,
    scope,
    sorted.map((candidate) => ({ ...rowOf(candidate), at: now })),
  )
  const fresh = sorted.filter((candidate) => claimed.has(keyOf(candidate)))
  const earlier = sorted.filter((candidate) => !claimed.has(keyOf(candidate)))
  const answers = new Map<string, Start>()
  if (earlier.length > 0) {
    const rows = await selectOccurrences(tx, scope, earlier.map(rowOf))
    for (const candidate of earlier) {
      const row = must(rows.get(keyOf(candidate)), 'the key was taken')
      tellMismatch(services, scope, candidate, row)
      answers.set(keyOf(candidate), replayOf(row))
    }
  }
  const decided = fresh.length > 0 ? await decide(tx, scope, fresh, now, services) : []
  for (const [i, candidate] of fresh.entries()) {
    answers.set(keyOf(candidate), must(decided[i], 'each is decided'))
  }
  if (fresh.length > 0) {
    await settleOccurrences(
      tx,
      scope,
      fresh.map((candidate) => ({
        id: must(claimed.get(keyOf(candidate)), 'it was claimed'),
        ...settledRow(candidate, must(answers.get(keyOf(candidate)), 'each is decided')),
      })),
    )
  }
  const told = new Set<string>()
  return candidates.map((candidate) => {
    const answer = must(answers.get(keyOf(candidate)), 'each key is answered')
    const isFirst = !told.has(keyOf(candidate))
    told.add(keyOf(candidate))
    return answer.status === 'started' && !isFirst ? { ...answer, status: 'coalesced' } : answer
  })
}

/** In the order of the checks: pauses, eligibility, holdout, frequency. The last is judged under the lock that counts. */
async function decide(
  tx: Tx,
  scope: Scope,
  candidates: readonly Candidate[],
  now: Ms,
  services: ApplyServices,
): Promise<Start[]> {
  const customerIds = [...new Set(candidates.map(({ customerId }) => customerId))]
  const paused = await selectPaused(tx, scope, customerIds)
  const asking = candidates.filter(({ plan }) => plan.policy.entry.eligibility !== undefined)
  const facts = await loadCustomerFacts(tx, scope, asking, now, services)
  const reasons = candidates.map((candidate): Reason | null => {
    const { customerId, state, plan } = candidate
    if (paused.has(customerId)) return 'customer_paused'
    if (state === 'paused') return 'experience_paused'
    if (missesInput(candidate)) return 'input_missing'
    const { eligibility } = plan.policy.entry
    const isEligible = passes(eligibility as { expr: unknown } | undefined, { nowMs: now, ...facts.get(customerId) })
    return isEligible ? null : 'eligibility'
  })
  const inside = candidates.flatMap((candidate, i) => (reasons[i] === null ? [candidate] : []))
  const held = await heldOut(tx, scope, inside, now)
  await countHeldOut(tx, scope, [...held], now)
  const entering = inside.filter((candidate) => !held.has(candidate))
  const ids = new Map(entering.map((candidate) => [candidate, uuidV7(now)]))
  const isIn = new Map<Candidate, boolean>()
  for (const wave of wavesOf(entering)) {
    const told = wave.map((candidate) => toldOf(candidate, must(ids.get(candidate), 'each has one')))
    const results = await applyInputs(tx, scope, told, now, services)
    for (const [i, candidate] of wave.entries()) isIn.set(candidate, results[i]?.disposition === 'applied')
  }
  return candidates.map((candidate, i) => {
    const reason = reasons[i] ?? (held.has(candidate) ? 'held_out' : null)
    return reason === null && isIn.get(candidate)
      ? { status: 'started', journeyId: must(ids.get(candidate), 'it entered') }
      : { status: 'ineligible', journeyId: null, reason: reason ?? 'frequency' }
  })
}

/** Who would enter, were they not held out: their experiment counts them as such. */
async function heldOut(tx: Tx, scope: Scope, candidates: readonly Candidate[], now: Ms): Promise<Set<Candidate>> {
  const asked = candidates.flatMap((candidate) => {
    const { customerId, plan } = candidate
    const { holdout } = plan.policy
    return holdout === undefined ? [] : [{ candidate, question: { experimentId: holdout, customerId } }]
  })
  if (asked.length === 0) return new Set()
  const answers = await holdOut(
    tx,
    scope,
    asked.map(({ question }) => question),
    now,
  )
  return new Set(asked.filter((_, i) => answers[i]).map(({ candidate }) => candidate))
}

/** They count as far as the frequency would have let them in: it is obeyed as without a holdout. */
async function countHeldOut(tx: Tx, scope: Scope, held: readonly Candidate[], now: Ms): Promise<void> {
  if (held.length === 0) return
  const pairs = held.map(({ plan: { experienceId }, customerId }) => ({ experienceId, customerId }))
  const counts = await lockEnrolments(tx, scope, pairs)
  const counted: { experienceId: number; customerId: string; at: Ms }[] = []
  for (const { plan, customerId } of held) {
    const { experienceId } = plan
    const key = `${experienceId} ${customerId}`
    const { count, times } = must(counts.get(key), 'it was locked')
    if (!frequencyAllows(plan, { count, times }, now)) continue
    counts.set(key, { count: count + 1, times: [...times, now] })
    counted.push({ experienceId, customerId, at: now })
  }
  await countEnrolments(tx, scope, counted)
  const { scopeId } = scope
  await raiseRevs(
    tx,
    counted.map(({ customerId }) => ({ scopeId, customerId })),
  )
}

/** What its steps read is brought by the trigger or by nobody. */
function missesInput({ plan, context, by }: Candidate): boolean {
  if (by === 'segment') return false
  return Object.entries(plan.fields.event ?? {}).some(
    ([key, { required }]) => required && !Object.hasOwn(context.event, key),
  )
}

/** Those of one customer and Experience one after the other: each is judged with what was counted before it. */
function wavesOf(candidates: readonly Candidate[]): Candidate[][] {
  const waves: Candidate[][] = []
  for (const own of Map.groupBy(candidates, ({ plan, customerId }) => `${plan.experienceId} ${customerId}`).values()) {
    for (const [i, candidate] of own.entries()) {
      const wave = waves[i]
      if (wave) wave.push(candidate)
      else waves.push([candidate])
    }
  }
  return waves
}

function toldOf({ customerId, appId, plan, by, occurrence, at, context }: Candidate, journeyId: string) {
  return {
    journeyId,
    plan,
    input: { kind: 'enrol', by, journeyId, customerId, appId, occurrence, at, context },
  } as const
}

function rowOf({ appId, plan, customerId, occurrence, contextHash }: Candidate) {
  return { appId, experienceId: plan.experienceId, customerId, key: occurrence, contextHash }
}

function keyOf(candidate: Candidate): string {
  return occurrenceKey(rowOf(candidate))
}

function inOrder(a: Candidate, b: Candidate): number {
  const by = a.plan.experienceId - b.plan.experienceId
  if (by !== 0) return by
  return keyOf(a) < keyOf(b) ? -1 : 1
}

function replayOf({ status, journeyId, reason }: OccurrenceRow): Start {
  return status === 'started'
    ? { status: 'coalesced', journeyId: must(journeyId, 'a start has its journey') }
    : { status: 'ineligible', journeyId: null, reason: reason as Reason } // written below
}

function settledRow(candidate: Candidate, start: Start) {
  const { status, journeyId } = start
  return {
    ...rowOf(candidate),
    status: status === 'ineligible' ? ('ineligible' as const) : ('started' as const),
    reason: start.status === 'ineligible' ? start.reason : null,
    journeyId,
  }
}

/** The first context counts. */
function tellMismatch(
  { log }: ApplyServices,
  { scopeId }: Scope,
  { contextHash, ...of }: Candidate,
  row: OccurrenceRow,
) {
  if (contextHash === null || row.contextHash === null || contextHash.equals(row.contextHash)) return
  const { occurrence, customerId } = of
  log.warn({ scopeId, customerId, occurrence }, 'a start came again with another context; the first one counts')
}
