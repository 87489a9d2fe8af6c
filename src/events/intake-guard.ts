import { statfs } from 'node:fs/promises'
import type { Pool } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import { freeDiskShareMin, intakeLookMs, unprocessedBytesMax } from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'
import { logBytes, selectUnprocessedBytes } from './log-size-store.ts'
import type { Log } from './types.ts'

export interface IntakeGuardOptions {
  pool: Pool
  log: Log
  /** Where the embedded database lies; null: its disk is on another machine, which has to be watched there. */
  dataDir: string | null
  /** For tests. */
  limits?: { unprocessedBytesMax: number; freeDiskShareMin: number }
}

export interface IntakeGuard extends Disposable {
  /** Throws 503 `service_unavailable` while no events may be taken. */
  check: () => void
  /** Looks now; otherwise it looks every few seconds. */
  look: () => Promise<void>
}

/** Stops intake before the disk is full: a database without room loses more than new events. */
export function createIntakeGuard({ pool, log, dataDir, limits }: IntakeGuardOptions): IntakeGuard {
  const bounds = limits ?? { unprocessedBytesMax, freeDiskShareMin }
  let objection: string | null = null

  async function look(): Promise<void> {
    const found = (await diskObjection(dataDir, bounds)) ?? (await logObjection(pool, bounds))
    if (found !== objection)
      log[found === null ? 'warn' : 'error']({ why: found }, 'intake of events was stopped or goes on')
    objection = found
  }

  // What cannot be looked at stays as it is: without a database nothing is taken anyway.
  const timer = setInterval(() => void look().catch(() => {}), intakeLookMs)
  timer.unref()
  return {
    look,
    check() {
      if (objection === null) return
      throw refuse('service_unavailable', { retryAfterS: retryAfterS(), message: `${objection} Retry.` })
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

type Bounds = NonNullable<IntakeGuardOptions['limits']>

async function diskObjection(dataDir: string | null, bounds: Bounds): Promise<string | null> {
  if (dataDir === null) return null
  const { bavail, blocks } = await statfs(dataDir)
  return bavail / blocks < bounds.freeDiskShareMin ? 'The disk is almost full.' : null
}

async function logObjection(pool: Pool, bounds: Bounds): Promise<string | null> {
  // The whole log is as large at least: most often that says enough.
  if ((await logBytes(pool)) <= bounds.unprocessedBytesMax) return null
  const waiting = await selectUnprocessedBytes(pool)
  return waiting > bounds.unprocessedBytesMax ? 'Too many events wait to be processed.' : null
}
