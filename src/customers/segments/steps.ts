import type { Pool, Tx } from '../../db/pool.ts'
import { applyCommand } from '../../events/index.ts'
import { segmentStepCustomers } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type MembershipConsumer, visitOfMark } from './lane.ts'
import { processVisits, type Transition } from './process.ts'
import { setOf } from './set-store.ts'
import { takeSettlingStep } from './settle.ts'
import { type Header, selectHeader } from './state-store.ts'
import { lockLane, nextCustomers, saveWalk, swapIn } from './steps-store.ts'
import type { Visit } from './visit.ts'

export interface StepOptions {
  pool: Pool
  consumers: readonly MembershipConsumer[]
}

/**
 * One step of a lane between two slices: up to 256 customers whose timer rang or who were marked; when there are none, the
 * next customers of pending definitions; then those to tell of new ones. All in one transaction under the lane's row, so
 * that a killed step has not happened. Gives what it did; null: nothing was left.
 */
export function takeStep({ pool, consumers }: StepOptions, scope: Scope, now: number): Promise<StepKind | null> {
  return pool.transaction(async (tx) => {
    await lockLane(tx, scope)
    const header = await selectHeader(tx, scope, now)
    if (!header) return null
    const { kind, transitions } = await step(tx, scope, header, now)
    if (transitions.length > 0) for (const consumer of consumers) await consumer(tx, scope, [], transitions)
    return kind
  })
}

export type StepKind = 'timers' | 'walk' | 'swap' | 'settle'

interface Step {
  kind: StepKind | null
  transitions: Transition[]
}

async function step(tx: Tx, scope: Scope, header: Header, now: number): Promise<Step> {
  const position = positionOf(tx, scope, now)
  if (header.marked.length > 0) {
    const set = await setOf(tx, scope, header.revision)
    const visits = header.marked.map(visitOfMark)
    const moment = { now, walkedTo: header.walkedTo, position }
    return { kind: 'timers', transitions: await processVisits(tx, scope, set, visits, moment) }
  }
  if (header.walkedTo !== null) return walk(tx, scope, header, header.walkedTo, now)
  if (!header.settling) return { kind: null, transitions: [] }
  return { kind: 'settle', transitions: await takeSettlingStep(tx, scope, header.revision, { now, position }) }
}

/** Tells pending versions all about the next customers; after the last one they are swapped in. */
async function walk(tx: Tx, scope: Scope, header: Header, after: string, now: number): Promise<Step> {
  const customerIds = await nextCustomers(tx, scope, after)
  const walkedTo = customerIds.at(-1)
  let transitions: Transition[] = []
  if (walkedTo !== undefined) {
    const set = await setOf(tx, scope, header.revision)
    const visits = customerIds.map(
      (customerId): Visit => ({ ...visitOfMark({ customerId, cause: 'timer' }), whole: false }),
    )
    const moment = { now, walkedTo, position: positionOf(tx, scope, now) }
    transitions = await processVisits(tx, scope, set, visits, moment)
    await saveWalk(tx, scope, walkedTo)
    if (customerIds.length === segmentStepCustomers) return { kind: 'walk', transitions }
  }
  await swapIn(tx, scope)
  return { kind: 'swap', transitions }
}

/** A position of the lane, taken when the first change needs one. */
function positionOf(tx: Tx, scope: Scope, now: number): () => Promise<bigint> {
  let taken: Promise<bigint> | null = null
  return () => (taken ??= applyCommand(tx, scope, 'segments_step', { at: now }))
}
