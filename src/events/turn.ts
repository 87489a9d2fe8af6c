import { isRetryable } from '../db/pool.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import {
  deadTryPauseMs,
  laneBackoffMsMax,
  laneLeaseMs,
  laneStoppedMs,
  laneUnsafeWaitMsMax,
  smallSliceEvents,
  smallSliceEveryMs,
  staleTurnsMax,
} from '../kernel/limits.ts'
import type { Ahead } from './ahead.ts'
import { type Breaker, closed, halfOpen, reasonToStop, rowDied, rowsApplied } from './breaker.ts'
import { bury } from './bury.ts'
import { acquireLane, forgetStop, type HeldLane } from './lane-store.ts'
import { PoisonedSlice } from './poison.ts'
import { afterFailure, afterSuccess, isFound, type Search, sliceRows } from './search.ts'
import { applySlice, type SliceCounts, type SliceWork } from './slice.ts'
import { type EventOutcome, type Log, StaleSlice, type Stream } from './types.ts'

/** A slice that was committed. */
export interface SliceReport extends SliceCounts {
  scopeId: number
  stream: Stream
  ms: number
}

/** What a worker remembers of a lane between its turns. None of it is needed to go on elsewhere. */
export interface LaneMemory {
  id: number
  held: HeldLane | null
  /** By the process clock. The database decides; this only spares asking it. */
  heldUntil: number
  turns: number
  /** Turns in a row that failed, were stale, or found rows that are not safe to take yet. */
  failures: number
  stale: number
  unsafe: number
  /** For the row that a slice of the stream fails on. */
  searches: Record<Stream, Search | null>
  breaker: Breaker
  /** For the next turn only. */
  ahead: Ahead | null
}

export function forgetful(id: number): LaneMemory {
  return {
    ...{ id, held: null, heldUntil: 0, turns: 0, failures: 0, stale: 0, unsafe: 0 },
    ...{ searches: { live: null, historical: null }, breaker: closed, ahead: null },
  }
}

/** When the lane wants its next turn; `idle`: when it is woken. */
export type Next = { kind: 'at_once' | 'idle' } | { kind: 'later'; ms: number }

export interface TurnOptions<State, Decision extends { outcomes: EventOutcome[] }> {
  work: SliceWork<State, Decision>
  owner: string
  clock: Clock
  log: Log
  observe: (slice: SliceReport) => void
  /** Whether no other lane waits for its turn: then the next slice may be read already. So few lanes at a time hold rows. */
  isAlone: () => boolean
}

/** One turn of a lane: a slice of live events; of historical ones when there are none, and first at every tenth turn. */
export async function takeTurn<State, Decision extends { outcomes: EventOutcome[] }>(
  options: TurnOptions<State, Decision>,
  lane: LaneMemory,
): Promise<Next> {
  try {
    return await tryTurn(options, lane).catch((error: unknown) => {
      if (error instanceof PoisonedSlice) return isolate(options, lane, error)
      throw error
    })
  } catch (error) {
    if (error instanceof StaleSlice && lane.stale < staleTurnsMax) {
      lane.stale++
      return { kind: 'at_once' }
    }
    // Whether a COMMIT that failed was one after all is seen by reading the lane again.
    lane.held = null
    const ms = Math.min(50 * 2 ** lane.failures++, laneBackoffMsMax)
    const expected = error instanceof StaleSlice || isRetryable(error)
    options.log[expected ? 'warn' : 'error']({ err: error, scopeId: lane.id, ms }, 'a slice failed and is tried again')
    return { kind: 'later', ms }
  }
}

async function tryTurn<State, Decision extends { outcomes: EventOutcome[] }>(
  options: TurnOptions<State, Decision>,
  lane: LaneMemory,
): Promise<Next> {
  const { work, owner, clock } = options
  const startedAt = clock.now()
  const { ahead } = lane
  lane.ahead = null
  if (lane.held === null || startedAt >= lane.heldUntil) {
    lane.held = await work.pool.connected((client) => acquireLane(client, lane.id, owner))
    lane.heldUntil = startedAt + laneLeaseMs
    if (lane.held?.wasStopped) lane.breaker = halfOpen
  }
  const { held } = lane
  if (held === null) return { kind: 'idle' }

  let unsafe = false
  const order = lane.turns++ % 10 === 9 ? (['historical', 'live'] as const) : (['live', 'historical'] as const)
  for (const stream of order) {
    const rowsMax = sliceRows(lane.searches[stream])
    const result = await applySlice(work, held, stream, { rowsMax, ahead, readAhead: options.isAlone() })
    if (result.kind === 'applied') {
      held.cursors[stream] = result.cursor
      lane.ahead = result.ahead
      Object.assign(lane, { heldUntil: startedAt + laneLeaseMs, failures: 0, stale: 0, unsafe: 0 })
      const searching = lane.searches[stream] !== null
      lane.searches[stream] = afterSuccess(lane.searches[stream], result.read)
      lane.breaker = rowsApplied(lane.breaker, result.read)
      if (held.wasStopped) await resume(options, held)
      const ms = clock.now() - startedAt
      report(options, result, { scopeId: lane.id, stream, ms })
      return result.read < smallSliceEvents && !searching
        ? { kind: 'later', ms: Math.max(smallSliceEveryMs - ms, 0) }
        : { kind: 'at_once' }
    }
    if (result.kind === 'lost') {
      lane.held = null
      return { kind: 'at_once' }
    }
    unsafe ||= result.kind === 'unsafe'
  }
  lane.failures = 0
  return unsafe ? { kind: 'later', ms: Math.min(2 ** lane.unsafe++, laneUnsafeWaitMsMax) } : { kind: 'idle' }
}

/**
 * Halves the slice until one row is left, which gets its tries, and is then set aside with what it fails on. The rows around it
 * are applied meanwhile.
 */
async function isolate<State, Decision extends { outcomes: EventOutcome[] }>(
  options: TurnOptions<State, Decision>,
  lane: LaneMemory,
  { stream, rows, cause }: PoisonedSlice,
): Promise<Next> {
  const { log, work, clock } = options
  const [row, ...others] = rows
  const { held } = lane
  assert(row !== undefined && held !== null, 'a slice of a held lane failed')
  const search = afterFailure(lane.searches[stream], [row.seq, ...others.map(({ seq }) => seq)])
  if (lane.searches[stream] === null)
    log.warn({ err: cause, scopeId: lane.id }, 'a slice failed; its event is looked for')
  lane.searches[stream] = search
  if (!isFound(search)) {
    return search.alone ? { kind: 'later', ms: deadTryPauseMs * search.alone.tries } : { kind: 'at_once' }
  }

  const startedAt = clock.now()
  const breaker = rowDied(lane.breaker)
  const stop = reasonToStop(breaker)
  const cursor = await bury(work.pool, held, { stream, row, error: cause, stop })
  if (cursor === null) {
    lane.held = null
    return { kind: 'at_once' }
  }
  held.cursors[stream] = cursor
  lane.searches[stream] = null
  lane.breaker = breaker
  const { uuid, distinctId, seq } = row
  log.error({ err: cause, scopeId: lane.id, uuid, distinctId, seq }, 'an event cannot be applied and was set aside')
  report(options, buried, { scopeId: lane.id, stream, ms: clock.now() - startedAt })
  if (stop !== null) {
    log.error({ scopeId: lane.id, why: stop, ms: laneStoppedMs }, 'the lane was stopped')
    lane.held = null
  }
  return { kind: 'at_once' }
}

const buried: SliceCounts = {
  ...{ read: 1, applied: 0, dropped: 0, duplicates: 0, differing: [], refusedMerges: 0, dead: 1, receivedAt: [] },
}

async function resume<State, Decision extends { outcomes: EventOutcome[] }>(
  { work, log }: TurnOptions<State, Decision>,
  held: HeldLane,
): Promise<void> {
  await forgetStop(work.pool, held)
  held.wasStopped = false
  log.warn({ scopeId: held.scope.scopeId }, 'a lane that was stopped goes on')
}

function report(
  { log, observe }: Pick<TurnOptions<never, never>, 'log' | 'observe'>,
  counts: SliceCounts,
  of: { scopeId: number; stream: Stream; ms: number },
): void {
  observe({ ...counts, ...of })
  const { differing } = counts
  if (differing.length === 0) return
  log.warn(
    { scopeId: of.scopeId, uuids: differing.slice(0, 20) },
    'events came again with another body; the first one counts',
  )
}
