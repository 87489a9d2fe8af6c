import { refuse } from './errors.ts'
import { retryAfterS } from './retry-after.ts'

/** Runs work when its turn comes, and gives what it gives. Throws `service_unavailable` when it doesn't come. */
export type Gate = <T>(work: () => Promise<T>, patience?: Patience) => Promise<T>

/** What ends the waiting. Without it the turn is waited for however long it takes. */
export interface Patience {
  msMax?: number
  /** Whoever waits has gone. */
  signal?: AbortSignal | undefined
}

export interface GateOptions {
  atOnce: number
  waitingMax: number
  /** From then on nobody waits any more, and what runs is the last. */
  closed?: AbortSignal
}

/** Runs so many at once and lets so many wait, in order; one more is told to come again. */
export function createGate({ atOnce, waitingMax, closed }: GateOptions): Gate {
  const waiting: Waiting[] = []
  let running = 0
  closed?.addEventListener('abort', () => {
    for (const { giveUp } of [...waiting]) giveUp()
  })

  return async (work, patience = {}) => {
    if (running < atOnce) running++
    else await turn(patience)
    try {
      return await work()
    } finally {
      // Its place goes straight to the next one, so that nobody steps in between.
      const next = waiting.shift()
      if (next) next.enter()
      else running--
    }
  }

  async function turn({ msMax, signal }: Patience): Promise<void> {
    if (waiting.length >= waitingMax || signal?.aborted || closed?.aborted) throw busy()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const one: Waiting = {
      enter: resolve,
      giveUp() {
        const place = waiting.indexOf(one)
        // Whose turn has come goes in.
        if (place === -1) return
        waiting.splice(place, 1)
        reject(busy())
      },
    }
    waiting.push(one)
    const timer = msMax === undefined ? undefined : setTimeout(one.giveUp, msMax)
    signal?.addEventListener('abort', one.giveUp)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', one.giveUp)
    }
  }
}

interface Waiting {
  enter: () => void
  giveUp: () => void
}

function busy() {
  return refuse('service_unavailable', { retryAfterS: retryAfterS() })
}
