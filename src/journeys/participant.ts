import {
  type CustomerMerge,
  type CustomerSplit,
  type Eraser,
  type MergeParticipant,
  takeCustomers,
} from '../customers/index.ts'
import type { Tx } from '../db/pool.ts'
import type { Json } from '../events/index.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Scope } from '../tenancy/index.ts'
import { applyInputs } from './apply/apply.ts'
import { pinnedPlans } from './apply/pinned-plans.ts'
import type { ApplyServices } from './apply/services.ts'
import { frequencyAllows } from './engine/frequency.ts'
import { selectPublishedRevision } from './intake/watched-store.ts'
import { selectOpenOf } from './manage/command-store.ts'
import {
  addEnrolments,
  deleteWaiting,
  eraseJourneys,
  lockOpen,
  moveJourneys,
  moveOccurrences,
  moveOccurrencesBack,
  movePause,
  selectIdsOf,
  takeEnrolments,
} from './participant-store.ts'
import { selectUntil } from './until-store.ts'

/** What a merge moved, for its split. */
type Moved = {
  journeys: string[]
  enrolments: { experienceId: number; count: number; times: number[] }[]
  occurrences: string[]
}

/** Journeys follow their customers. Whoever enrols one keeps its customer: here is waited for it, and what it began is seen. */
export function createJourneyParticipant({
  clock,
  services,
}: {
  clock: Clock
  services: ApplyServices
}): MergeParticipant {
  return {
    name: 'journeys',
    async merge(tx, scope, merges) {
      if ((await selectPublishedRevision(tx, scope)) === null) return merges.map((): Json => null)
      await takeCustomers(
        tx,
        scope,
        merges.flatMap(({ sourceCustomerId, targetCustomerId }) => [sourceCustomerId, targetCustomerId]),
      )
      const moved: Json[] = []
      for (const merge of merges) moved.push(await mergeOne(tx, scope, merge, { now: clock.now(), services }))
      return moved
    },
    async split(tx, scope, split) {
      if (split.how === 'add' || (await selectPublishedRevision(tx, scope)) === null) return
      await splitOne(tx, scope, split)
    },
    async delete(tx, scope, customerIds) {
      if ((await selectPublishedRevision(tx, scope)) === null) return
      await takeCustomers(tx, scope, customerIds)
      const open = await selectOpenOf(tx, scope, customerIds)
      const told = open.map(({ id }) => ({
        journeyId: id,
        input: { kind: 'cancel', reason: 'customer_deleted' } as const,
      }))
      if (told.length > 0) await applyInputs(tx, scope, told, clock.now(), services)
      await deleteWaiting(tx, scope, customerIds)
    },
  }
}

async function mergeOne(
  tx: Tx,
  scope: Scope,
  { sourceCustomerId: source, targetCustomerId: target }: CustomerMerge,
  { now, services }: { now: number; services: ApplyServices },
): Promise<Json> {
  const pair = { source, target }
  // Enrolments before journeys, as everywhere.
  const enrolments = await addEnrolments(tx, scope, pair)
  const open = await lockOpen(tx, scope, [source, target])
  const journeys = await selectIdsOf(tx, scope, source)
  const occurrences = await moveOccurrences(tx, scope, pair)
  const rests = await movePause(tx, scope, pair)
  if (journeys.length > 0) await moveJourneys(tx, scope, journeys, target)
  const ended = await supersededOf(tx, scope, open)
  if (ended.length > 0) {
    const told = ended.map((journeyId) => ({ journeyId, input: { kind: 'supersede' } as const }))
    await applyInputs(tx, scope, told, now, services)
  }
  if (rests) {
    const told = open.map(({ id }) => ({ journeyId: id, input: { kind: 'hold' } as const }))
    if (told.length > 0) await applyInputs(tx, scope, told, now, services)
  }
  if (journeys.length + enrolments.length + occurrences.length === 0) return null
  return { journeys, enrolments, occurrences } satisfies Moved
}

type Open = Awaited<ReturnType<typeof lockOpen>>[number]

/** Of two open ones of an Experience that its frequency would not have allowed both, the one that is less far. */
async function supersededOf(tx: Tx, scope: Scope, open: readonly Open[]): Promise<string[]> {
  if (new Set(open.map(({ customerId }) => customerId)).size < 2) return []
  const plans = await pinnedPlans(tx, scope, open)
  const ended: string[] = []
  for (const rivals of Map.groupBy(open, ({ experienceId }) => experienceId).values()) {
    const kept: Open[] = []
    for (const journey of rivals.toSorted(furthestFirst)) {
      const plan = plans.get(journey.buildId)
      const times = kept.filter(({ customerId }) => customerId !== journey.customerId).map(({ startedAt }) => startedAt)
      const goesOn = !plan || frequencyAllows(plan, { count: times.length, times }, journey.startedAt)
      if (goesOn) kept.push(journey)
      else ended.push(journey.id)
    }
  }
  return ended
}

function furthestFirst(a: Open, b: Open): number {
  return b.rev - a.rev || (a.id < b.id ? -1 : 1)
}

async function splitOne(tx: Tx, scope: Scope, split: CustomerSplit): Promise<void> {
  const { sourceCustomerId: source, targetCustomerId: target, how, moved, mergedAt } = split
  const pair = { source, target }
  // A record that went on as the target's has all that the source had until then; else the merge noted what it moved.
  const came = how === 'rename' ? await selectUntil(tx, scope, target, mergedAt) : (moved as Moved | null) // by mergeOne
  if (came === null) return
  await takeEnrolments(tx, scope, pair, came.enrolments)
  const own = new Set(await selectIdsOf(tx, scope, target))
  await moveJourneys(
    tx,
    scope,
    came.journeys.filter((id) => own.has(id)),
    source,
  )
  await moveOccurrencesBack(tx, scope, pair, came.occurrences)
}

/** Removes what is kept of the journeys of deleted customers. */
export const journeyEraser: Eraser = {
  name: 'journeys',
  erase: (tx, scope, { customerIds }) => eraseJourneys(tx, scope, customerIds),
}
