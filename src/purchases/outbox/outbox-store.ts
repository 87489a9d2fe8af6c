import type { Sql } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { nowMs, takeDue } from '../queue-store.ts'
import type { OutboxItem, Store, StoreEnvironment } from '../types.ts'

export interface OutboxRow {
  id: bigint
  scope_id: number
  app_id: string
  store: Store
  store_environment: StoreEnvironment
  kind: OutboxItem['kind']
  key: string
  payload: JsonObject
  /** This one included. */
  attempts: number
  deadline_ms: bigint | null
}

const columns = 'id, scope_id, app_id, store, store_environment, kind, key, payload, attempts, deadline_ms'

export function takeOutbox(sql: Sql, terms: { max: number; leaseMs: number }): Promise<OutboxRow[]> {
  return takeDue(sql, 'store_outbox', { ...terms, columns })
}

export interface OutboxFigures {
  waiting: number
  dead: number
  /** Not told yet though it should have been long ago: a store takes back what nobody acknowledges. */
  late: number
}

/** Uses store_outbox_due and store_outbox_dead. */
export async function selectOutboxFigures(
  sql: Sql,
  lateAfterMs: { tester: number; buyer: number },
): Promise<OutboxFigures> {
  const [row] = await sql.query<{ waiting: number; dead: number; late: number }>(
    `select count(*) filter (where status = 'waiting')::int as waiting,
            count(*) filter (where status = 'dead')::int as dead,
            count(*) filter (
              where status = 'waiting'
                and created_at_ms < ${nowMs} - case store_environment when 'production' then $2::bigint else $1::bigint end
            )::int as late
     from store_outbox
     where due_at_ms is not null
        or status = 'dead'`,
    [lateAfterMs.tester, lateAfterMs.buyer],
  )
  return row ?? { waiting: 0, dead: 0, late: 0 }
}
