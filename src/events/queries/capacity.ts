import { availableParallelism } from 'node:os'
import { parallelWorkersMax, questionsAtOnceMax } from '../../kernel/limits.ts'

/** What questions may take of the machine. */
export interface Capacity {
  /** Of those that are answered at once, and as many again of those that are answered later. */
  questionsAtOnce: number
  /** Processes that help one of them. */
  parallelWorkers: number
}

/**
 * Half of the cores, so that the other half is there for intake and lanes. A question more at once gives more answers, a
 * worker more only gives one of them sooner, so workers take what of the half is left. On two cores there is one question
 * and no worker: the processor is then wanted by three processes at least, and any more of them make those who send events wait,
 * while the answers come no faster.
 */
export function capacityOf(cores: number): Capacity {
  const half = Math.floor(cores / 2)
  const questionsAtOnce = Math.max(1, Math.min(half, questionsAtOnceMax))
  const parallelWorkers = Math.max(0, Math.min(Math.floor(half / questionsAtOnce) - 1, parallelWorkersMax))
  return { questionsAtOnce, parallelWorkers }
}

/** By this process's machine; a database on another one is taken to be no smaller. */
export const capacity = capacityOf(availableParallelism())
