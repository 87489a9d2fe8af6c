import type { Sql, Tx } from '../db/pool.ts'
import type { Environment } from '../tenancy/index.ts'

/** A deleted distinct id, without the id: its keyed hash. Named by project, so that it means the same in any copy. */
export interface Tombstone {
  projectId: string
  environment: Environment
  /** In hex. */
  hash: string
  /** ISO 8601. */
  deletedAt: string
}

/** The next ones behind this place, by primary key, and where the next page begins; null: there are no more. */
export async function selectTombstones(
  sql: Sql,
  after: { scopeId: number; hash: string },
  limit: number,
): Promise<{ tombstones: Tombstone[]; next: { scopeId: number; hash: string } | null }> {
  const rows = await sql.query<Tombstone & { scopeId: number }>(
    `select t.scope_id as "scopeId", s.project_id as "projectId", s.environment, encode(t.id_hash, 'hex') as hash,
       to_char(t.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "deletedAt"
     from customer_tombstone t
     join scope s on s.id = t.scope_id
     where (t.scope_id, t.id_hash) > ($1, decode($2, 'hex'))
     order by t.scope_id, t.id_hash
     limit $3`,
    [after.scopeId, after.hash, limit],
  )
  const last = rows.length === limit ? rows.at(-1) : undefined
  return { tombstones: rows, next: last ? { scopeId: last.scopeId, hash: last.hash } : null }
}

/** Gives how many were not there yet. Those of a project that is not there mean nobody. */
export async function insertBuried(tx: Tx, tombstones: readonly Tombstone[]): Promise<number> {
  const rows = await tx.query(
    `insert into customer_tombstone (scope_id, id_hash, deleted_at)
     select s.id, decode(t.hash, 'hex'), t.deleted_at
     from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as t(project_id, environment, hash, deleted_at)
     join scope s on s.project_id = t.project_id and s.environment = t.environment
     on conflict do nothing
     returning 1`,
    [
      tombstones.map(({ projectId }) => projectId),
      tombstones.map(({ environment }) => environment),
      tombstones.map(({ hash }) => hash),
      tombstones.map(({ deletedAt }) => deletedAt),
    ],
  )
  return rows.length
}
