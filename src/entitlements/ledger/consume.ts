import type pg from 'pg'
import { type Pool, sqlState } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import type { Directory } from '../../tenancy/index.ts'
import type { Catalogues } from '../catalogue/catalogue.ts'
import { attempt, attemptLocked } from './consume-attempt.ts'
import { Changed, type ConsumeAnswer, type ConsumeCommand } from './slot.ts'
import { verb } from './verb.ts'

export interface ConsumeOptions {
  /** Pipelined connections with the ledger's settings; each lane uses one at a time. */
  pool: Pool
  catalogues: Catalogues
  directory: Directory
  tombstoneKey: Buffer
  clock: Clock
}

const lockedAttemptsMax = 3

/**
 * Spends units. Commands of one customer keep their order, share a lane and therefore a transaction; the answer is given
 * after COMMIT and saved, so that a retry of the operation gets the very same decision.
 *
 * Throws `operation_conflict`, `customer_deleted`, `feature_not_found`, and `billing_unavailable` when it can't decide.
 */
export function createConsume(options: ConsumeOptions): (command: ConsumeCommand) => Promise<ConsumeAnswer> {
  return verb<ConsumeCommand, ConsumeAnswer>({
    run: (commands) => options.pool.connected((client) => consumeBatch(options, client, commands)),
    // Two lanes measured better than one or four on two cores.
    lanes: 2,
    laneKey: (command) => `${command.scope.scopeId} ${command.distinctId}`,
    itemsMax: 512,
    waitingMax: 20_000,
    waitingPerKeyMax: 1000,
    waitMsMax: 2000,
    now: () => options.clock.now(),
    overloaded: 'billing_unavailable',
  })
}

/**
 * First without locks: load, decide, and write only if every account still has the version that was loaded. When somebody
 * came in between - another process, a grant, a merge, a published Feature - again under locks.
 */
async function consumeBatch(
  options: ConsumeOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<(ConsumeAnswer | Refusal)[]> {
  try {
    return await attempt(options, client, commands)
  } catch (error) {
    if (!cameBetween(error)) throw error
  }
  for (let tries = 0; tries < lockedAttemptsMax; tries++) {
    await options.directory.refresh()
    try {
      return await attemptLocked(options, client, commands)
    } catch (error) {
      if (!cameBetween(error)) throw error
    }
  }
  throw refuse('billing_unavailable', { retryAfterS: 1 })
}

/** 22012: a row count was not as expected. 23505: an operation was decided elsewhere. 55P03: an account is held. 40P01: a deadlock. */
const betweenStates = new Set(['22012', '23505', '55P03', '40P01'])

function cameBetween(error: unknown): boolean {
  return error instanceof Changed || betweenStates.has(sqlState(error) ?? '')
}
