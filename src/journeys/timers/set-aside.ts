import type { Pool } from '../../db/pool.ts'
import { journeyRetryMsMax, journeyRetryMsMin, journeyTriesMax } from '../../kernel/limits.ts'
import type { ApplyServices } from '../apply/services.ts'
import { insertQuarantined } from '../store/quarantine-store.ts'
import { putTimers, removeTimers, selectClock, type TimerKey, takeTimers } from '../store/timer-store.ts'
import type { Ms } from '../types.ts'

/** How long a row that failed so often waits for its next try. */
export function retryAfterMs(attempts: number): number {
  return Math.min(journeyRetryMsMin * 2 ** (attempts - 1), journeyRetryMsMax)
}

/** A timer that can't be applied even alone is tried again later, and in the end kept for somebody to look at. */
export async function setAside(
  pool: Pool,
  key: TimerKey,
  { error, services, now }: { error: unknown; services: ApplyServices; now: Ms | undefined },
): Promise<void> {
  const { scopeId, journeyId } = key
  await pool.transaction(async (tx) => {
    const at = now ?? (await selectClock(tx.client))
    const [timer] = await takeTimers(tx.client, at, [key])
    if (!timer) return
    const attempts = timer.attempts + 1
    if (attempts < journeyTriesMax) {
      services.log.warn({ err: error, ...key, attempts }, 'a timer of a journey failed; it is tried again')
      await putTimers(tx.client, [{ ...timer, attempts, lookAt: at + retryAfterMs(attempts) }])
      return
    }
    services.log.error({ err: error, ...key }, 'a timer of a journey fails however often it is tried: it is set aside')
    await removeTimers(tx.client, [key])
    const { timer: kind, rev, dueAt } = timer
    const body = JSON.stringify({ kind, rev, due_at_ms: dueAt })
    await insertQuarantined(tx, { scopeId, source: 'timer', journeyId, body, error: String(error), at })
  })
}
