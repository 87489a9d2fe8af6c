import { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { listConnections } from '../../kernel/limits.ts'
import { capacity } from './capacity.ts'
import { type CursorSigner, createCursors } from './cursor.ts'
import { createQueryGuard, type QueryGuard } from './guard.ts'
import { segments } from './membership-store.ts'
import { createAnalytics, listSettings, querySettings } from './query.ts'
import type { AnalyticsStore } from './types.ts'

/** All that reads events for people, with connections of its own: intake, lanes and spends never wait for a question. */
export interface EventReads {
  analytics: AnalyticsStore
  queryGuard: QueryGuard
  listPool: Pool
  cursors: CursorSigner
}

/**
 * `secret` signs cursors: the same in every process. `isHere`: the database runs on this machine, and what works on questions
 * gives way to everything else there.
 */
export function openEventReads({
  url,
  clock,
  secret,
  isHere = false,
}: {
  url: string
  clock: Clock
  secret: Buffer
  isHere?: boolean
}): EventReads & AsyncDisposable {
  const { questionsAtOnce: atOnce } = capacity
  const queryPool = new Pool(url, {
    name: 'event queries',
    // Those answered at once and those answered later.
    max: 2 * atOnce,
    pipeline: true,
    settings: querySettings,
    givesWay: isHere,
  })
  const listPool = new Pool(url, { name: 'event lists', max: listConnections, pipeline: true, settings: listSettings })
  const closing = new AbortController()
  return {
    analytics: createAnalytics({
      ...{ pool: queryPool, lookupPool: listPool, atOnce, clock, segments },
      closed: closing.signal,
    }),
    queryGuard: createQueryGuard(clock),
    listPool,
    cursors: createCursors(secret),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await Promise.all([queryPool[Symbol.asyncDispose](), listPool[Symbol.asyncDispose]()])
    },
  }
}
