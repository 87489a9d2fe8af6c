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
 * It is a hint: up to a minute old, and the id that the customer would be born with whenever the database is not quick to
 * answer. No event fails or waits for it.
 */
export function createCustomerIdHint({ pool, clock }: { pool: Pool; clock: Clock }): CustomerIdHint {
  const remembered = new LRUCache<string, string>({
    max: customerHintsMax,
    ttl: customerHintTtlMs,
    ttlResolution: 1000,
  })

  const ask = coalesce<Question, string | null>({
    run: (questions) => selectCustomerIds(pool, questions),
    lanes: 2,
    itemsMax: customerHintBatchMax,
    waitingMax: customerHintWaitingMax,
    waitMsMax: customerHintMsMax,
    now: () => clock.now(),
    splitOn: () => false,
  })

  function lookUp(key: string, question: Question): Promise<string> {
    const birthId = wireCustomerId(customerIdFor(question.scope, question.distinctId, 0))
    const answer = ask(question).then((customerId) => {
      const hint = customerId === null ? birthId : wireCustomerId(customerId)
      remembered.set(key, hint)
      return hint
    })
    return inTime(answer, birthId)
  }

  return (scope, distinctId) => {
    const key = `${scope.scopeId}\0${distinctId}`
    return remembered.get(key) ?? lookUp(key, { scope, distinctId })
  }
}

/**
 * The answer, or the fallback when there is none in time. The look-up is not given up: while the database is slow, no more
 * of them run than there are lanes.
 */
function inTime<T>(answer: Promise<T>, fallback: T): Promise<T> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, customerHintMsMax, fallback)
    const settle = (value: T) => {
      clearTimeout(timer)
      resolve(value)
    }
    answer.then(settle, () => settle(fallback))
  })
}
