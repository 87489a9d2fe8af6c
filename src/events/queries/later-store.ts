import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** A query whose answer is fetched later. */
export interface LaterQuery {
  id: string
  status: 'running' | 'completed' | 'failed'
  /** JSON of the answer. */
  result: string | null
  error: { code: string; message: string } | null
}

export async function insertQuery(sql: Sql, { scopeId }: Scope, id: string): Promise<void> {
  await sql.query(`insert into event_query (id, scope_id, status) values ($1, $2, 'running')`, [id, scopeId])
}

/** Changes nothing when it ended before: it was erased. */
export async function finishQuery(sql: Sql, { id, status, result, error }: LaterQuery): Promise<void> {
  await sql.query(
    `update event_query
    set status = $2, result = $3, error = $4::jsonb
    where id = $1
      and status = 'running'`,
    [id, status, result, error && JSON.stringify(error)],
  )
}

/** One that runs for longer than it may was lost with its process. */
export async function selectQuery(
  sql: Sql,
  scopeIds: readonly number[],
  { id, runsMsMax, keptMs }: { id: string; runsMsMax: number; keptMs: number },
): Promise<LaterQuery | undefined> {
  const [row] = await sql.query<LaterQuery & { isLost: boolean }>(
    `select id, status, result, error,
      status = 'running' and created_at < clock_timestamp() - $3::float8 * interval '1 millisecond' as "isLost"
    from event_query
    where id = $2
      and scope_id = any ($1::int[])
      and created_at > clock_timestamp() - $4::float8 * interval '1 millisecond'`,
    [scopeIds, id, runsMsMax, keptMs],
  )
  if (!row?.isLost) return row
  return { ...row, status: 'failed', error: { code: 'service_unavailable', message: 'The query was lost. Ask again.' } }
}

export async function deleteQueries(sql: Sql, { olderThanMs }: { olderThanMs: number }): Promise<void> {
  await sql.query(
    `delete from event_query where created_at < clock_timestamp() - $1::float8 * interval '1 millisecond'`,
    [olderThanMs],
  )
}

/** Their answers may name customers by what these are called. Those under way may have read so already: they fail. */
export async function eraseQueries(tx: Tx, { scopeId }: Scope): Promise<void> {
  await tx.query(
    `update event_query
    set status = 'failed', error = $2::jsonb
    where scope_id = $1
      and status = 'running'`,
    [scopeId, JSON.stringify({ code: 'service_unavailable', message: 'A customer was deleted meanwhile. Ask again.' })],
  )
  // After it, so that it sees those too that ended while that one waited for them.
  await tx.query(`delete from event_query where scope_id = $1 and status = 'completed'`, [scopeId])
}
