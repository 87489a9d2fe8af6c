import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../../db/pool.ts'
import { storeOutboxAtOnce, storeOutboxLeaseMs, storeOutboxSweepMs, storeOutboxWaitMsMax } from '../../kernel/limits.ts'
import { endOutbox, type OutboxRow, postponeOutbox, takeOutbox } from './outbox-store.ts'

/** How telling a store went. */
export type Told =
  | { kind: 'done' }
  /** `error` names no token and no address. */
  | { kind: 'again'; error: string; afterMs?: number }
  /** There is nothing left to tell. */
  | { kind: 'given_up'; error: string }

export type Teller = (row: OutboxRow) => Promise<Told>

export interface PumpOptions {
  sql: Sql
  tell: Teller
  log: { warn: (detail: object, words: string) => void; error: (detail: object, words: string) => void }
}

/** Tells stores what was committed, from any number of processes: each thing at least once, until the store has taken it. */
export async function tellDue({ sql, tell, log }: PumpOptions): Promise<number> {
  const rows = await takeOutbox(sql, { max: storeOutboxAtOnce, leaseMs: storeOutboxLeaseMs })
  await Promise.all(
    rows.map(async (row) => {
      const { id, kind, store, attempts, app_id } = row
      const told = await tell(row).catch((error: unknown): Told => {
        log.error({ err: error, kind, store, app_id }, 'a store could not be told')
        return { kind: 'again', error: 'failed' }
      })
      if (told.kind === 'again') {
        await postponeOutbox(sql, id, { waitMs: told.afterMs ?? waitMs(attempts), error: told.error })
        if (attempts >= warnAfterTries)
          log.warn({ kind, store, app_id, attempts, error: told.error }, 'a store was not told yet')
      } else {
        const isDone = told.kind === 'done'
        await endOutbox(sql, id, isDone ? { status: 'done', error: null } : { status: 'dead', error: told.error })
        if (!isDone) log.warn({ kind, store, app_id, error: told.error }, 'a store can not be told any more')
      }
    }),
  )
  return rows.length
}

/** Fewer are everyday: the store was busy. */
const warnAfterTries = 5

function waitMs(attempts: number): number {
  return Math.min(1000 * 2 ** (attempts - 1), storeOutboxWaitMsMax)
}

export interface Pump extends AsyncDisposable {
  /** Looks at once, instead of within half a second. */
  wake: () => void
}

export function startPump(options: PumpOptions): Pump {
  const stop = new AbortController()
  let early = new AbortController()

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      const told = await tellDue(options).catch((error: unknown) => {
        options.log.warn({ err: error }, 'what stores have to be told could not be read')
        return 0
      })
      if (told === 0) await pause()
    }
  }

  async function pause(): Promise<void> {
    early = new AbortController()
    await sleep(storeOutboxSweepMs, undefined, { signal: AbortSignal.any([stop.signal, early.signal]) }).catch(() => {})
  }

  const running = run()
  return {
    wake: () => early.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}
