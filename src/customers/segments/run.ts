import { setTimeout as sleep } from 'node:timers/promises'
import { createBell } from '../../db/bell.ts'
import { isRetryable, Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { segmentAuditCustomers, segmentSweepMs } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { auditSegments } from './audit.ts'
import { lanesToAudit } from './audit-store.ts'
import { deleteOldChanges } from './eraser-store.ts'
import type { MembershipConsumer } from './lane.ts'
import type { SegmentLog } from './problems.ts'
import { segmentChannel } from './state-store.ts'
import { takeStep } from './steps.ts'
import { lanesWithSteps } from './steps-store.ts'

export interface SegmentsOptions {
  url: string
  consumers: readonly MembershipConsumer[]
  clock: Clock
  log: SegmentLog
  /** How many days events are kept. */
  keptDays: number
  /** Ends it after the step under way. */
  signal: AbortSignal
}

const hourMs = 3600_000

/** As the lane's connections: every statement is a probe of an index, also on tables that nobody has analysed yet. */
const settings = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off', lock_timeout: '2s' }

/** Takes the steps of all lanes until `signal`: timers, backfills, and whom a new definition concerns. Any number may run. */
export async function runSegments({ url, consumers, clock, log, keptDays, signal }: SegmentsOptions): Promise<void> {
  await using pool = new Pool(url, { name: 'segments', max: 1, settings })
  // Rings when somebody marked a customer or changed a definition.
  await using bell = createBell(url, { channel: segmentChannel, name: 'segments' })
  let auditAt = 0
  while (!signal.aborted) {
    try {
      await bell.open()
      await takeAll()
      await audit()
    } catch (error) {
      log.warn({ err: error }, 'segments cannot be looked at for the moment')
    }
    await bell.rung(signal, segmentSweepMs)
  }

  async function takeAll(): Promise<void> {
    for (const scope of await lanesWithSteps(pool, clock.now(), null)) {
      for (let more = true; more && !signal.aborted; ) more = await takeOne(scope)
    }
  }

  /** Once a day for each lane, looked for once an hour. */
  async function audit(): Promise<void> {
    if (clock.now() < auditAt) return
    auditAt = clock.now() + hourMs
    while (!(await deleteOldChanges(pool))) if (signal.aborted) return
    for (const scope of await lanesToAudit(pool, 24)) {
      const result = await auditSegments(pool, scope, {
        ...{ now: clock.now(), customers: segmentAuditCustomers, keptDays },
      })
      if (!result || result.wrong.length === 0) continue
      const { scopeId } = scope
      log.error({ scopeId, customerIds: result.wrong }, 'memberships were not what events say, and were put right')
    }
  }

  /** False: nothing is left, or it is better tried later. */
  async function takeOne(scope: Scope): Promise<boolean> {
    const startedAt = performance.now()
    try {
      const kind = await takeStep({ pool, consumers, log }, scope, clock.now())
      if (kind === null) return false
    } catch (error) {
      const { scopeId } = scope
      if (isRetryable(error)) log.warn({ err: error, scopeId }, 'a step of segments is tried again')
      else log.error({ err: error, scopeId }, 'a step of segments failed; it is tried again')
      return false
    }
    // Slices of events take turns with steps.
    await sleep(performance.now() - startedAt)
    return true
  }
}
