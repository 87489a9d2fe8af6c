import { refuse } from '../kernel/errors.ts'

/** Runs so many at once and lets so many wait, in order; one more is told to come again. Throws `service_unavailable`. */
export function createGate({ atOnce, waitingMax }: { atOnce: number; waitingMax: number }) {
  const waiting: (() => void)[] = []
  let running = 0
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (waiting.length >= waitingMax) throw refuse('service_unavailable', { retryAfterS: 1 })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else running++
    try {
      return await work()
    } finally {
      // Its place goes straight to the next one, so that nobody steps in between.
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
