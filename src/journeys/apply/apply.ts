import type { Tx } from '../../db/pool.ts'
import { assert, must } from '../../kernel/assert.ts'
import { immediateStepsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { lockEnrolments } from '../store/enrolment-store.ts'
import { lockJourneys } from '../store/journey-store.ts'
import type { Disposition, Journey, Ms } from '../types.ts'
import { load } from './load.ts'
import { pinnedPlans } from './pinned-plans.ts'
import type { ApplyServices } from './services.ts'
import { advance, type Told, type Work, workOf } from './work.ts'
import { write } from './write.ts'

/** What became of one input, and the journey after it; null: there is none. */
export interface Applied {
  disposition: Disposition
  journey: Journey | null
}

export interface ApplyOptions {
  /** Leaves journeys alone that somebody holds: their inputs come back as undefined. */
  skipLocked?: boolean
}

/**
 * Applies inputs in the caller's transaction, those of one journey in their order; gives one answer for each. Enrolment rows are
 * locked first, then journeys, then what effects write, `customer_rev` last; each by id. Throws `StaleSlice` when a journey
 * was made by somebody else meanwhile: then the transaction is tried again.
 */
export async function applyInputs(
  tx: Tx,
  scope: Scope,
  told: readonly Told[],
  now: Ms,
  services: ApplyServices,
): Promise<Applied[]> {
  const applied = await applyUnlocked(tx, scope, told, now, services)
  return applied.map((one) => must(one, 'nothing is skipped'))
}

/** The same; inputs of journeys that somebody holds at the moment come back as undefined when `skipLocked` is set. */
export async function applyUnlocked(
  tx: Tx,
  scope: Scope,
  told: readonly Told[],
  now: Ms,
  services: ApplyServices,
  { skipLocked = false }: ApplyOptions = {},
): Promise<(Applied | undefined)[]> {
  if (told.length === 0) return []
  const works = worksOf(told)
  await lockAll(tx, scope, works, told, skipLocked)
  await decideAll(tx, scope, works, now, services)
  const all = [...works.values()]
  await write(tx, scope, all, now, services)
  const applied: (Applied | undefined)[] = told.map(() => undefined)
  for (const { dispositions, journey } of all) {
    for (const { index, disposition } of dispositions) applied[index] = { disposition, journey }
  }
  // What saw properties or grants of its own batch only now finds them written.
  const later = all.flatMap((work) => work.told.slice(work.done).map(({ index }) => index))
  if (later.length === 0) return applied
  const rest = later.map((index) => must(told[index], 'it was told'))
  const after = await applyUnlocked(tx, scope, rest, now, services, { skipLocked })
  for (const [i, index] of later.entries()) applied[index] = after[i]
  return applied
}

function worksOf(told: readonly Told[]): Map<string, Work> {
  const works = new Map<string, Work>()
  for (const [index, { journeyId, input, plan }] of told.entries()) {
    const work = works.get(journeyId) ?? workOf(journeyId)
    works.set(journeyId, work)
    work.told.push({ input, index })
    if (plan) work.plan ??= plan
  }
  return works
}

async function lockAll(
  tx: Tx,
  scope: Scope,
  works: Map<string, Work>,
  told: readonly Told[],
  skipLocked: boolean,
): Promise<void> {
  const enrolling = told.flatMap(({ input, plan, journeyId }) =>
    input.kind === 'enrol' && plan
      ? [{ experienceId: plan.experienceId, customerId: input.customerId, journeyId }]
      : [],
  )
  const counted = await lockEnrolments(tx, scope, enrolling)
  for (const { experienceId, customerId, journeyId } of enrolling) {
    const work = must(works.get(journeyId), 'it was told')
    work.counted = must(counted.get(`${experienceId} ${customerId}`), 'it was locked')
  }
  const { scopeId } = scope
  const keys = [...works.keys()].map((journeyId) => ({ scopeId, journeyId }))
  const locked = await lockJourneys(tx.client, keys, { skipLocked })
  const plans = await pinnedPlans(
    tx,
    scope,
    locked.map(({ journey }) => journey),
  )
  for (const { journey } of locked) {
    const work = must(works.get(journey.id), 'it was asked for')
    Object.assign(work, {
      journey,
      seenRev: journey.rev,
      plan: must(plans.get(journey.buildId), 'a build was published'),
    })
  }
  if (!skipLocked) return
  for (const work of works.values()) {
    // Held by somebody, or not there any more: whoever asked looks again.
    if (work.journey === null && work.plan === null) work.told = []
  }
}

/** Each round loads for all what any needs: an input needs at most a leg, the customer, and one thing for each step. */
async function decideAll(
  tx: Tx,
  scope: Scope,
  works: Map<string, Work>,
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  const inputs = [...works.values()].reduce((most, { told }) => Math.max(most, told.length), 1)
  for (let round = 0; ; round++) {
    assert(round <= inputs * (immediateStepsMax + 3), 'what was loaded is not asked for again')
    const needing = [...works.values()].flatMap((work) => {
      const needs = advance(work, now)
      return needs ? [{ work, needs }] : []
    })
    if (needing.length === 0) break
    await load(tx, scope, needing, now, services)
  }
}
