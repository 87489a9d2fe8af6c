import { isRetryable, type Pool, type Tx } from '../../db/pool.ts'
import { applyCommand } from '../../events/index.ts'
import { segmentStepCustomers } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { setAside } from './aside-store.ts'
import { type MembershipConsumer, visitOfMark } from './lane.ts'
import { type SegmentLog, tellProblems } from './problems.ts'
import { type Moment, type Processed, processVisits } from './process.ts'
import type { Budget } from './scratch-store.ts'
import { setOf } from './set-store.ts'
import { settleUntold, takeSettlingStep } from './settle.ts'
import { type Header, selectHeader } from './state-store.ts'
import { giveUpPending, lockLane, nextCustomers, saveWalk, swapIn } from './steps-store.ts'
import type { Visit } from './visit.ts'

export interface StepOptions {
  pool: Pool
  consumers: readonly MembershipConsumer[]
  log: SegmentLog
  budget?: Budget
}

export type StepKind = 'timers' | 'walk' | 'swap' | 'settle' | 'give_up'

/**
 * One step of a lane between two slices: up to 256 customers whose timer rang or who were marked; when there are none, the
 * next customers of pending definitions; then those to tell of new ones. All in one transaction under the lane's row, so
 * that a killed step has not happened. Gives what it did; null: nothing was left. One that fails and would fail again is
 * taken with half as many customers, down to the one that it fails on, who is set aside.
 */
export async function takeStep(options: StepOptions, scope: Scope, now: number): Promise<StepKind | null> {
  for (let limit = segmentStepCustomers; ; limit = Math.ceil(limit / 2)) {
    const touched = new Touched()
    try {
      return await options.pool.transaction((tx) => stepUnderLock(tx, scope, options, { now, limit, touched }))
    } catch (error) {
      if (isRetryable(error) || touched.kind === null || touched.customerIds.length === 0) throw error
      if (limit > 1) continue
      return passOver(options, scope, { now, touched, error })
    }
  }
}

/** What a step is about, known also when it fails. */
class Touched {
  kind: StepKind | null = null
  customerIds: string[] = []
}

interface Turn {
  now: number
  limit: number
  touched: Touched
}

async function stepUnderLock(tx: Tx, scope: Scope, options: StepOptions, turn: Turn): Promise<StepKind | null> {
  await lockLane(tx, scope)
  const header = await selectHeader(tx, scope, { dueBy: turn.now, limit: turn.limit })
  if (!header) return null
  const { kind, transitions, ...problems } = await step(tx, scope, header, options, turn)
  if (transitions.length > 0) for (const consumer of options.consumers) await consumer(tx, scope, [], transitions)
  tellProblems(options.log, scope, problems)
  return kind
}

interface Step extends Pick<Processed, 'transitions' | 'aside' | 'failed'> {
  kind: StepKind | null
}

const nothing = { transitions: [], aside: [], failed: [] }

async function step(tx: Tx, scope: Scope, header: Header, { budget }: StepOptions, turn: Turn): Promise<Step> {
  const { now, limit, touched } = turn
  const set = await setOf(tx, scope, header.revision)
  if (set.unread.length > 0) {
    return { ...nothing, kind: 'give_up', failed: await giveUpPending(tx, scope, [...set.unread]) }
  }
  const position = positionOf(tx, scope, now)
  const moment = { now, walkedTo: header.walkedTo, position, ...(budget && { budget }) }
  if (header.marked.length > 0) {
    Object.assign(touched, { kind: 'timers', customerIds: header.marked.map(({ customerId }) => customerId) })
    return { ...(await processVisits(tx, scope, set, header.marked.map(visitOfMark), moment)), kind: 'timers' }
  }
  if (header.walkedTo !== null) return walk(tx, scope, header, header.walkedTo, { moment, turn })
  if (!header.settling) return { ...nothing, kind: null }
  const transitions = await takeSettlingStep(tx, scope, header.revision, { now, position, limit }, (customerIds) => {
    Object.assign(touched, { kind: 'settle', customerIds })
  })
  return { ...nothing, kind: 'settle', transitions }
}

/** Tells pending versions all about the next customers; when they know the last one as well they are swapped in. */
async function walk(
  tx: Tx,
  scope: Scope,
  header: Header,
  after: string,
  { moment, turn: { limit, touched } }: { moment: Moment; turn: Turn },
): Promise<Step> {
  const customerIds = await nextCustomers(tx, scope, { after, limit })
  Object.assign(touched, { kind: 'walk', customerIds })
  const walkedTo = customerIds.at(-1)
  let processed: Processed = { ...nothing, isCounting: false }
  if (walkedTo !== undefined) {
    const set = await setOf(tx, scope, header.revision)
    const visits = customerIds.map(
      (customerId): Visit => ({ ...visitOfMark({ customerId, cause: 'timer' }), whole: false }),
    )
    processed = await processVisits(tx, scope, set, visits, { ...moment, walkedTo })
    await saveWalk(tx, scope, walkedTo)
    if (customerIds.length === limit || processed.isCounting || processed.failed.length > 0) {
      return { ...processed, kind: 'walk' }
    }
  }
  await swapIn(tx, scope)
  return { ...processed, kind: 'swap' }
}

/** Nothing of the step on this one customer has happened: it is set aside, and what is next can go on. */
async function passOver(
  { pool, log }: StepOptions,
  scope: Scope,
  { now, touched: { kind, customerIds }, error }: { now: number; touched: Touched; error: unknown },
): Promise<StepKind | null> {
  const aside = customerIds.map((customerId) => ({ customerId, error }))
  await pool.transaction(async (tx) => {
    await lockLane(tx, scope)
    await setAside(tx, scope, aside, now)
    const [customerId] = customerIds
    if (kind === 'walk' && customerId !== undefined) await saveWalk(tx, scope, customerId)
    if (kind === 'settle') await settleUntold(tx, scope, customerIds)
  })
  tellProblems(log, scope, { aside, failed: [] })
  return kind
}

/** A position of the lane, taken when the first change needs one. */
function positionOf(tx: Tx, scope: Scope, now: number): () => Promise<bigint> {
  let taken: Promise<bigint> | null = null
  return () => (taken ??= applyCommand(tx, scope, 'segments_step', { at: now }))
}
