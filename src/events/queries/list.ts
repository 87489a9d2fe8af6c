import type { Pool, Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Freshness } from '../freshness.ts'
import type { CursorSigner } from './cursor.ts'
import {
  type EventFilters,
  lastLookedAt,
  type StoredEvent,
  selectByPosition,
  selectByTime,
  selectByUuid,
} from './list-store.ts'
import { snapshot } from './snapshot.ts'

export interface ListQuery extends EventFilters {
  sort: 'timestamp' | 'position'
  /** By time only; positions rise. */
  newestFirst: boolean
}

export interface EventPage {
  events: StoredEvent[]
  hasMore: boolean
  /** By position never null: it goes on when there is more, for ever. */
  nextCursor: string | null
  freshness: Freshness
}

export interface ListOptions {
  pool: Pool
  cursors: CursorSigner
}

/**
 * A page of events. By time: the pages of one walk hold each event that was there at the first one, once. By position: a
 * page looks at a bounded number of positions, so it may hold fewer than `limit` though there are more; whoever has read on
 * from a cursor has seen everything up to it.
 */
export function createListEvents({ pool, cursors }: ListOptions) {
  return async (scope: Scope, query: ListQuery, page: { limit: number; cursor: string | null }): Promise<EventPage> => {
    // The records of a customer may grow between two pages of one walk.
    const { customerIds, ...asked } = query
    const hashed = [scope.scopeId, asked, customerIds !== null]
    const cursor = page.cursor === null ? null : cursors.read(page.cursor, hashed)
    return snapshot(pool, { scope }, async ({ tx, freshness, merged, newest }) => {
      const { limit } = page
      if (query.sort === 'position') {
        const from = cursor?.position ?? 0n
        const to = lastLookedAt(from, newest)
        const { events, seen } = await readOn(tx, scope, query, { from, to, limit, merged })
        const nextCursor = cursors.write({ sort: 'position', position: seen }, hashed)
        return { events, hasMore: seen < newest, nextCursor, freshness }
      }
      const after = cursor?.sort === 'timestamp' ? cursor : null
      const bound = after?.bound ?? newest
      const { newestFirst } = query
      const found = await selectByTime(tx, scope, query, { newestFirst, limit: limit + 1, bound, after, merged })
      const events = found.events.slice(0, limit)
      const last = found.isCut || found.events.length > limit ? events.at(-1) : undefined
      const { at, position } = last ?? { at: 0, position: 0n }
      const nextCursor = last ? cursors.write({ sort: 'timestamp', bound, at, position }, hashed) : null
      return { events, hasMore: last !== undefined, nextCursor, freshness }
    })
  }
}

/** The next events by position, and up to where everything was seen. */
export async function readOn(
  sql: Sql,
  scope: Scope,
  filters: EventFilters,
  page: { from: bigint; to: bigint; limit: number; merged: boolean },
): Promise<{ events: StoredEvent[]; seen: bigint }> {
  const { from, to, limit } = page
  if (to <= from) return { events: [], seen: from }
  const { events, isCut } = await selectByPosition(sql, scope, filters, page)
  const last = isCut || events.length === limit ? events.at(-1) : undefined
  return { events, seen: last?.position ?? to }
}

/** The event of a uuid; null while it waits for its lane, and for ever when its customer was deleted. */
export function createGetEvent({ pool }: Pick<ListOptions, 'pool'>) {
  return async (scope: Scope, uuid: string): Promise<{ event: StoredEvent; freshness: Freshness } | null> =>
    snapshot(pool, { scope }, async ({ tx, freshness, merged }) => {
      const event = await selectByUuid(tx, scope, uuid, merged)
      return event ? { event, freshness } : null
    })
}
