import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Endpoints that want to hear of events of this type. */
export async function selectHearers(sql: Sql, { scopeId }: Scope, type: string): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `select public_id as id
     from webhook_endpoint
     where scope_id = $1
       and deleted_at is null
       and $2 = any(events)
     order by id`,
    [scopeId, type],
  )
  return rows.map(({ id }) => id)
}

/** In Unix milliseconds, of the database. */
export async function selectNow(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ now: number }>(
    `select floor(date_part('epoch', clock_timestamp()) * 1000)::float8 as now`,
  )
  return row?.now ?? 0
}

/** Due at once. */
export async function insertAnnouncements(
  tx: Tx,
  { scopeId }: Scope,
  rows: readonly { endpointId: string; body: string }[],
  now: number,
): Promise<void> {
  await tx.query(
    `insert into announcement (scope_id, endpoint_id, key, body, due_at_ms)
     select $1, endpoint_id, gen_random_uuid(), body, $4
     from unnest($2::text[], $3::text[]) as item (endpoint_id, body)`,
    [scopeId, rows.map(({ endpointId }) => endpointId), rows.map(({ body }) => body), now],
  )
}

/** What is to be sent, and how often it was tried, this time included. */
export interface Announcement {
  scopeId: number
  id: bigint
  endpointId: string
  key: string
  body: string
  attempts: number
}

/** Takes what is due: nobody else tries it before `leaseMs` are over. */
export async function claimAnnouncements(
  tx: Tx,
  { now, limit, leaseMs }: { now: number; limit: number; leaseMs: number },
): Promise<Announcement[]> {
  return tx.query<Announcement>(
    `with due as materialized (
       select scope_id, id
       from announcement
       where due_at_ms <= $1
       order by due_at_ms
       limit $2
       for update skip locked
     )
     update announcement a
     set attempts = a.attempts + 1, due_at_ms = $1 + $3
     from due
     where a.scope_id = due.scope_id
       and a.id = due.id
     returning a.scope_id as "scopeId", a.id, a.endpoint_id as "endpointId", a.key, a.body, a.attempts`,
    [now, limit, leaseMs],
  )
}

export async function postponeAnnouncement(sql: Sql, { scopeId, id }: Announcement, dueAt: number): Promise<void> {
  await sql.query('update announcement set due_at_ms = $3 where scope_id = $1 and id = $2', [scopeId, id, dueAt])
}

export async function deleteAnnouncement(sql: Sql, { scopeId, id }: Announcement): Promise<void> {
  await sql.query('delete from announcement where scope_id = $1 and id = $2', [scopeId, id])
}
