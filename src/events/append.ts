import { coalesce } from '../db/batch.ts'
import { isRetryable, Pool } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { Refusal, refuse } from '../kernel/errors.ts'
import {
  appendGroupBytesMax,
  appendGroupEventsMax,
  appendStatementMsMax,
  appendWaitingBytesMax,
  appendWaitingEventsMax,
  appendWaitMsMax,
} from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'
import { type Appending, appendEvents, appendSettings } from './append-store.ts'
import { type LogStats, logCounts } from './log-counts.ts'
import type { NewEvent, Origin, Stream } from './types.ts'
import { createWake } from './wake.ts'

export interface LogOptions {
  url: string
  tombstoneKey: Buffer
  clock: Clock
  /** Throws while no events may be taken. */
  guard?: () => void
  /** For tests. */
  limits?: { waitingEventsMax: number; waitingBytesMax: number; waitMsMax: number }
}

/** `deleted`: not stored, because the customer of its distinct id was deleted. */
export type AppendResult = 'accepted' | 'deleted'

export interface EventLog extends AsyncDisposable {
  /** Resolves after COMMIT. Throws 503 `service_unavailable` when nothing is known to be stored; the retry is harmless. */
  append: (origin: Origin, event: NewEvent) => Promise<AppendResult>
  /**
   * Stores a batch in one transaction; results in the given order. `historical` events go to the lane's second stream in
   * the order of their timestamps, those of equal time in the given order.
   */
  appendBatch: (origin: Origin, events: readonly NewEvent[], to: { stream: Stream }) => Promise<AppendResult[]>
  stats: () => LogStats
}

/** More writers make smaller groups; two keep the next group moving while one waits for the disk. */
const writers = { single: 1, batch: 2 } as const
/** Of what may wait in the process: a batch takes a thousand events at once, singles need a connection for each. */
const share = { single: 1 / 4, batch: 3 / 4 } as const

/** The durable log. Single events and batches have writers and connections of their own, so neither waits for the other. */
export function createLog({ url, tombstoneKey, clock, guard = () => {}, limits }: LogOptions): EventLog {
  const { waitingEventsMax, waitingBytesMax, waitMsMax } = limits ?? usualLimits
  const counts = logCounts(clock)
  const settings = { ...appendSettings, statement_timeout: `${appendStatementMsMax}ms` }
  // One connection more than writers: the one that wakes lanes.
  const single = new Pool(url, { name: 'append', max: writers.single + 1, settings })
  const batch = new Pool(url, { name: 'append batch', max: writers.batch, settings })
  const wake = createWake(single)
  /** What an event weighs at least, so that one number bounds the waiting batches by events and by bytes. */
  const eventShare = waitingBytesMax / waitingEventsMax

  async function store(pool: Pool, items: readonly Appending[]): Promise<AppendResult[]> {
    const deleted = await pool.connected((client) => appendEvents(client, tombstoneKey, items)).catch(rethrow)
    for (const scopeId of new Set(items.map(({ origin }) => origin.scopeId))) wake(scopeId)
    return items.map((_, i) => (deleted.has(i) ? 'deleted' : 'accepted'))
  }

  const waiting = {
    waitMsMax,
    batchWeightMax: appendGroupBytesMax,
    now: () => clock.now(),
    splitOn: (error: unknown) => !(error instanceof Refusal),
  }
  const addEvent = coalesce<Appending, AppendResult>({
    ...waiting,
    run: (items) => {
      counts.group(items.length)
      return store(single, items)
    },
    lanes: writers.single,
    itemsMax: appendGroupEventsMax,
    waitingMax: waitingEventsMax * share.single,
    weightMax: waitingBytesMax * share.single,
    weigh: ({ event }) => event.text.length,
  })
  const addBatch = coalesce<readonly Appending[], AppendResult[]>({
    ...waiting,
    run: async (batches) => cut(await store(batch, batches.flat()), batches),
    lanes: writers.batch,
    itemsMax: appendGroupEventsMax,
    waitingMax: waitingEventsMax * share.batch,
    weightMax: waitingBytesMax * share.batch,
    weigh: (items) => Math.max(items.length * eventShare, bytesOf(items)),
  })

  return {
    async append(origin, event) {
      guard()
      return counts.timed(1, addEvent({ origin, stream: 'live', event }))
    },
    async appendBatch(origin, events, { stream }) {
      if (events.length === 0) return []
      guard()
      const add = (items: readonly NewEvent[]) =>
        counts.timed(items.length, addBatch(items.map((event) => ({ origin, stream, event }))))
      if (stream === 'live') return add(events)
      const order = byTime(events)
      const results = await add(order.map(({ event }) => event))
      const inGivenOrder = new Array<AppendResult>(events.length)
      for (const [at, { i }] of order.entries()) inGivenOrder[i] = must(results[at], 'every event has a result')
      return inGivenOrder
    },
    stats: counts.read,
    async [Symbol.asyncDispose]() {
      await Promise.all([single[Symbol.asyncDispose](), batch[Symbol.asyncDispose]()])
    },
  }
}

const usualLimits = {
  waitingEventsMax: appendWaitingEventsMax,
  waitingBytesMax: appendWaitingBytesMax,
  waitMsMax: appendWaitMsMax,
}

function bytesOf(items: readonly Appending[]): number {
  let bytes = 0
  for (const { event } of items) bytes += event.text.length
  return bytes
}

/** By timestamp, stable, each with its place in the given order. */
function byTime(events: readonly NewEvent[]): { event: NewEvent; i: number }[] {
  return events.map((event, i) => ({ event, i })).toSorted((a, b) => a.event.at - b.event.at || a.i - b.i)
}

/** The results of each batch out of those of all. */
function cut(results: AppendResult[], batches: readonly (readonly Appending[])[]): AppendResult[][] {
  let start = 0
  return batches.map(({ length }) => {
    start += length
    return results.slice(start - length, start)
  })
}

/** A connection lost at COMMIT leaves it open whether the group was stored: 503 as well, since a retry is deduplicated. */
function rethrow(error: unknown): never {
  if (!isRetryable(error)) throw error
  throw refuse('service_unavailable', { retryAfterS: retryAfterS(), cause: error })
}
