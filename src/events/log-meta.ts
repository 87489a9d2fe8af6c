import type { Pool, Tx } from '../db/pool.ts'
import { isOtherCluster, lockLogMeta, noteTransactionId, raiseGeneration } from './log-meta-store.ts'

/**
 * Call at start, before anything is appended. Transaction ids start again when the database is restored from a dump into
 * another cluster; the log's order then goes on in a new generation. Gives the generation. Processes that ran through such
 * a restore must be started again.
 */
export async function checkLogMeta(pool: Pool): Promise<number> {
  return pool.transaction(async (tx) => {
    const meta = await lockLogMeta(tx)
    if (isOtherCluster(meta)) return raiseGeneration(tx, meta)
    await noteTransactionId(tx, meta)
    return meta.gen
  })
}

/** Call in the transaction that restores a backup, whatever ids its log carries: they end before those of the new cluster begin. */
export async function beginGeneration(tx: Tx): Promise<number> {
  return raiseGeneration(tx, await lockLogMeta(tx))
}
