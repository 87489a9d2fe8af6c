import type pg from 'pg'
import { type Pool, sqlState, type Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { Refusal } from '../../kernel/errors.ts'
import { accountWaitMsMax } from '../../kernel/limits.ts'
import type { Directory } from '../../tenancy/index.ts'
import { stateOf } from '../engine/state.ts'
import { type AttemptOptions, attemptWithin, lookUp } from './consume-attempt.ts'
import { Changed, type ConsumeAnswer, type ConsumeCommand } from './slot.ts'
import { notePurchase } from './usage-write-store.ts'

export interface PaidSpendOptions extends AttemptOptions {
  pool: Pool
  directory: Directory
}

/** A spend whose purchase is attached by the same transaction. */
export type PaidCommand = ConsumeCommand & { purchaseKey: string }

export interface PaidSpends {
  /**
   * The answer where no purchase has to be looked at: a saved one, or a denial that no purchase changes, which is saved.
   * Otherwise undefined. Throws `customer_deleted`, `operation_conflict`, `feature_not_found`.
   */
  answerWithoutPurchase: (command: PaidCommand) => Promise<ConsumeAnswer | undefined>
  /** Decides and saves in the caller's transaction, behind what the caller has attached in it. Throws as above, and `Changed`. */
  spend: (tx: Tx, command: PaidCommand) => Promise<ConsumeAnswer>
}

const attemptsMax = 3

/** Spends that come with a purchase: one at a time, apart from the coalesced ones, since each waits for a store. */
export function createPaidSpends(options: PaidSpendOptions): PaidSpends {
  return {
    async answerWithoutPurchase(command) {
      const slot = await options.pool.connected((client) =>
        untilLoaded(options, () => lookUp(options, client, command)),
      )
      if (slot.answer) return answerOf(slot.answer)
      const { inquiry, holder } = slot
      const feature = must(inquiry.feature, 'unknown Features were answered')
      const caller = { now: 0, accounts: holder.accounts, platform: command.scope.platform, entity: command.entityId }
      const isSpendable = feature.type !== 'boolean' && stateOf(inquiry.catalogue, feature, caller).applies
      if (isSpendable || holder.customerId === undefined) return undefined
      return options.pool.transaction((tx) => spend(options, tx, command))
    },
    spend: (tx, command) => spend(options, tx, command),
  }
}

/** Whether a transaction that threw this may succeed when it is tried again. */
export function isChanged(error: unknown): boolean {
  // 22012: a version guard of the ledger.
  return error instanceof Changed || sqlState(error) === '22012'
}

async function spend(options: PaidSpendOptions, tx: Tx, command: PaidCommand): Promise<ConsumeAnswer> {
  await tx.query(`set local lock_timeout = '${accountWaitMsMax}ms'`)
  const answer = answerOf(await untilLoaded(options, () => attemptWithin(options, tx.client, command)))
  if (!answer.replay) await markPaid(tx.client, command)
  return answer
}

function markPaid(client: pg.PoolClient, { scope, operationId, purchaseKey }: PaidCommand): Promise<void> {
  return notePurchase(client, { scopeId: scope.scopeId, operationId, purchaseKey })
}

/** Nothing is written before everything is loaded, but for accounts that were missing. */
async function untilLoaded<T>({ directory }: PaidSpendOptions, work: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Changed) || attempts === attemptsMax) throw error
      await directory.refresh()
    }
  }
}

function answerOf(answer: ConsumeAnswer | Refusal): ConsumeAnswer {
  if (answer instanceof Refusal) throw answer
  return answer
}
