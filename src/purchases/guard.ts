import { LRUCache } from 'lru-cache'
import {
  customerPurchasesPerMinute,
  evidenceBurst,
  evidenceEveryMs,
  evidenceRestMs,
  purchaseGuardsMax,
} from '../kernel/limits.ts'

/** Keeps one process from asking a store the same thing over and over. In memory: it spares work, it decides nothing. */
export interface Guard {
  /** Seconds to wait, or 0. Counts the try. */
  enter: (evidence: string, customer: string) => number
  /** The evidence was refused for good: it rests a while. */
  rest: (evidence: string) => void
}

interface Bucket {
  tokens: number
  at: number
}

export function createGuard(now: () => number): Guard {
  const evidences = new LRUCache<string, Bucket & { restsUntil: number }>({ max: purchaseGuardsMax })
  const customers = new LRUCache<string, Bucket>({ max: purchaseGuardsMax })
  const perCustomerMs = 60_000 / customerPurchasesPerMinute
  return {
    enter(evidence, customer) {
      const at = now()
      const own = evidences.get(evidence) ?? { tokens: evidenceBurst, at, restsUntil: 0 }
      const whose = customers.get(customer) ?? { tokens: customerPurchasesPerMinute, at }
      evidences.set(evidence, own)
      customers.set(customer, whose)
      if (own.restsUntil > at) return seconds(own.restsUntil - at)
      refill(own, at, { everyMs: evidenceEveryMs, max: evidenceBurst })
      refill(whose, at, { everyMs: perCustomerMs, max: customerPurchasesPerMinute })
      if (own.tokens < 1) return seconds((1 - own.tokens) * evidenceEveryMs)
      if (whose.tokens < 1) return seconds((1 - whose.tokens) * perCustomerMs)
      own.tokens--
      whose.tokens--
      return 0
    },
    rest(evidence) {
      const own = evidences.get(evidence)
      if (own) own.restsUntil = now() + evidenceRestMs
    },
  }
}

function refill(bucket: Bucket, at: number, { everyMs, max }: { everyMs: number; max: number }): void {
  bucket.tokens = Math.min(max, bucket.tokens + Math.max(0, at - bucket.at) / everyMs)
  bucket.at = at
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}
