import { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { randomText } from '../kernel/ids.ts'
import { lanesAtOnce } from '../kernel/limits.ts'
import { laneReadSettings, laneSettings, releaseLanes, resumeLanes } from './lane-store.ts'
import { forgetful, type LaneMemory, type Next, type SliceReport, takeTurn } from './turn.ts'
import type { Consumer, EventOutcome, Log, Projection } from './types.ts'
import { watchLanes } from './watch.ts'

export interface LanesOptions<State, Decision extends { outcomes: EventOutcome[] }> {
  url: string
  projection: Projection<State, Decision>
  consumers: readonly Consumer[]
  clock: Clock
  log: Log
  /** Ends it: slices under way are finished, and the lanes are free for others at once. */
  signal: AbortSignal
  /** Told of every committed slice. */
  observe?: (slice: SliceReport) => void
}

/** Applies the log, lane by lane and slice by slice. Any number of workers may run on one database. */
export async function runLanes<State, Decision extends { outcomes: EventOutcome[] }>(
  options: LanesOptions<State, Decision>,
): Promise<void> {
  const { url, projection, consumers, clock, log, signal, observe = () => {} } = options
  await using pool = new Pool(url, { name: 'lane', max: lanesAtOnce + 1, pipeline: true, settings: laneSettings })
  await using reading = new Pool(url, { name: 'lane reading', max: lanesAtOnce, settings: laneReadSettings })
  const owner = randomText(16)
  // Whoever starts a worker has most often corrected something. When the database is away, the time still passes.
  await resumeLanes(pool).catch(() => {})
  const work = { pool, reading, projection, consumers, months: new Set<number>() }
  const isAlone = () => robin.isQueueEmpty()
  const robin = roundRobin((lane) => takeTurn({ work, owner, clock, log, observe, isAlone }, lane))
  await watchLanes({ url, pool, owner, clock, log, signal, wake: robin.wake })
  await robin.stop()
  // Left undone, others take the lanes when the leases have ended.
  await releaseLanes(pool, owner).catch(() => {})
}

interface Turns {
  lane: LaneMemory
  /** `later`: a timer runs, and until then nobody wakes it. */
  state: 'idle' | 'queued' | 'running' | 'later'
  /** Woken while its turn was running. */
  again: boolean
}

/** Gives lanes their turns one after the other, several at once but never two of one lane. */
function roundRobin(take: (lane: LaneMemory) => Promise<Next>) {
  const known = new Map<number, Turns>()
  const queue: Turns[] = []
  const timers = new Set<NodeJS.Timeout>()
  const stopped = Promise.withResolvers<void>()
  let stopping = false
  let running = 0

  function wake(id: number): void {
    const turns = known.get(id) ?? { lane: forgetful(id), state: 'idle', again: false }
    known.set(id, turns)
    if (turns.state === 'running') turns.again = true
    else if (turns.state === 'idle') enqueue(turns)
  }

  function enqueue(turns: Turns): void {
    turns.state = 'queued'
    queue.push(turns)
    start()
  }

  function start(): void {
    while (running < lanesAtOnce && !stopping) {
      const turns = queue.shift()
      if (!turns) return
      running++
      void run(turns)
    }
  }

  async function run(turns: Turns): Promise<void> {
    turns.state = 'running'
    turns.again = false
    const next = await take(turns.lane)
    running--
    turns.state = 'idle'
    if (next.kind === 'later') wait(turns, next.ms)
    else if (next.kind === 'at_once' || turns.again) enqueue(turns)
    start()
    if (stopping && running === 0) stopped.resolve()
  }

  function wait(turns: Turns, ms: number): void {
    turns.state = 'later'
    const timer = setTimeout(() => {
      timers.delete(timer)
      enqueue(turns)
    }, ms)
    timers.add(timer)
  }

  return {
    wake,
    isQueueEmpty: () => queue.length === 0,
    /** Resolves when the turns under way have ended. */
    async stop() {
      stopping = true
      for (const timer of timers) clearTimeout(timer)
      if (running > 0) await stopped.promise
    },
  }
}
