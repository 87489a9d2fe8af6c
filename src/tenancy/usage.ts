import type { Logger } from 'pino'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { usageFlushMs } from '../kernel/limits.ts'
import { addUsage, type UsageIncrement } from './usage-store.ts'

export type Used = 'requests' | 'events' | 'decisions'

/**
 * Counts what each scope is used for, in memory, and adds it to the day's row every few seconds and at the end. Whoever is
 * killed loses what was counted since; a commit whose answer was lost may count twice.
 */
export class UsageTally implements AsyncDisposable {
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #log: Logger
  readonly #timer: NodeJS.Timeout
  #counted = new Map<number, Record<Used, number>>()
  #flushing: Promise<void> = Promise.resolve()

  constructor(pool: Pool, clock: Clock, log: Logger) {
    this.#pool = pool
    this.#clock = clock
    this.#log = log
    this.#timer = setInterval(() => void this.flush(), usageFlushMs)
    this.#timer.unref()
  }

  add(scopeId: number, what: Used, count = 1): void {
    const counts = this.#counted.get(scopeId)
    if (counts) counts[what] += count
    else this.#counted.set(scopeId, { requests: 0, events: 0, decisions: 0, [what]: count })
  }

  /** Adds what was counted to the day it is now. What can't be written is counted again. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  async #write(): Promise<void> {
    const counted = this.#counted
    if (counted.size === 0) return
    this.#counted = new Map()
    try {
      await addUsage(this.#pool, incrementsOf(counted, this.#clock.now()))
    } catch (error) {
      this.#log.warn({ err: error }, 'usage could not be added; it is kept for the next time')
      for (const [scopeId, counts] of counted) {
        for (const what of ['requests', 'events', 'decisions'] as const) this.add(scopeId, what, counts[what])
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}

function incrementsOf(counted: Map<number, Record<Used, number>>, now: number): UsageIncrement[] {
  const day = new Date(now).toISOString().slice(0, 10)
  return Array.from(counted, ([scopeId, { requests, events, decisions }]) => {
    return { scopeId, day, requests: BigInt(requests), events: BigInt(events), decisions: BigInt(decisions) }
  })
}
