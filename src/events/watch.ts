import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { laneRevealMs, laneSweepMs } from '../kernel/limits.ts'
import { type LogMark, lanesWithWork, revealRows, selectLogMark } from './lag-store.ts'
import type { Log } from './types.ts'

export interface WatchOptions {
  url: string
  pool: Pool
  owner: string
  /** Called for a lane that may have something to do. */
  wake: (scopeId: number) => void
  clock: Clock
  log: Log
  signal: AbortSignal
}

/** Wakes lanes until `signal`: as soon as their events are committed, and every half second by looking, since a call may be lost. */
export async function watchLanes(options: WatchOptions): Promise<void> {
  const { url, log, signal, wake } = options
  const look = createLook(options)
  await using listener = createListener(url, (scopeIds) => {
    if (scopeIds === '*') void look().catch(() => {})
    else for (const id of scopeIds.split(',')) wake(Number(id))
  })
  let away = false
  while (!signal.aborted) {
    try {
      await listener.open()
      await look()
      away = false
    } catch (error) {
      // Said once, and not for each half second of an outage.
      if (!away) log.warn({ err: error }, 'the lanes cannot be watched at the moment')
      away = true
    }
    await sleep(laneSweepMs, undefined, { signal }).catch(() => {})
  }
}

/** Looks for lanes with work, unless nothing was logged since a look that found none. */
function createLook({ pool, owner, wake, clock }: WatchOptions): () => Promise<void> {
  /** The first mark with its number: later looks see all that was drawn by then once those transactions have ended. */
  let first: LogMark | null = null
  let nothingLeft = false
  let revealAt = 0
  return async () => {
    if (clock.now() >= revealAt) {
      await revealRows(pool, 'live')
      await revealRows(pool, 'historical')
      revealAt = clock.now() + laneRevealMs
      nothingLeft = false
    }
    const mark = await selectLogMark(pool)
    if (mark.seq !== first?.seq) {
      first = mark
      nothingLeft = false
    }
    if (nothingLeft) return
    const lanes = await lanesWithWork(pool, owner)
    nothingLeft = lanes.length === 0 && mark.xmin >= first.xmax
    for (const { id, free } of lanes) if (free) wake(id)
  }
}

/** Hears the commits of all processes on a connection of its own, which `open` replaces when it was lost. */
function createListener(url: string, hear: (scopeIds: string) => void) {
  let client: pg.Client | null = null
  return {
    async open() {
      if (client !== null) return
      const opening = new pg.Client({
        connectionString: url,
        application_name: 'turnpike lane watch',
        connectionTimeoutMillis: 2000,
      })
      const lost = () => {
        if (client === opening) client = null
      }
      opening.on('error', lost)
      opening.on('end', lost)
      opening.on('notification', ({ payload }) => hear(payload ?? ''))
      client = opening
      try {
        await opening.connect()
        await opening.query('listen turnpike_lane')
      } catch (error) {
        lost()
        void opening.end().catch(() => {})
        throw error
      }
    },
    async [Symbol.asyncDispose]() {
      await client?.end()
    },
  }
}
