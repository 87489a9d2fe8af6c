import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { settleChanges } from './customers/index.ts'
import { isRetryable, Pool } from './db/pool.ts'
import { erasersOf } from './erasers.ts'
import { laneSettings } from './events/index.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { settleEveryMs } from './kernel/limits.ts'
import type { InstanceSecrets } from './tenancy/index.ts'

/** Does in the background what merges, splits and deletions of customers leave to be done, until it is disposed. */
export function startSettling(
  { url, secrets }: { url: string; secrets: InstanceSecrets },
  log: Logger,
): AsyncDisposable {
  // Index probes only, also on tables that nobody has analysed yet.
  const pool = new Pool(url, { name: 'settling', max: 1, settings: laneSettings })
  const options = { erasers: erasersOf(secrets), now: () => clock.now() }
  const stop = new AbortController()

  async function run(): Promise<void> {
    let afterScope = 0
    let isMore = false
    while (!stop.signal.aborted) {
      const slice = await settleChanges(pool, options, afterScope).catch((error: unknown) => {
        log[isRetryable(error) ? 'warn' : 'error'](
          { err: error },
          'what a merge, split or deletion left could not be done; it is tried again',
        )
        return null
      })
      isMore ||= slice?.isMore ?? false
      afterScope = slice?.scopeId ?? 0
      if (slice !== null) continue
      if (!isMore) await pause()
      isMore = false
    }
  }

  async function pause(): Promise<void> {
    await sleep(settleEveryMs, undefined, { signal: stop.signal }).catch(() => {})
  }

  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
      await pool[Symbol.asyncDispose]()
    },
  }
}
