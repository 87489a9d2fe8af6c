import type { Pool, Sql, Tx } from '../../db/pool.ts'
import { exportLeaseMs, exportTriesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Instants are Unix milliseconds. */
export interface EventExport {
  id: string
  status: 'pending' | 'running' | 'completed' | 'failed'
  start: number | null
  end: number | null
  events: string[] | null
  fromPosition: bigint
  toPosition: bigint
  error: string | null
  createdAt: number
  completedAt: number | null
  /** Once it is completed. */
  files: ExportFile[]
}

export interface ExportFile {
  n: number
  rows: number
  bytes: number
  sha256: string
}

const ms = (column: string) => `round(date_part('epoch', ${column}) * 1000)`

export async function countOpen(tx: Tx, { scopeId }: Scope): Promise<number> {
  const [row] = await tx.query<{ open: number }>(
    `select count(*)::int as open
    from event_export
    where scope_id = $1
      and status in ('pending', 'running')`,
    [scopeId],
  )
  return row?.open ?? 0
}

/** Holds everything up to the lane's position of now. */
export async function insertExport(
  tx: Tx,
  { scopeId }: Scope,
  { id, start, end, events, fromPosition }: Pick<EventExport, 'id' | 'start' | 'end' | 'events' | 'fromPosition'>,
): Promise<void> {
  await tx.query(
    `insert into event_export (id, scope_id, status, start_at, end_at, events, from_position, to_position, position)
    select $2, $1, 'pending', $3::timestamptz, $4::timestamptz, $5, $6::bigint, coalesce(max(pos), 0), $6::bigint
    from lane
    where id = $1`,
    [
      ...[scopeId, id, start === null ? null : new Date(start).toISOString()],
      ...[end === null ? null : new Date(end).toISOString(), events, fromPosition],
    ],
  )
}

export async function selectExport(sql: Sql, scopeIds: readonly number[], id: string) {
  const [row] = await sql.query<Omit<EventExport, 'files'> & { scopeId: number; files: ExportFile[] | null }>(
    `select e.id, e.scope_id as "scopeId", e.status, ${ms('e.start_at')} as start, ${ms('e.end_at')} as end, e.events,
      e.from_position as "fromPosition", e.to_position as "toPosition", e.error, ${ms('e.created_at')} as "createdAt",
      ${ms('e.completed_at')} as "completedAt", f.files
    from event_export e
    left join lateral (
      select json_agg(json_build_object('n', n, 'rows', rows, 'bytes', octet_length(bytes), 'sha256', encode(sha256, 'hex'))
        order by n) as files
      from event_export_file
      where export_id = e.id
        and e.status = 'completed'
    ) f on true
    where e.id = $2
      and e.scope_id = any ($1::int[])`,
    [scopeIds, id],
  )
  return row && { ...row, files: row.files ?? [] }
}

export async function selectFile(
  sql: Sql,
  scopeIds: readonly number[],
  { id, n }: { id: string; n: number },
): Promise<Buffer | undefined> {
  const [row] = await sql.query<{ bytes: Buffer }>(
    `select f.bytes
    from event_export e
    join event_export_file f on f.export_id = e.id
    where e.id = $2
      and e.scope_id = any ($1::int[])
      and e.status = 'completed'
      and f.n = $3`,
    [scopeIds, id, n],
  )
  return row?.bytes
}

/** An export that this worker writes on, until its lease ends. */
export interface HeldExport {
  id: string
  scopeId: number
  owner: string
  start: number | null
  end: number | null
  events: string[] | null
  position: bigint
  toPosition: bigint
  /** Of the next file. */
  n: number
}

/** The oldest that nobody works on. One that was tried too often is given up instead. */
export async function claimExport(pool: Pool, owner: string): Promise<HeldExport | undefined> {
  await pool.query(
    `update event_export
    set status = 'failed', error = 'It could not be written.', completed_at = clock_timestamp()
    where status in ('pending', 'running')
      and lease_until < clock_timestamp()
      and tries >= ${exportTriesMax}`,
  )
  const [row] = await pool.query<Omit<HeldExport, 'owner'>>(
    `update event_export e
    set status = 'running',
      owner = $1,
      tries = tries + 1,
      lease_until = clock_timestamp() + interval '${exportLeaseMs} milliseconds'
    where id = (
        select id
        from event_export
        where status in ('pending', 'running')
          and lease_until < clock_timestamp()
        order by created_at
        limit 1
        for update skip locked
      )
    returning id, scope_id as "scopeId", ${ms('start_at')} as start, ${ms('end_at')} as end, events, position,
      to_position as "toPosition", (select count(*)::int + 1 from event_export_file where export_id = e.id) as n`,
    [owner],
  )
  return row && { ...row, owner }
}

/** One more file, up to `position`. False: somebody else works on it by now, and nothing was written. */
export async function saveFile(
  tx: Tx,
  { id, owner, n }: HeldExport,
  { position, file }: { position: bigint; file: { rows: number; bytes: Buffer; sha256: Buffer } | null },
): Promise<boolean> {
  const { rowCount } = await tx.client.query(
    `update event_export
    set position = $3,
      tries = 0,
      lease_until = clock_timestamp() + interval '${exportLeaseMs} milliseconds'
    where id = $1
      and owner = $2
      and status = 'running'`,
    [id, owner, position],
  )
  if (rowCount !== 1) return false
  if (file) {
    await tx.query('insert into event_export_file (export_id, n, rows, sha256, bytes) values ($1, $2, $3, $4, $5)', [
      ...[id, n, file.rows, file.sha256, file.bytes],
    ])
  }
  return true
}

/** False: it is no longer ours. */
export async function renewLease(sql: Sql, { id, owner }: HeldExport): Promise<boolean> {
  const rows = await sql.query(
    `update event_export
    set lease_until = clock_timestamp() + interval '${exportLeaseMs} milliseconds'
    where id = $1
      and owner = $2
      and status = 'running'
    returning id`,
    [id, owner],
  )
  return rows.length > 0
}

export async function completeExport(sql: Sql, { id, owner }: HeldExport): Promise<void> {
  await sql.query(
    `update event_export
    set status = 'completed', completed_at = clock_timestamp(), owner = null
    where id = $1
      and owner = $2
      and status = 'running'`,
    [id, owner],
  )
}

/** Anybody may go on with it at once. */
export async function releaseExport(sql: Sql, { id, owner }: HeldExport): Promise<void> {
  await sql.query(
    `update event_export
    set lease_until = '-infinity', owner = null
    where id = $1
      and owner = $2
      and status = 'running'`,
    [id, owner],
  )
}

/** Files of finished exports of a scope go, and those under way begin again: a customer in them was deleted. */
export async function eraseExports(tx: Tx, { scopeId }: Scope): Promise<void> {
  const touched = await tx.query<{ id: string }>(
    `update event_export
    set status = case status when 'completed' then 'failed' else 'pending' end,
      error = case status when 'completed' then 'A customer in it was deleted. Make another one.' end,
      position = from_position,
      owner = null,
      lease_until = '-infinity'
    where scope_id = $1
      and (status = 'running' or status = 'completed')
    returning id`,
    [scopeId],
  )
  // A statement of its own: it also sees the files that whoever held these rows saved while the one above waited.
  await tx.query('delete from event_export_file where export_id = any ($1::text[])', [touched.map(({ id }) => id)])
}

export async function deleteExports(sql: Sql, { olderThanMs }: { olderThanMs: number }): Promise<void> {
  await sql.query(
    `delete from event_export
    where created_at < clock_timestamp() - $1::float8 * interval '1 millisecond'`,
    [olderThanMs],
  )
}
