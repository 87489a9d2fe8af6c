import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Pool } from './db/pool.ts'
import { ensureEntryPartitions, sweepGrants } from './entitlements/index.ts'
import { checkLogMeta, ensurePartitions, forgetEventAnswers, forgetOldEvents } from './events/index.ts'
import { forgetBrokenUploads } from './experiences/index.ts'
import { forgetOccurrences } from './journeys/index.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { forgetExpired, forgetIdempotentAnswers } from './tenancy/index.ts'

const everyMs = 3600_000

/**
 * Notes how far the log's order goes, makes partitions ahead of time and forgets old answers and sessions: now, and every
 * hour, when it also forgets old events and sweeps the ledger. Safe in any number of processes.
 */
export async function startMaintenance(pool: Pool, config: Config, log: Logger): Promise<Disposable> {
  await maintain(pool)
  const stop = new AbortController()
  const timer = setInterval(() => {
    hourly(pool, config, log, stop.signal).catch((error: unknown) =>
      log.error({ err: error }, 'maintenance failed; it runs again in an hour'),
    )
  }, everyMs)
  timer.unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      stop.abort()
    },
  }
}

/** The sweep reads every grant, so no start waits for it. */
async function hourly(pool: Pool, config: Config, log: Logger, signal: AbortSignal): Promise<void> {
  await maintain(pool)
  await forgetEventAnswers(pool)
  await forgetBrokenUploads(pool)
  const forgotten = await forgetOldEvents(pool, { eventDays: config.eventRetentionDays })
  if (forgotten && forgotten.partitions.length > 0) log.info(forgotten, 'old events were removed')
  await forgetOccurrences(pool, clock.now(), signal)
  await sweepGrants(pool, signal)
}

async function maintain(pool: Pool): Promise<void> {
  await checkLogMeta(pool)
  await ensurePartitions(pool)
  await ensureEntryPartitions(pool)
  await forgetIdempotentAnswers(pool)
  await forgetExpired(pool)
}
