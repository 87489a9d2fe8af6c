import type { Sql } from '../db/pool.ts'

/** What is to be done: what is due is taken for a while, then ended or put off. */
export type Queue = 'store_inbox' | 'store_outbox'

export const nowMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * Takes what is due for `leaseMs`, what is due longest first: whoever takes it and dies leaves it to the next. Uses the queue's
 * index on due_at_ms.
 */
export async function takeDue<Row extends object>(
  sql: Sql,
  queue: Queue,
  { max, leaseMs, columns }: { max: number; leaseMs: number; columns: string },
): Promise<Row[]> {
  return sql.query<Row>(
    `update ${queue}
     set attempts = attempts + 1, due_at_ms = ${nowMs} + $2
     where id in (
       select id
       from ${queue}
       where due_at_ms <= ${nowMs}
       order by due_at_ms
       limit $1
       for update skip locked)
     returning ${columns}`,
    [max, leaseMs],
  )
}

/** What a notification said is kept for as long as it may be processed: of one that was, nothing is needed but its id. */
export async function endRow(
  sql: Sql,
  queue: Queue,
  id: bigint,
  { status, error }: { status: 'done' | 'ignored' | 'dead'; error: string | null },
): Promise<void> {
  await sql.query(
    `update ${queue}
     set status = $2, error = $3, due_at_ms = null,
       payload = case when $2 = 'dead' then payload else payload - 'sealed' - 'about' end
     where id = $1`,
    [id, status, error],
  )
}

/** Whoever took it too slowly does not put off what another one has ended. */
export async function postponeRow(
  sql: Sql,
  queue: Queue,
  id: bigint,
  { waitMs, error }: { waitMs: number; error: string },
): Promise<void> {
  await sql.query(
    `update ${queue}
     set error = $3, due_at_ms = ${nowMs} + $2
     where id = $1
       and status = 'waiting'`,
    [id, waitMs, error],
  )
}
