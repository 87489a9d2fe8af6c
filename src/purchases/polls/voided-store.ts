import type { Sql } from '../../db/pool.ts'

const nowMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

export interface DueList {
  scope_id: number
  app_id: string
  read_until_ms: bigint
}

/** Every app with a key of Google Play has a list of voided purchases to be read, the first time from a month ago. */
export async function insertMissingLists(sql: Sql, fromMs: number): Promise<void> {
  await sql.query(
    `insert into play_voided_cursor (scope_id, app_id, read_until_ms, due_at_ms)
     select scope_id, app_id, $1, 0
     from store_credential c
     where kind = 'playstore'
       and not exists (
         select
         from play_voided_cursor v
         where v.scope_id = c.scope_id
           and v.app_id = c.app_id
       )
     order by scope_id, app_id
     on conflict (scope_id, app_id) do nothing`,
    [fromMs],
  )
}

/** Takes lists that are due, until `leaseMs` from now: whoever takes them and dies leaves them to the next. */
export async function takeDueLists(sql: Sql, { max, leaseMs }: { max: number; leaseMs: number }): Promise<DueList[]> {
  return sql.query<DueList>(
    `update play_voided_cursor c
     set due_at_ms = ${nowMs} + coalesce((select offset_ms from test_clock t where t.scope_id = c.scope_id), 0) + $2
     where (scope_id, app_id) in (
       select due.scope_id, due.app_id
       from play_voided_cursor due
       left join test_clock t on t.scope_id = due.scope_id
       where due.due_at_ms <= ${nowMs} + coalesce(t.offset_ms, 0)
       order by due.due_at_ms
       limit $1
       for update of due skip locked)
     returning scope_id, app_id, read_until_ms`,
    [max, leaseMs],
  )
}

export async function moveList(
  sql: Sql,
  { scope_id, app_id }: DueList,
  { readUntilMs, dueAtMs }: { readUntilMs: number; dueAtMs: number },
): Promise<void> {
  await sql.query(
    `update play_voided_cursor
     set read_until_ms = greatest(read_until_ms, $3), due_at_ms = $4
     where scope_id = $1
       and app_id = $2`,
    [scope_id, app_id, readUntilMs, dueAtMs],
  )
}

export async function deleteList(sql: Sql, { scope_id, app_id }: DueList): Promise<void> {
  await sql.query(`delete from play_voided_cursor where scope_id = $1 and app_id = $2`, [scope_id, app_id])
}
