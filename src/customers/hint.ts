import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { coalesce } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import {
  customerHintBatchMax,
  customerHintMsMax,
  customerHintsMax,
  customerHintTtlMs,
  customerHintWaitingMax,
} from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor, wireCustomerId } from './customer-id.ts'
import { selectCustomerIds } from './hint-store.ts'

/** Tells which customer (`cus_…`) an event will probably belong to: at once when it is remembered, else as a promise. */
export type CustomerIdHint = (scope: Scope, distinctId: string) => string | Promise<string>

interface Question {
  scope: Scope
  distinctId: string
}

/**
 * It is a hint: a few seconds old, and the id that the customer would be born with whenever the database is not quick to
 * answer. No event fails or waits for it.
 */
export function createCustomerIdHint({ pool, clock }: { pool: Pool; clock: Clock }): CustomerIdHint {
  const remembered = new LRUCache<string, string>({ max: customerHintsMax, ttl: customerHintTtlMs })

  const ask = coalesce<Question, string | null>({
    run: (questions) => inTime(selectCustomerIds(pool, questions)),
    lanes: 2,
    itemsMax: customerHintBatchMax,
    waitingMax: customerHintWaitingMax,
    waitMsMax: customerHintMsMax,
    now: () => clock.now(),
    splitOn: () => false,
  })

  async function lookUp(key: string, question: Question): Promise<string> {
    const birthId = wireCustomerId(customerIdFor(question.scope, question.distinctId, 0))
    try {
      const customerId = await ask(question)
      const hint = customerId === null ? birthId : wireCustomerId(customerId)
      remembered.set(key, hint)
      return hint
    } catch {
      return birthId
    }
  }

  return (scope, distinctId) => {
    const key = `${scope.scopeId}\0${distinctId}`
    return remembered.get(key) ?? lookUp(key, { scope, distinctId })
  }
}

/** Gives up waiting, not the query: its connection ends it by its own time limit. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const done = new AbortController()
  const tooLate = sleep(customerHintMsMax, null, { signal: done.signal }).then(() => {
    throw new Error('the look-up took too long')
  })
  try {
    return await Promise.race([answer, tooLate])
  } finally {
    done.abort()
  }
}
