import type { Tx } from '../db/pool.ts'
import { Refusal } from '../kernel/errors.ts'
import { StartError } from '../kernel/start-error.ts'
import { withDatabase } from './database.ts'

/**
 * Runs a change in one transaction, and says what it did once that is committed: `work` gives the words. What the modules
 * refuse is told in one line.
 */
export async function change(name: string, work: (tx: Tx) => Promise<() => void>): Promise<void> {
  await withDatabase(name, async ({ pool }) => {
    const say = await pool.transaction(work).catch((error: unknown) => {
      throw error instanceof Refusal ? new StartError(error.message) : error
    })
    say()
  })
}
