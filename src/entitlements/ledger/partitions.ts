import type { Pool, Tx } from '../../db/pool.ts'
import { createPartition, lockPartitions, partitionExists, selectMonth } from './partitions-store.ts'
import { selectOffsets } from './test-clock-store.ts'

/** The month before, because clocks are set back; and enough ahead to survive months without maintenance. */
const months = [-1, 0, 1, 2]

/** Makes the months of the ledger's entries that are missing. Safe to run often and from several processes at once. */
export async function ensureEntryPartitions(pool: Pool): Promise<void> {
  await pool.transaction(async (tx) => {
    for (const offsetMs of [0, ...(await selectOffsets(tx))]) await ensureMonths(tx, offsetMs)
  })
}

/** Around the present, or around that of a test environment whose time runs ahead. */
export async function ensureMonths(tx: Tx, offsetMs: number): Promise<void> {
  await lockPartitions(tx)
  for (const offset of months) {
    const month = await selectMonth(tx, offset, offsetMs)
    if (!(await partitionExists(tx, month.name))) await createPartition(tx, month)
  }
}
