import type { Pool } from '../db/pool.ts'
import { laneWakeMs } from '../kernel/limits.ts'
import { notifyLanes } from './append-store.ts'

/**
 * Wakes the workers of lanes after their events were committed: at once when nothing was sent for a while, else together
 * with the other lanes of the same few milliseconds. A lost wake-up is harmless, workers also look by themselves.
 */
export function createWake(pool: Pool): (scopeId: number) => void {
  const waiting = new Set<number>()
  let quiet = true

  async function send(): Promise<void> {
    const scopeIds = [...waiting]
    waiting.clear()
    // A database that is away is told of by the appends; here nothing depends on it.
    await pool.connected((client) => notifyLanes(client, scopeIds)).catch(() => {})
  }

  function afterPause(): void {
    quiet = waiting.size === 0
    if (quiet) return
    void send()
    setTimeout(afterPause, laneWakeMs)
  }

  return function wake(scopeId) {
    waiting.add(scopeId)
    if (!quiet) return
    quiet = false
    void send()
    setTimeout(afterPause, laneWakeMs)
  }
}
