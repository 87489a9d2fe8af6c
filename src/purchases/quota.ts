import { hash } from 'node:crypto'
import type { Sql } from '../db/pool.ts'
import { storeCallsAtOnce } from '../kernel/limits.ts'
import { takeCalls } from './quota-store.ts'

/** What a store lets one credential ask in a minute. */
export interface Allowed {
  /** Names the credential; it is kept as a hash. */
  name: string
  perMinute: number
}

export interface Quota {
  /** The right to one call, of all processes together. Background work leaves half of it to clients. */
  take: (allowed: Allowed, priority: 'client' | 'background') => Promise<boolean>
}

/** The bucket lies in the database. A process takes a handful at a time, so that few calls wait for it. */
export function createQuota(sql: Sql): Quota {
  const inHand = { client: new Map<string, Promise<number>>(), background: new Map<string, Promise<number>>() }

  async function refill(key: string, { perMinute }: Allowed, leave: number): Promise<number> {
    for (const count of [storeCallsAtOnce, 1]) {
      const taken = await takeCalls(sql, { key, perMinute, leave, count })
      if (taken.length > 0) return count
    }
    return 0
  }

  return {
    async take(allowed, priority) {
      const key = hash('sha256', allowed.name)
      const hands = inHand[priority]
      const leave = priority === 'client' ? 0 : allowed.perMinute / 2
      // One after the other: each caller sees what the one before left.
      const before = hands.get(key) ?? Promise.resolve(0)
      let got = false
      const after = before
        .catch(() => 0)
        .then(async (left) => {
          const available = left > 0 ? left : await refill(key, allowed, leave)
          got = available > 0
          return Math.max(0, available - 1)
        })
      hands.set(key, after)
      await after
      return got
    },
  }
}
