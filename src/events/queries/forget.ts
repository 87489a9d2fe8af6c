import type { Pool, Tx } from '../../db/pool.ts'
import { exportKeptMs, queryAnswerKeptMs } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { deleteExports, eraseExports } from './export-store.ts'
import { deleteQueries, eraseQueries } from './later-store.ts'

/** Deletes exports and answers that were kept for as long as was promised. */
export async function forgetEventAnswers(pool: Pool): Promise<void> {
  await deleteExports(pool, { olderThanMs: exportKeptMs })
  await deleteQueries(pool, { olderThanMs: queryAnswerKeptMs })
}

/**
 * Deletes what was made of a scope's events before a customer of it was deleted: files may hold their events, answers their
 * names. Exports under way begin again, questions under way fail. True: nothing is left.
 */
export async function eraseEventAnswers(tx: Tx, scope: Scope): Promise<boolean> {
  await eraseExports(tx, scope)
  await eraseQueries(tx, scope)
  return true
}
