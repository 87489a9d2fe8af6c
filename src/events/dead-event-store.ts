import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import type { Page } from '../kernel/page.ts'
import type { Scope } from '../tenancy/index.ts'
import { lanesPayload } from './append-store.ts'
import type { LogRow } from './lane-store.ts'
import type { Stream } from './types.ts'

/** An event that could not be applied: accepted, stored here, without any effect. */
export interface DeadEvent {
  scopeId: number
  id: bigint
  stream: Stream
  /** Its place in the log: generation, transaction id and sequence. */
  logPosition: string
  uuid: string
  distinctId: string
  appId: string | null
  receivedAt: Date
  /** The EventPayload as JSON. */
  text: string
  error: string
  /** SQLSTATE, when the database refused it. */
  errorCode: string | null
  diedAt: Date
  replayedAt: Date | null
}

const columns = `
  scope_id as "scopeId", id, case stream when 0 then 'live' else 'historical' end as stream,
  concat_ws('.', gen, xid::text, seq) as "logPosition", uuid, distinct_id as "distinctId", app_id as "appId",
  received_at as "receivedAt", payload as text, error, error_code as "errorCode", died_at as "diedAt",
  replayed_at as "replayedAt"`

/** The row of the log as it stands, with why. */
export async function insertDeadEvent(
  tx: Tx,
  { scopeId }: Scope,
  stream: Stream,
  { row, error, errorCode }: { row: LogRow; error: string; errorCode: string | null },
): Promise<void> {
  await tx.query(
    `insert into dead_event (scope_id, stream, gen, xid, seq, uuid, distinct_id, app_id, received_at, payload, error, error_code)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      ...[scopeId, stream === 'live' ? 0 : 1, row.gen, row.xid, row.seq, row.uuid, row.distinctId, row.appId],
      ...[new Date(row.receivedAt), row.text, error, errorCode],
    ],
  )
}

/** Newest first. */
export async function listDeadEvents(sql: Sql, { scopeId }: Scope, { after, limit }: Page): Promise<DeadEvent[]> {
  return sql.query<DeadEvent>(
    `select ${columns}
    from dead_event
    where scope_id = $1
      and ($2::bigint is null or id < $2)
    order by id desc
    limit $3`,
    [scopeId, after, limit],
  )
}

/** Held, so that of two replays one waits and finds it done. */
export async function lockDeadEvent(tx: Tx, scopes: readonly Scope[], id: bigint): Promise<DeadEvent | undefined> {
  const [found] = await tx.query<DeadEvent>(
    `select ${columns}
    from dead_event
    where scope_id = any ($1::int[])
      and id = $2
    for update`,
    [scopes.map(({ scopeId }) => scopeId), id],
  )
  return found
}

export async function isTombstoned(tx: Tx, { scopeId, distinctId }: DeadEvent, tombstoneKey: Buffer): Promise<boolean> {
  const found = await tx.query(
    `select true
    from customer_tombstone
    where scope_id = $1
      and id_hash = sha256($2::bytea || convert_to($3, 'UTF8'))`,
    [scopeId, tombstoneKey, distinctId],
  )
  return found.length > 0
}

/** Appends it to the log as it was, and has its lane woken by the COMMIT. */
export async function appendAgain(tx: Tx, { scopeId, id }: DeadEvent): Promise<Date> {
  await tx.query(
    `insert into event_log (lane, stream, uuid, distinct_id, app_id, received_at, payload)
    select scope_id, stream, uuid, distinct_id, app_id, received_at, payload
    from dead_event
    where scope_id = $1
      and id = $2`,
    [scopeId, id],
  )
  await tx.query(`select pg_notify('turnpike_lane', $1)`, [lanesPayload([scopeId])])
  const [row] = await tx.query<{ at: Date }>(
    `update dead_event
    set replayed_at = clock_timestamp()
    where scope_id = $1
      and id = $2
    returning replayed_at as at`,
    [scopeId, id],
  )
  return must(row, 'it is locked').at
}
