import type pg from 'pg'
import { type Pool, sqlState } from '../../db/pool.ts'
import { verb } from '../../db/verb.ts'
import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import type { Directory } from '../../tenancy/index.ts'
import type { Catalogues } from '../catalogue/catalogue.ts'
import { attempt, attemptLocked, held } from './consume-attempt.ts'
import { holdups } from './holdups.ts'
import { Changed, type ConsumeAnswer, type ConsumeCommand } from './slot.ts'

export interface ConsumeOptions {
  /** Pipelined connections with the ledger's settings; each of two lanes uses one at a time. */
  pool: Pool
  /** The same for the `accountWaitsAtOnce` customers whose accounts are waited for. */
  holdupPool: Pool
  catalogues: Catalogues
  directory: Directory
  tombstoneKey: Buffer
  clock: Clock
}

const attemptsMax = 3

/**
 * Spends units. Commands of one customer keep their order, share a lane and therefore a transaction; the answer is given
 * after COMMIT and saved, so that a retry of the operation gets the very same decision.
 *
 * Throws `operation_conflict`, `customer_deleted`, `feature_not_found`, and `billing_unavailable` when it can't decide.
 */
export function createConsume(options: ConsumeOptions): (command: ConsumeCommand) => Promise<ConsumeAnswer> {
  const queue = {
    itemsMax: 512,
    waitMsMax: 2000,
    now: () => options.clock.now(),
    overloaded: 'billing_unavailable',
  } as const
  const inLanes = verb<ConsumeCommand, ConsumeAnswer | typeof held>({
    ...queue,
    run: (commands) => options.pool.connected((client) => consumeBatch(options, client, commands)),
    // Two lanes measured better than one or four on two cores.
    lanes: 2,
    laneKey: customerKey,
    waitingMax: 20_000,
    waitingPerKeyMax: 1000,
  })
  const heldUp = holdups<ConsumeCommand, ConsumeAnswer>({
    ...queue,
    run: (commands) => options.holdupPool.connected((client) => consumeWaiting(options, client, commands)),
    lanes: 1,
    waitingMax: 1000,
  })
  return async (command) => {
    const key = customerKey(command)
    const answer = heldUp.has(key) ? held : await inLanes(command)
    return answer === held ? heldUp.add(key, command) : answer
  }
}

function customerKey({ scope, distinctId }: ConsumeCommand): string {
  return `${scope.scopeId} ${distinctId}`
}

/**
 * First without locks: load, decide, and write only if every account still has the version that was loaded. When somebody
 * came in between - another process, a grant, a merge, a published Feature - again under locks, as far as they are free.
 */
async function consumeBatch(
  options: ConsumeOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<(ConsumeAnswer | Refusal | typeof held)[]> {
  try {
    return await attempt(options, client, commands)
  } catch (error) {
    if (!cameBetween(error)) throw error
  }
  return untilSettled(options, commands, () => attemptLocked(options, client, commands, { wait: false }))
}

/** Commands of one customer, once whoever holds the accounts lets go of them. */
async function consumeWaiting(
  options: ConsumeOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<(ConsumeAnswer | Refusal)[]> {
  const answers = await untilSettled(options, commands, () => attemptLocked(options, client, commands, { wait: true }))
  return answers.map((answer) => {
    assert(answer !== held, 'every account was waited for')
    return answer
  })
}

/** A batch that does not settle is tried command by command: whatever stands in the way may concern one of them. */
async function untilSettled<T>(
  { directory }: ConsumeOptions,
  commands: ConsumeCommand[],
  work: () => Promise<T>,
): Promise<T> {
  let cause: unknown
  for (let attempts = 0; attempts < attemptsMax; attempts++) {
    await directory.refresh()
    try {
      return await work()
    } catch (error) {
      if (!cameBetween(error)) throw error
      cause = error
    }
  }
  throw commands.length > 1 ? cause : refuse('billing_unavailable', { retryAfterS: 1, cause })
}

/** 22012: a row count was not as expected. 23505: an operation was decided elsewhere. 55P03: an account is held. 40P01: a deadlock. */
const betweenStates = new Set(['22012', '23505', '55P03', '40P01'])

function cameBetween(error: unknown): boolean {
  return error instanceof Changed || betweenStates.has(sqlState(error) ?? '')
}
