import type { Sql } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
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

const nowMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** Takes what is due for `leaseMs`: whoever takes it and dies leaves it to the next. Uses store_outbox_due. */
export async function takeOutbox(sql: Sql, { max, leaseMs }: { max: number; leaseMs: number }): Promise<OutboxRow[]> {
  return sql.query<OutboxRow>(
    `update store_outbox
     set attempts = attempts + 1, due_at_ms = ${nowMs} + $2
     where id in (
       select id
       from store_outbox
       where due_at_ms <= ${nowMs}
       order by due_at_ms
       limit $1
       for update skip locked)
     returning id, scope_id, app_id, store, store_environment, kind, key, payload, attempts, deadline_ms`,
    [max, leaseMs],
  )
}

export async function endOutbox(
  sql: Sql,
  id: bigint,
  ended: { status: 'done' | 'dead'; error: string | null },
): Promise<void> {
  await sql.query(`update store_outbox set status = $2, error = $3, due_at_ms = null where id = $1`, [
    id,
    ended.status,
    ended.error,
  ])
}

export async function postponeOutbox(
  sql: Sql,
  id: bigint,
  { waitMs, error }: { waitMs: number; error: string },
): Promise<void> {
  await sql.query(`update store_outbox set error = $3, due_at_ms = ${nowMs} + $2 where id = $1`, [id, waitMs, error])
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
