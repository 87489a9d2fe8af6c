import type { Sql, Tx } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { forgetRowsAtOnce } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

/** A row of experiment_assignment or experiment_exposure, by the names of its columns. */
export type StoredRow = JsonObject

const assignmentColumns =
  'experiment_id, phase, customer_id, variant_id, is_holdout, reason, weight_period, assigned_at_ms, crossover'
const exposureColumns =
  'experiment_id, phase, customer_id, variant_id, exposed_at_ms, event_uuid, fallback_at_ms, mismatch_at_ms'

/** Of one customer, held until the transaction ends. */
export async function selectRows(
  tx: Tx,
  { scopeId }: Scope,
  customerId: string,
): Promise<{ assignments: StoredRow[]; exposures: StoredRow[] }> {
  const of = (table: string, columns: string) =>
    tx.query<StoredRow>(
      `select ${columns.replaceAll(/\w+_ms/g, '$&::float8')}
       from ${table}
       where scope_id = $1
         and customer_id = $2
       order by experiment_id, phase
       for update`,
      [scopeId, customerId],
    )
  return {
    assignments: await of('experiment_assignment', assignmentColumns),
    exposures: await of('experiment_exposure', exposureColumns),
  }
}

/** Rows that are there already stay. */
export async function insertAssignmentRows(tx: Tx, { scopeId }: Scope, rows: readonly StoredRow[]): Promise<void> {
  await tx.query(
    `insert into experiment_assignment (scope_id, ${assignmentColumns})
     select $1, ${assignmentColumns}
     from jsonb_to_recordset($2::jsonb) as r(experiment_id int, phase int, customer_id uuid, variant_id text,
       is_holdout boolean, reason text, weight_period int, assigned_at_ms bigint, crossover boolean)
     order by experiment_id, phase
     on conflict do nothing`,
    [scopeId, JSON.stringify(rows)],
  )
}

/** In place of those that are there. */
export async function replaceExposureRows(tx: Tx, { scopeId }: Scope, rows: readonly StoredRow[]): Promise<void> {
  await tx.query(
    `insert into experiment_exposure (scope_id, ${exposureColumns})
     select $1, ${exposureColumns}
     from jsonb_to_recordset($2::jsonb) as r(experiment_id int, phase int, customer_id uuid, variant_id text,
       exposed_at_ms bigint, event_uuid uuid, fallback_at_ms bigint, mismatch_at_ms bigint)
     order by experiment_id, phase
     on conflict (scope_id, experiment_id, phase, customer_id) do update
     set variant_id = excluded.variant_id, exposed_at_ms = excluded.exposed_at_ms, event_uuid = excluded.event_uuid,
       fallback_at_ms = excluded.fallback_at_ms, mismatch_at_ms = excluded.mismatch_at_ms`,
    [scopeId, JSON.stringify(rows)],
  )
}

/** Two different variants have met in this customer. */
export async function markCrossover(
  tx: Tx,
  { scopeId }: Scope,
  customerId: string,
  phases: readonly { experimentId: number; phase: number }[],
): Promise<void> {
  await tx.query(
    `update experiment_assignment a
     set crossover = true
     from unnest($3::int[], $4::int[]) as u(experiment_id, phase)
     where a.scope_id = $1
       and a.experiment_id = u.experiment_id
       and a.phase = u.phase
       and a.customer_id = $2`,
    [scopeId, customerId, phases.map(({ experimentId }) => experimentId), phases.map(({ phase }) => phase)],
  )
}

export async function deleteExposureRows(
  tx: Tx,
  { scopeId }: Scope,
  customerId: string,
  phases: readonly { experimentId: number; phase: number }[],
): Promise<void> {
  await tx.query(
    `delete from experiment_exposure e
     using unnest($3::int[], $4::int[]) as u(experiment_id, phase)
     where e.scope_id = $1
       and e.experiment_id = u.experiment_id
       and e.phase = u.phase
       and e.customer_id = $2`,
    [scopeId, customerId, phases.map(({ experimentId }) => experimentId), phases.map(({ phase }) => phase)],
  )
}

/** True: none is left. */
export async function deleteRowsOf(sql: Sql, { scopeId }: Scope, customerIds: readonly string[]): Promise<boolean> {
  let left = false
  for (const table of ['experiment_assignment', 'experiment_exposure']) {
    const rows = await sql.query(
      `delete from ${table}
       where (scope_id, experiment_id, phase, customer_id) in (
         select scope_id, experiment_id, phase, customer_id
         from ${table}
         where scope_id = $1
           and customer_id = any($2)
         limit ${forgetRowsAtOnce}
       )
       returning phase`,
      [scopeId, customerIds],
    )
    left ||= rows.length === forgetRowsAtOnce
  }
  return !left
}
