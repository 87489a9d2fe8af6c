import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Ms } from '../types.ts'

/** Something that could not be told to its journey however often it was tried. */
export interface QuarantineRecord {
  scopeId: number
  id: bigint
  source: 'timer' | 'inbox' | 'outbox'
  customerId: string | null
  journeyId: string | null
  /** The row as it stood, JSON. */
  body: string
  error: string
  at: Ms
}

type Row = Omit<QuarantineRecord, 'at'> & { at: bigint }

const columns = `scope_id as "scopeId", id, source, customer_id as "customerId", journey_id as "journeyId", body, error, at_ms as at`

/** Newest first; `after` is an id. */
export async function selectQuarantined(
  sql: Sql,
  { scopeId }: Scope,
  { limit, after }: Page,
): Promise<QuarantineRecord[]> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from journey_quarantine
     where scope_id = $1
       and ($2::bigint is null or id < $2)
     order by id desc
     limit $3`,
    [scopeId, after, limit],
  )
  return rows.map((row) => ({ ...row, at: Number(row.at) }))
}

/** Takes a row away; undefined: nobody sees one of this id there. */
export async function deleteQuarantined(
  tx: Tx,
  scopes: readonly Scope[],
  id: bigint,
): Promise<QuarantineRecord | undefined> {
  const rows = await tx.query<Row>(
    `delete from journey_quarantine
     where scope_id = any($1)
       and id = $2
     returning ${columns}`,
    [scopes.map(({ scopeId }) => scopeId), id],
  )
  return rows.map((row) => ({ ...row, at: Number(row.at) }))[0]
}

/** Looked at from now on. Of a kind of which the journey has another timer by now it is stale, and left out. */
export async function restoreTimer(
  tx: Tx,
  { scopeId }: Scope,
  { journeyId, kind, rev, dueAt }: { journeyId: string; kind: string; rev: number; dueAt: Ms },
): Promise<void> {
  await tx.query(
    `insert into journey_timer (scope_id, journey_id, kind, rev, due_at_ms, look_at_ms, after_lane, parked)
     values ($1, $2, $3, $4, $5, $5, $3 = 'step', false)
     on conflict do nothing`,
    [scopeId, journeyId, kind, rev, dueAt],
  )
}
