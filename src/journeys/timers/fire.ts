import { isRetryable, type Pool, type Tx } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import { assert } from '../../kernel/assert.ts'
import { heldRecheckMs, timeoutRecheckMs, timersAtOnce } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyUnlocked } from '../apply/apply.ts'
import type { ApplyServices } from '../apply/services.ts'
import { selectExisting } from '../store/journey-store.ts'
import { selectScopes } from '../store/scope-store.ts'
import {
  putTimers,
  selectClock,
  type TimerKey,
  type TimerRow,
  takeDueTimers,
  takeTimers,
} from '../store/timer-store.ts'
import type { Ms } from '../types.ts'
import { bisected } from './bisect.ts'
import { passedUntil } from './passed.ts'
import { setAside } from './set-aside.ts'

export interface FireOptions {
  pool: Pool
  services: ApplyServices
  /** By whose clock timers are due: the database's, unless a test says otherwise. */
  now?: Ms
  limit?: number
}

/** One transaction of due timers; gives how many were taken. */
export async function fireTimers(options: FireOptions): Promise<number> {
  const { pool, services, limit = timersAtOnce } = options
  const seen: TimerKey[] = []
  try {
    return await pool.transaction(async (tx) => {
      const now = options.now ?? (await selectClock(tx.client))
      const timers = await takeDueTimers(tx.client, now, limit)
      seen.push(...timers)
      await fire(tx, timers, now, services)
      return timers.length
    })
  } catch (error) {
    if (error instanceof StaleSlice || isRetryable(error) || seen.length === 0) throw error
    // Rolled back, all of them are due again: each half by itself, so that one that can't be applied stops no other.
    await bisected(seen, {
      run: (some) =>
        pool.transaction(async (tx) => {
          const now = options.now ?? (await selectClock(tx.client))
          await fire(tx, await takeTimers(tx.client, now, some), now, services)
        }),
      failed: (key, reason) => setAside(pool, key, { error: reason, services, now: options.now }),
    })
    return seen.length
  }
}

/** The transaction is the claim: nobody else gets these, and rolled back they are there again. */
async function fire(tx: Tx, timers: readonly TimerRow[], now: Ms, services: ApplyServices): Promise<void> {
  if (timers.length === 0) return
  const scopeIds = new Set(timers.map(({ scopeId }) => scopeId))
  const scopes = await selectScopes(tx, [...scopeIds])
  assert(scopes.length === scopeIds.size, 'timers are of scopes that are there')
  const back: TimerRow[] = []
  for (const scope of scopes) {
    // Several of one journey fire in the order in which they were due.
    const own = timers
      .filter(({ scopeId }) => scopeId === scope.scopeId)
      .toSorted((a, b) => a.dueAt - b.dueAt || a.rev - b.rev)
    const { ready, waiting } = await readyOf(tx, scope, own)
    back.push(...waiting.map((timer) => ({ ...timer, lookAt: now + timeoutRecheckMs })))
    const told = ready.map(({ journeyId, timer, rev }) => ({
      journeyId,
      input: { kind: 'timer' as const, timer, rev },
    }))
    const applied = await applyUnlocked(tx, scope, told, now, services, { skipLocked: true })
    const skipped = ready.filter((_, i) => applied[i] === undefined)
    if (skipped.length === 0) continue
    // Somebody works on the journey at the moment: the timer waits for its turn, and may be stale by then.
    const there = await selectExisting(tx.client, skipped)
    back.push(
      ...skipped
        .filter((timer) => there.has(timer.journeyId))
        .map((timer) => ({ ...timer, lookAt: now + heldRecheckMs })),
    )
  }
  await putTimers(tx.client, back)
}

/** Timeouts of waits for events come after every event that was received before them. */
async function readyOf(
  tx: Tx,
  scope: Scope,
  timers: readonly TimerRow[],
): Promise<{ ready: TimerRow[]; waiting: TimerRow[] }> {
  const guarded = timers.filter(({ afterLane }) => afterLane)
  if (guarded.length === 0) return { ready: [...timers], waiting: [] }
  const passed = await passedUntil(tx, scope, guarded)
  const waiting = guarded.filter((timer) => !passed(timer))
  return { ready: timers.filter((timer) => !waiting.includes(timer)), waiting }
}
