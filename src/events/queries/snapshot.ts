import { asTx, type Pool, sqlState, type Tx } from '../../db/pool.ts'
import { pipeline } from '../../db/raw.ts'
import { refuse } from '../../kernel/errors.ts'
import { queryMsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Freshness, freshness } from '../freshness.ts'
import { beginSnapshot, cancelWork, type Seen, selectSeen } from './store.ts'

export interface Opened extends Seen {
  tx: Tx
  freshness: Freshness
}

export interface SnapshotOptions {
  scope: Scope
  /** For each statement, unless `read` says otherwise. */
  msMax?: number
  /** Ends the statement that runs, by a connection of `by`. */
  cancel?: { signal: AbortSignal; by: Pool }
}

/**
 * Reads that see one state and change nothing, so that they hold no lane back. Beginning, freshness and what was seen are
 * sent as one piece. Throws `query_timeout` when a statement takes too long: it asked for something no index finds.
 */
export async function snapshot<T>(
  pool: Pool,
  { scope, msMax = queryMsMax, cancel }: SnapshotOptions,
  read: (opened: Opened) => Promise<T>,
): Promise<T> {
  const work = pool.connected(async (client) => {
    const tx = asTx(client)
    try {
      // In this order: freshness may not speak of a state that is newer than what is read.
      const [, fresh, seen] = await pipeline(client, () => [
        beginSnapshot(tx, msMax),
        freshness(tx, scope),
        selectSeen(tx, scope),
      ])
      if (cancel?.signal.aborted) throw refuse('query_timeout', { retryAfterS: 60 })
      const ended = cancel && cancelling(cancel, seen.processId)
      try {
        return await read({ tx, freshness: fresh, ...seen })
      } finally {
        await ended?.()
      }
    } finally {
      // Of a transaction that failed it means the same.
      await client.query('commit')
    }
  })
  return work.catch((error: unknown) => {
    throw sqlState(error) === canceled ? refuse('query_timeout', { retryAfterS: 60, cause: error }) : error
  })
}

const canceled = '57014'

/** Gives what is to be waited for before the connection does anything else: a late cancellation would end that. */
function cancelling({ signal, by }: { signal: AbortSignal; by: Pool }, processId: number): () => Promise<void> {
  let sent: Promise<void> | undefined
  const send = () => {
    // What cannot be cancelled ends at its limit of time.
    sent ??= cancelWork(by, processId).catch(() => {})
  }
  signal.addEventListener('abort', send)
  return async () => {
    signal.removeEventListener('abort', send)
    await sent
  }
}
