import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../src/db/pool.ts'
import { type Processes, readProcesses } from './cpu.ts'
import { type LaneFigures, median } from './figures.ts'
import type { Measured } from './measure.ts'
import { countWaiting, oldestWaitingMs } from './store.ts'

const pollMs = 10
/** Beyond it the lane is taken to stand still. */
const drainMsMax = 600_000
/** Below it a rate would say more about the polling than about the lane. */
const drainSMin = 0.25

export interface LaneRound {
  backlog: number
  drainS: number
  processedPerS: number
  drainedPerS: number | null
  cpuMs: number
}

/** The service's lane, seen from its tables. */
export class Lane {
  readonly #pool: Pool
  readonly #scopeId: number

  constructor(pool: Pool, scopeId: number) {
    this.#pool = pool
    this.#scopeId = scopeId
  }

  /** Milliseconds that the oldest waiting event has been waiting; 0 when none waits. */
  async ageMs(): Promise<number> {
    await sleep(pollMs)
    return (await oldestWaitingMs(this.#pool, this.#scopeId)) ?? 0
  }

  /** Resolves when no event waits. */
  async drained(): Promise<void> {
    const deadline = performance.now() + drainMsMax
    while ((await oldestWaitingMs(this.#pool, this.#scopeId)) !== undefined) {
      if (performance.now() > deadline) throw new Error('the lane does not process its events')
      await sleep(pollMs)
    }
  }

  /** Waits until what a round has sent is processed. */
  async follow(
    measured: Measured,
    eventsPerRequest: number,
    cpuOf: (processes: Processes) => number,
  ): Promise<LaneRound> {
    const { outcome, startedAt, endedAt, atStart } = measured
    const lookedAt = performance.now()
    const backlog = await countWaiting(this.#pool, this.#scopeId)
    await this.drained()
    const drainedAt = performance.now()
    const cpu = cpuOf(readProcesses()) - cpuOf(atStart)
    const drainS = (drainedAt - endedAt) / 1000
    const aloneS = (drainedAt - lookedAt) / 1000
    return {
      backlog,
      drainS,
      processedPerS: (outcome.sent * eventsPerRequest) / ((drainedAt - startedAt) / 1000),
      drainedPerS: aloneS > drainSMin ? backlog / aloneS : null,
      cpuMs: cpu / outcome.sent,
    }
  }
}

export function laneFigures(rounds: LaneRound[]): LaneFigures {
  const alone = rounds.map((round) => round.drainedPerS).filter((rate) => rate !== null)
  return {
    backlog: median(rounds.map((round) => round.backlog)),
    drain_s: median(rounds.map((round) => round.drainS)),
    processed_per_s: median(rounds.map((round) => round.processedPerS)),
    drained_per_s: alone.length > 0 ? median(alone) : null,
    cpu_ms_processed: median(rounds.map((round) => round.cpuMs)),
  }
}
