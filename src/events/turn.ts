import { isRetryable } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import {
  laneBackoffMsMax,
  laneLeaseMs,
  laneUnsafeWaitMsMax,
  smallSliceEvents,
  smallSliceEveryMs,
  staleTurnsMax,
} from '../kernel/limits.ts'
import { acquireLane, type HeldLane } from './lane-store.ts'
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
}

export function forgetful(id: number): LaneMemory {
  return { id, held: null, heldUntil: 0, turns: 0, failures: 0, stale: 0, unsafe: 0 }
}

/** When the lane wants its next turn; `idle`: when it is woken. */
export type Next = { kind: 'at_once' | 'idle' } | { kind: 'later'; ms: number }

export interface TurnOptions<State, Decision extends { outcomes: EventOutcome[] }> {
  work: SliceWork<State, Decision>
  owner: string
  clock: Clock
  log: Log
  observe: (slice: SliceReport) => void
}

/** One turn of a lane: a slice of live events; of historical ones when there are none, and first at every tenth turn. */
export async function takeTurn<State, Decision extends { outcomes: EventOutcome[] }>(
  options: TurnOptions<State, Decision>,
  lane: LaneMemory,
): Promise<Next> {
  try {
    return await tryTurn(options, lane)
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
  if (lane.held === null || startedAt >= lane.heldUntil) {
    lane.held = await work.pool.connected((client) => acquireLane(client, lane.id, owner))
    lane.heldUntil = startedAt + laneLeaseMs
  }
  const { held } = lane
  if (held === null) return { kind: 'idle' }

  let unsafe = false
  const order = lane.turns++ % 10 === 9 ? (['historical', 'live'] as const) : (['live', 'historical'] as const)
  for (const stream of order) {
    const result = await applySlice(work, held, stream)
    if (result.kind === 'applied') {
      held.cursors[stream] = result.cursor
      Object.assign(lane, { heldUntil: startedAt + laneLeaseMs, failures: 0, stale: 0, unsafe: 0 })
      const ms = clock.now() - startedAt
      report(options, result, { scopeId: lane.id, stream, ms })
      return result.read < smallSliceEvents
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

function report(
  { log, observe }: Pick<TurnOptions<never, never>, 'log' | 'observe'>,
  { read, applied, dropped, duplicates, differing }: SliceCounts,
  of: { scopeId: number; stream: Stream; ms: number },
): void {
  observe({ read, applied, dropped, duplicates, differing, ...of })
  if (differing.length === 0) return
  log.warn(
    { scopeId: of.scopeId, uuids: differing.slice(0, 20) },
    'events came again with another body; the first one counts',
  )
}
