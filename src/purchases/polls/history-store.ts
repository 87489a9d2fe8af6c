import type { Sql } from '../../db/pool.ts'
import type { Span } from './history-span.ts'

const nowMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

export interface DueHistory {
  scope_id: number
  app_id: string
  store_environment: 'production' | 'sandbox'
  read_until_ms: bigint
  span: Span | null
  /** Until when it is ours: another value says that somebody else has it. */
  due_at_ms: bigint
}

/**
 * Every app with a key of the App Store has a history to be read, from now on. Under a live key both environments: what App
 * Review and testers buy is told to the same address.
 */
export async function insertMissingHistories(sql: Sql, waitMs: number): Promise<void> {
  await sql.query(
    `insert into appstore_history (scope_id, app_id, store_environment, read_until_ms, due_at_ms)
     select c.scope_id, c.app_id, e.store_environment, ${nowMs} + coalesce(t.offset_ms, 0),
       ${nowMs} + coalesce(t.offset_ms, 0) + $1
     from store_credential c
     join scope s on s.id = c.scope_id
     cross join unnest(case s.environment when 'live' then '{production,sandbox}' else '{sandbox}' end::text[])
       as e (store_environment)
     left join test_clock t on t.scope_id = c.scope_id
     where c.kind = 'appstore'
       and c.public_fields ->> 'key_id' is not null
       and not exists (
         select
         from appstore_history h
         where h.scope_id = c.scope_id
           and h.app_id = c.app_id
           and h.store_environment = e.store_environment
       )
     order by c.scope_id, c.app_id, e.store_environment
     on conflict (scope_id, app_id, store_environment) do nothing`,
    [waitMs],
  )
}

/** Takes what is due by the clock of its project, for `leaseMs`: whoever takes it and dies leaves it to the next. */
export async function takeDueHistories(
  sql: Sql,
  { max, leaseMs }: { max: number; leaseMs: number },
): Promise<DueHistory[]> {
  return sql.query<DueHistory>(
    `update appstore_history h
     set due_at_ms = ${nowMs} + coalesce((select offset_ms from test_clock t where t.scope_id = h.scope_id), 0) + $2
     where (scope_id, app_id, store_environment) in (
       select due.scope_id, due.app_id, due.store_environment
       from appstore_history due
       left join test_clock t on t.scope_id = due.scope_id
       where due.due_at_ms <= ${nowMs} + coalesce(t.offset_ms, 0)
       order by due.due_at_ms
       limit $1
       for update of due skip locked)
     returning scope_id, app_id, store_environment, read_until_ms, span, due_at_ms`,
    [max, leaseMs],
  )
}

/** Undefined: it was taken by somebody else meanwhile, who goes on with it. */
export async function saveHistory(
  sql: Sql,
  due: DueHistory,
  { readUntilMs, span, dueAtMs }: { readUntilMs: number; span: Span | null; dueAtMs: number },
): Promise<DueHistory | undefined> {
  const rows = await sql.query<DueHistory>(
    `update appstore_history
     set read_until_ms = $5, span = $6::jsonb, due_at_ms = $7
     where scope_id = $1
       and app_id = $2
       and store_environment = $3
       and due_at_ms = $4
     returning scope_id, app_id, store_environment, read_until_ms, span, due_at_ms`,
    [
      ...[due.scope_id, due.app_id, due.store_environment, due.due_at_ms],
      ...[readUntilMs, span === null ? null : JSON.stringify(span), dueAtMs],
    ],
  )
  return rows[0]
}

export async function deleteHistory(sql: Sql, { scope_id, app_id, store_environment }: DueHistory): Promise<void> {
  await sql.query(`delete from appstore_history where scope_id = $1 and app_id = $2 and store_environment = $3`, [
    scope_id,
    app_id,
    store_environment,
  ])
}

/** Seconds since the history was last read to its end, of the live app that is furthest behind; 0: there is none. */
export async function selectHistoryLag(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ seconds: number }>(
    `select coalesce(max(${nowMs} - h.read_until_ms), 0)::float8 / 1000 as seconds
     from appstore_history h
     join scope s on s.id = h.scope_id
     where s.environment = 'live'`,
  )
  return row?.seconds ?? 0
}
