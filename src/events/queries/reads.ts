import { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { listConnections, queryConnections } from '../../kernel/limits.ts'
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

/** `secret` signs cursors: the same in every process. */
export function openEventReads({
  url,
  clock,
  secret,
}: {
  url: string
  clock: Clock
  secret: Buffer
}): EventReads & AsyncDisposable {
  const queryPool = new Pool(url, {
    name: 'event queries',
    max: queryConnections,
    pipeline: true,
    settings: querySettings,
  })
  const listPool = new Pool(url, { name: 'event lists', max: listConnections, pipeline: true, settings: listSettings })
  return {
    analytics: createAnalytics({ pool: queryPool, cancelPool: listPool, clock, segments }),
    queryGuard: createQueryGuard(clock),
    listPool,
    cursors: createCursors(secret),
    async [Symbol.asyncDispose]() {
      await Promise.all([queryPool[Symbol.asyncDispose](), listPool[Symbol.asyncDispose]()])
    },
  }
}
