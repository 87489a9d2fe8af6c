import type { Sql } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { nowMs, takeDue } from '../queue-store.ts'
import type { Store } from '../types.ts'

export interface InboxInsert {
  scopeId: number
  appId: string
  store: Store
  /** The store's own: the same notification is stored once. */
  notificationId: string
  trust: 'live' | 'test'
  kind: string
  payload: JsonObject
}

/** False: it was there already. */
export async function insertInbox(sql: Sql, row: InboxInsert): Promise<boolean> {
  const rows = await sql.query<{ id: bigint }>(
    `insert into store_inbox (scope_id, app_id, store, notification_id, trust, kind, payload, received_at_ms, due_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7::jsonb, ${nowMs}, ${nowMs})
     on conflict (app_id, store, notification_id) do nothing
     returning id`,
    [row.scopeId, row.appId, row.store, row.notificationId, row.trust, row.kind, JSON.stringify(row.payload)],
  )
  return rows.length > 0
}

export interface InboxRow {
  id: bigint
  scope_id: number
  app_id: string
  store: Store
  notification_id: string
  trust: 'live' | 'test'
  kind: string
  payload: JsonObject
  /** This one included. */
  attempts: number
  received_at_ms: bigint
}

const columns = 'id, scope_id, app_id, store, notification_id, trust, kind, payload, attempts, received_at_ms'

export function takeInbox(sql: Sql, terms: { max: number; leaseMs: number }): Promise<InboxRow[]> {
  return takeDue(sql, 'store_inbox', { ...terms, columns })
}

export interface InboxFigures {
  waiting: number
  dead: number
  oldestSeconds: number
}

/** Uses store_inbox_due and store_inbox_dead. */
export async function selectInboxFigures(sql: Sql): Promise<InboxFigures> {
  const [row] = await sql.query<InboxFigures>(
    `select count(*) filter (where status = 'waiting')::int as waiting,
            count(*) filter (where status = 'dead')::int as dead,
            coalesce(max(${nowMs} - received_at_ms) filter (where status = 'waiting'), 0)::float8 / 1000 as "oldestSeconds"
     from store_inbox
     where due_at_ms is not null
        or status = 'dead'`,
  )
  return row ?? { waiting: 0, dead: 0, oldestSeconds: 0 }
}
