import type { Sql } from '../../db/pool.ts'
import {
  storeInboxAtOnce,
  storeInboxLeaseMs,
  storeInboxSweepMs,
  storeInboxTriesMax,
  storeInboxWaitMsMax,
} from '../../kernel/limits.ts'
import { endRow, postponeRow } from '../queue-store.ts'
import { backoffMs, repeat } from '../repeat.ts'
import { aboutOf, erasedBecause } from './about.ts'
import { isOfErased } from './dead-store.ts'
import { type InboxRow, takeInbox } from './inbox-store.ts'

const queue = 'store_inbox'

/** What became of one notification. */
export type Processed =
  | { kind: 'done' }
  | { kind: 'ignored'; why: string }
  /** `why` names no token. */
  | { kind: 'again'; why: string; afterMs?: number }
  | { kind: 'dead'; why: string }

export interface InboxOptions {
  sql: Sql
  process: (row: InboxRow) => Promise<Processed>
  log: { warn: (detail: object, words: string) => void; error: (detail: object, words: string) => void }
}

/**
 * Does what waiting notifications ask for, from any number of processes. One that cannot be done is tried again, ever more
 * seldom, and at last stays as a dead one, to be seen and replayed. Gives how many were looked at.
 */
export async function processDue({ sql, process, log }: InboxOptions): Promise<number> {
  const rows = await takeInbox(sql, { max: storeInboxAtOnce, leaseMs: storeInboxLeaseMs })
  await Promise.all(
    rows.map(async (row) => {
      const { id, attempts, store, kind, app_id } = row
      const about = { store, kind, app_id, notification: row.notification_id }
      const processed = await process(row).catch((error: unknown): Processed => {
        log.warn({ err: error, ...about }, 'a notification of a store could not be processed')
        return { kind: 'again', why: 'failed' }
      })
      if (processed.kind === 'again' && attempts < storeInboxTriesMax) {
        const waitMs = Math.max(processed.afterMs ?? 0, backoffMs(attempts, storeInboxWaitMsMax))
        await postponeRow(sql, queue, id, { waitMs, error: processed.why })
        return
      }
      if (processed.kind === 'done') return endRow(sql, queue, id, { status: 'done', error: null })
      if (processed.kind === 'ignored') return endRow(sql, queue, id, { status: 'ignored', error: processed.why })
      const place = { scopeId: row.scope_id, appId: app_id, store }
      if (await isOfErased(sql, place, aboutOf(row.payload))) {
        return endRow(sql, queue, id, { status: 'ignored', error: erasedBecause })
      }
      await endRow(sql, queue, id, { status: 'dead', error: processed.why })
      log.warn({ ...about, error: processed.why }, 'a notification of a store was given up')
    }),
  )
  return rows.length
}

/** Works on the inbox until it is disposed. */
export function startInbox(options: InboxOptions): AsyncDisposable {
  return repeat({
    work: () => processDue(options),
    pauseMs: storeInboxSweepMs,
    onError: (error) => options.log.warn({ err: error }, 'the notifications of stores could not be read'),
  })
}
