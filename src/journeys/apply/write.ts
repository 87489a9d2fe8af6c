import { raiseRevs } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { countEnrolments } from '../store/enrolment-store.ts'
import { countDispositions } from '../store/facts-store.ts'
import { insertJourneys, insertTransitions, updateJourneys } from '../store/journey-store.ts'
import { insertLegs, updateLegs } from '../store/leg-store.ts'
import { insertOutbox } from '../store/outbox-store.ts'
import { subscribe, unsubscribe } from '../store/subscription-store.ts'
import { parkTimers, putTimers, removeTimers, wakeEngine } from '../store/timer-store.ts'
import type { Facts, Input, Ms } from '../types.ts'
import { effectsOf } from './effects-of.ts'
import { legRowsOf } from './leg-rows.ts'
import { outside } from './outside.ts'
import type { ApplyServices } from './services.ts'
import { timerRowsOf } from './timer-rows.ts'
import type { Taken, Work } from './work.ts'

/** Writes what was decided: one statement for each table, whatever the batch. */
export async function write(
  tx: Tx,
  scope: Scope,
  works: readonly Work[],
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  const { client } = tx
  const { scopeId } = scope
  const taken = works.flatMap((work) => work.taken)
  await writeJourneys(tx, scope, works, taken, now)
  const legs = legRowsOf(scopeId, taken, now)
  await insertLegs(client, legs.made)
  await updateLegs(client, legs.changed)
  const timers = timerRowsOf(scopeId, taken)
  await removeTimers(client, timers.removed)
  await putTimers(client, timers.set)
  await parkTimers(client, timers.parked)
  await writeSubscriptions(tx, scope, taken)
  const webhooks = effectsOf(taken, 'webhook')
  await insertOutbox(
    client,
    webhooks.map(({ effect, journey }) => ({
      scopeId,
      journeyId: journey.id,
      rev: journey.rev,
      ...effect,
      dueAt: now,
    })),
  )
  await countEnrolments(
    tx,
    scope,
    effectsOf(taken, 'countEnrolment').map(({ effect: { at }, journey: { experienceId, customerId } }) => ({
      ...{ experienceId, customerId, at },
    })),
  )
  await outside(tx, scope, taken, now, services)
  await countDispositions(tx, scope, countsOf(works), now)
  const bumped = effectsOf(taken, 'bump').map(({ journey: { customerId } }) => ({ scopeId, customerId }))
  await raiseRevs(tx, bumped)
  const isSoon = timers.set.some(({ dueAt, parked }) => !parked && dueAt <= now + soonMs)
  if (isSoon || webhooks.length > 0) await wakeEngine(client)
}

/** Nearer than this the next look may come too late. */
const soonMs = 2000

async function writeJourneys(
  { client }: Tx,
  { scopeId }: Scope,
  works: readonly Work[],
  taken: readonly Taken[],
  now: Ms,
): Promise<void> {
  const changed = works.flatMap(({ journey, seenRev }) =>
    journey !== null && journey.rev !== seenRev ? [{ scopeId, journey, seenRev }] : [],
  )
  const made = changed.filter(({ seenRev }) => seenRev === 0)
  const moved = changed.filter(({ seenRev }) => seenRev > 0)
  const written = (await insertJourneys(client, made)) + (await updateJourneys(client, moved))
  if (written < changed.length) throw new StaleSlice('a journey was made or changed by somebody else')
  await insertTransitions(
    client,
    taken.flatMap(({ journey, rev, input, facts, from, to, effects }) =>
      rev === null
        ? []
        : [
            {
              ...{ scopeId, journeyId: journey.id, rev, at: now, input: inputText(input), facts: factsText(facts) },
              ...{ from, to, effects: JSON.stringify(effects) },
            },
          ],
    ),
  )
}

/** A move's plan is named by its build: a plan is long, and never changes. */
function inputText(input: Input): string {
  if (input.kind !== 'move') return JSON.stringify(input)
  return JSON.stringify({ kind: 'move', build: input.plan.buildId })
}

function factsText(facts: Facts): string | null {
  return Object.keys(facts).length === 0 ? null : JSON.stringify(facts)
}

async function writeSubscriptions(tx: Tx, { scopeId }: Scope, taken: readonly Taken[]): Promise<void> {
  // A journey waits for one event at a time: what it ended with counts.
  const last = new Map<string, { customerId: string; eventName: string | null }>()
  for (const { journey, effects } of taken) {
    for (const effect of effects) {
      if (effect.kind === 'subscribe')
        last.set(journey.id, { customerId: journey.customerId, eventName: effect.eventName })
      if (effect.kind === 'unsubscribe') last.set(journey.id, { customerId: journey.customerId, eventName: null })
    }
  }
  await unsubscribe(
    tx.client,
    [...last.keys()].map((journeyId) => ({ scopeId, journeyId })),
  )
  await subscribe(
    tx.client,
    [...last].flatMap(([journeyId, { customerId, eventName }]) =>
      eventName === null ? [] : [{ scopeId, journeyId, customerId, eventName }],
    ),
  )
}

/** Every input that changed nothing is counted by why. */
function countsOf(works: readonly Work[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { dispositions } of works) {
    for (const { disposition } of dispositions) {
      if (disposition !== 'applied') counts.set(disposition, (counts.get(disposition) ?? 0) + 1)
    }
  }
  return counts
}
