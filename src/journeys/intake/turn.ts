import { survivorsOf } from '../../customers/index.ts'
import { isRetryable, type Pool } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { journeyRetryMsMax, journeyRetryMsMin, journeyTriesMax, timersAtOnce } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { ApplyServices } from '../apply/services.ts'
import { takeSweep } from '../manage/sweep.ts'
import { keepStarts } from '../store/starts-store.ts'
import type { Turn } from '../timers/run.ts'
import { consumeRows } from './consume.ts'
import type { InboxRow } from './inbox.ts'
import {
  deleteInbox,
  lockInbox,
  postpone,
  quarantine,
  readRow,
  selectInbox,
  selectScopesWithRows,
  type WaitingRow,
} from './inbox-store.ts'

/** Tells journeys what the lanes hand on: a batch of each lane. Any number may run: a lane has one at a time. */
export function createInboxTurn(options: Omit<BatchOptions, 'pool'>): Turn {
  const { clock } = options
  return async (pool) => {
    let more = false
    for (const scope of await selectScopesWithRows(pool, clock.now())) {
      more = (await takeBatch({ ...options, pool }, scope)) || more
    }
    return more
  }
}

/** Tells journeys of commands about their Experience. */
export function createSweepTurn({ clock, services }: Omit<BatchOptions, 'pool'>): Turn {
  return (pool) => takeSweep(pool, clock.now(), services)
}

interface BatchOptions {
  pool: Pool
  clock: Clock
  services: ApplyServices
}

/**
 * One batch of a lane's rows in one transaction. One that fails for good is looked for by halves, and tried again later; after
 * eight tries it makes way. True: there may be more.
 */
export async function takeBatch(options: BatchOptions, scope: Scope): Promise<boolean> {
  const { pool, clock, services } = options
  for (let limit = timersAtOnce; ; limit = Math.ceil(limit / 2)) {
    let rows: WaitingRow[] = []
    try {
      return await pool.transaction(async (tx) => {
        if (!(await lockInbox(tx, scope))) return false
        await keepStarts(tx, scope)
        const now = clock.now()
        rows = await selectInbox(tx, scope, { now, limit })
        if (rows.length === 0) return false
        const survivors = await survivorsOf(tx, scope, [...new Set(rows.map(({ customerId }) => customerId))])
        const present = new Map<InboxRow, WaitingRow>()
        for (const row of rows) {
          const survivor = survivors.get(row.customerId)
          // Whoever was deleted meanwhile is told nothing more.
          if (survivor !== undefined) present.set({ ...readRow(row), customerId: survivor }, row)
        }
        const done = new Set(await consumeRows(tx, scope, [...present.keys()], now, services))
        const left = new Set([...present].filter(([row]) => !done.has(row)).map(([, row]) => row))
        await deleteInbox(
          tx,
          scope,
          rows.filter((row) => !left.has(row)),
        )
        return true
      })
    } catch (error) {
      if (isRetryable(error) || error instanceof StaleSlice || rows.length === 0) throw error
      if (rows.length > 1) continue
      await setAside(options, scope, rows[0], error)
      return true
    }
  }
}

async function setAside(
  { pool, clock, services: { log } }: BatchOptions,
  scope: Scope,
  row: WaitingRow | undefined,
  error: unknown,
): Promise<void> {
  if (!row) return
  const now = clock.now()
  const { customerId, pos, attempts } = row
  const isLast = attempts + 1 >= journeyTriesMax
  await pool.transaction((tx) =>
    isLast
      ? quarantine(tx, scope, row, { error: String(error), now })
      : postpone(tx, scope, row, now + Math.min(journeyRetryMsMin * 2 ** attempts, journeyRetryMsMax)),
  )
  const { scopeId } = scope
  const words = isLast
    ? 'journeys cannot be told of something: it was set aside'
    : 'journeys are told of something later'
  log[isLast ? 'error' : 'warn']({ err: error, scopeId, customerId, pos: String(pos) }, words)
}
