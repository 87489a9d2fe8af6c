import type { Sql, Tx } from '../../db/pool.ts'
import { deadErrorCharsMax } from '../../kernel/limits.ts'

export interface Quarantined {
  scopeId: number
  source: 'timer' | 'inbox' | 'outbox'
  journeyId: string | null
  /** The row as it stood. */
  body: string
  error: string
  at: number
}

export async function insertQuarantined(
  tx: Tx,
  { scopeId, source, journeyId, body, error, at }: Quarantined,
): Promise<void> {
  await tx.query(
    `insert into journey_quarantine (scope_id, source, journey_id, body, error, at_ms)
     values ($1, $2, $3, $4, $5, $6)`,
    [scopeId, source, journeyId, body, error.slice(0, deadErrorCharsMax), at],
  )
}

/** What somebody should know of, over all scopes. */
export interface EngineGauges {
  /** How long the oldest timer that is due has waited, and the oldest row of the outbox. */
  timerLagMs: number
  outboxLagMs: number
  outboxRows: number
  quarantined: number
  dispositions: { disposition: string; count: number }[]
}

export async function selectGauges(sql: Sql): Promise<EngineGauges> {
  const [row] = await sql.query<{
    timer: number | null
    outbox: number | null
    outbox_rows: bigint
    quarantined: bigint
    dispositions: { disposition: string; count: number }[] | null
  }>(
    `with clock as (select date_part('epoch', clock_timestamp()) * 1000 as now)
     select
       (select clock.now - min(look_at_ms) from journey_timer where not parked) as timer,
       (select clock.now - min(due_at_ms) from journey_outbox) as outbox,
       (select count(*) from (select from journey_outbox limit 100000) o) as outbox_rows,
       (select count(*) from (select from journey_quarantine limit 100000) q) as quarantined,
       (
         select json_agg(json_build_object('disposition', disposition, 'count', n) order by disposition)
         from (select disposition, sum(count)::float8 as n from journey_disposition group by disposition) d
       ) as dispositions
     from clock`,
  )
  return {
    timerLagMs: Math.max(Math.round(row?.timer ?? 0), 0),
    outboxLagMs: Math.max(Math.round(row?.outbox ?? 0), 0),
    outboxRows: Number(row?.outbox_rows ?? 0),
    quarantined: Number(row?.quarantined ?? 0),
    dispositions: row?.dispositions ?? [],
  }
}
