import type { Pool } from '../../db/pool.ts'
import { Refusal } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { queryAnswerKeptMs, queryLaterMsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Log } from '../types.ts'
import { finishQuery, insertQuery, type LaterQuery, selectQuery } from './later-store.ts'

/** An id for a query. */
export function newQueryId(): string {
  return newId('eq')
}

/** Runs `work` after the answer, and keeps what it gives for a day. What it throws is kept as the query's error. */
export async function answerLater(
  { pool, log }: { pool: Pool; log: Log },
  scope: Scope,
  id: string,
  work: () => Promise<object>,
): Promise<void> {
  await insertQuery(pool, scope, id)
  const finish = (end: Omit<LaterQuery, 'id'>) =>
    finishQuery(pool, { id, ...end }).catch((error: unknown) => {
      log.error({ err: error, id }, 'the answer of a query could not be kept')
    })
  void work().then(
    (result) => finish({ status: 'completed', result: JSON.stringify(result), error: null }),
    (error: unknown) => {
      if (!(error instanceof Refusal)) log.error({ err: error, id }, 'a query failed')
      const { code, message } =
        error instanceof Refusal ? error : { code: 'internal_error', message: 'Something went wrong on our side.' }
      return finish({ status: 'failed', result: null, error: { code, message } })
    },
  )
}

/** A query whose answer is fetched later, for a day. */
export function getLater(pool: Pool, scopes: readonly Scope[], id: string): Promise<LaterQuery | undefined> {
  const scopeIds = scopes.map(({ scopeId }) => scopeId)
  // It ends within its time; as much again for a process that is too busy to note it.
  return selectQuery(pool, scopeIds, { id, runsMsMax: 2 * queryLaterMsMax, keptMs: queryAnswerKeptMs })
}
