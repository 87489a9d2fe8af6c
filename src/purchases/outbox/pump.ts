import type { Sql } from '../../db/pool.ts'
import { storeOutboxAtOnce, storeOutboxLeaseMs, storeOutboxSweepMs, storeOutboxWaitMsMax } from '../../kernel/limits.ts'
import { endRow, postponeRow } from '../queue-store.ts'
import { backoffMs, type Repeated, repeat } from '../repeat.ts'
import { type OutboxRow, takeOutbox } from './outbox-store.ts'

const queue = 'store_outbox'

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
        const waitMs = told.afterMs ?? backoffMs(attempts, storeOutboxWaitMsMax)
        await postponeRow(sql, queue, id, { waitMs, error: told.error })
        if (attempts >= warnAfterTries)
          log.warn({ kind, store, app_id, attempts, error: told.error }, 'a store was not told yet')
      } else {
        const isDone = told.kind === 'done'
        await endRow(sql, queue, id, isDone ? { status: 'done', error: null } : { status: 'dead', error: told.error })
        if (!isDone) log.warn({ kind, store, app_id, error: told.error }, 'a store can not be told any more')
      }
    }),
  )
  return rows.length
}

/** Fewer are everyday: the store was busy. */
const warnAfterTries = 5

/** Looks at once when it is woken, instead of within half a second. */
export function startPump(options: PumpOptions): Repeated {
  return repeat({
    work: () => tellDue(options),
    pauseMs: storeOutboxSweepMs,
    onError: (error) => options.log.warn({ err: error }, 'what stores have to be told could not be read'),
  })
}
