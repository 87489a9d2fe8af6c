import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { queriesAtOnceMax, queriesPerMinuteMax } from '../../kernel/limits.ts'

/** Of one workspace's minute, for the headers of the answer. */
export interface Allowance {
  limit: number
  remaining: number
  /** Seconds until the minute ends. */
  resetS: number
}

export interface QueryGuard {
  /** What is left of the minute, this query taken off. Throws 429 when nothing is; it says so first by `tell`. */
  take: (workspaceId: string, tell: (allowance: Allowance) => void) => void
  /** Counts a query as running until the function it gives is called, once. Throws 429 when too many of the workspace run. */
  start: (workspaceId: string) => () => void
  /** Runs a query unless too many of the workspace run: 429. */
  run: <T>(workspaceId: string, work: () => Promise<T>) => Promise<T>
}

const minuteMs = 60_000

/** Counts per process and workspace. */
export function createQueryGuard(clock: Clock): QueryGuard {
  const running = new Map<string, number>()
  let minute = 0
  let taken = new Map<string, number>()
  return {
    take(workspaceId, tell) {
      const now = clock.now()
      if (Math.floor(now / minuteMs) !== minute) {
        minute = Math.floor(now / minuteMs)
        taken = new Map()
      }
      const before = taken.get(workspaceId) ?? 0
      const resetS = Math.ceil((minuteMs - (now % minuteMs)) / 1000)
      tell({ limit: queriesPerMinuteMax, remaining: Math.max(queriesPerMinuteMax - before - 1, 0), resetS })
      if (before >= queriesPerMinuteMax) {
        throw refuse('rate_limited', {
          retryAfterS: resetS,
          message: `At most ${queriesPerMinuteMax} queries a minute for each workspace.`,
        })
      }
      taken.set(workspaceId, before + 1)
    },
    start,
    async run(workspaceId, work) {
      const end = start(workspaceId)
      try {
        return await work()
      } finally {
        end()
      }
    },
  }

  function start(workspaceId: string): () => void {
    const count = running.get(workspaceId) ?? 0
    if (count >= queriesAtOnceMax) {
      throw refuse('rate_limited', {
        retryAfterS: 1,
        message: `At most ${queriesAtOnceMax} queries of a workspace run at once.`,
      })
    }
    running.set(workspaceId, count + 1)
    return () => {
      const left = (running.get(workspaceId) ?? 1) - 1
      if (left === 0) running.delete(workspaceId)
      else running.set(workspaceId, left)
    }
  }
}
