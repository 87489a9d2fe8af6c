import { int4s, texts, uuids } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Assignment } from './types.ts'

export interface UnitKey {
  experimentId: number
  phase: number
  customerId: string
}

export type StoredAssignment = UnitKey & Assignment

/** A row as it is written. */
export interface NewAssignment extends StoredAssignment {
  weightPeriod: number
}

interface Row {
  experiment_id: number
  phase: number
  customer_id: string
  variant_id: string
  is_holdout: boolean
}

function assignmentOf(row: Row): StoredAssignment {
  return {
    ...{ experimentId: row.experiment_id, phase: row.phase, customerId: row.customer_id },
    ...{ variantId: row.variant_id, isHoldout: row.is_holdout },
  }
}

/** Those of the units that have one: a look-up in the primary key for each, which the limit keeps whatever the statistics say. */
export async function selectAssignments(
  sql: Sql,
  { scopeId }: Scope,
  units: readonly UnitKey[],
): Promise<StoredAssignment[]> {
  const rows = await sql.query<Row>(
    `select u.experiment_id, u.phase, u.customer_id, a.variant_id, a.is_holdout
     from unnest($2::int[], $3::int[], $4::uuid[]) as u(experiment_id, phase, customer_id)
     cross join lateral (
       select variant_id, is_holdout
       from experiment_assignment
       where scope_id = $1
         and experiment_id = u.experiment_id
         and phase = u.phase
         and customer_id = u.customer_id
       limit 1
     ) a`,
    [scopeId, ...arraysOf(units)],
    'experiments_assignments',
  )
  return rows.map(assignmentOf)
}

/** Those that somebody else stored first are left as they are. Gives what was inserted. In the order of keys, as everybody writes them. */
export async function insertAssignments(
  tx: Tx,
  { scopeId }: Scope,
  assignments: readonly NewAssignment[],
  atMs: number,
): Promise<StoredAssignment[]> {
  const rows = await tx.query<Row>(
    `insert into experiment_assignment
       (scope_id, experiment_id, phase, customer_id, variant_id, is_holdout, reason, weight_period, assigned_at_ms)
     select $1, u.experiment_id, u.phase, u.customer_id, u.variant_id, u.is_holdout = 1, 'hash', u.weight_period, $8
     from unnest($2::int[], $3::int[], $4::uuid[], $5::text[], $6::int[], $7::int[])
       as u(experiment_id, phase, customer_id, variant_id, is_holdout, weight_period)
     order by u.experiment_id, u.phase, u.customer_id
     on conflict do nothing
     returning experiment_id, phase, customer_id, variant_id, is_holdout`,
    [
      scopeId,
      ...arraysOf(assignments),
      texts(assignments.map(({ variantId }) => variantId)),
      int4s(assignments.map(({ isHoldout }) => (isHoldout ? 1 : 0))),
      int4s(assignments.map(({ weightPeriod }) => weightPeriod)),
      atMs,
    ],
    'experiments_assign',
  )
  return rows.map(assignmentOf)
}

function arraysOf(units: readonly UnitKey[]): [Buffer, Buffer, Buffer] {
  return [
    int4s(units.map(({ experimentId }) => experimentId)),
    int4s(units.map(({ phase }) => phase)),
    uuids(units.map(({ customerId }) => customerId)),
  ]
}

/** A row of the list. Instants in Unix milliseconds. */
export interface AssignmentRecord extends Assignment {
  phase: number
  customerId: string
  reason: 'hash' | 'merged'
  assignedAtMs: number
  firstExposedAtMs: number | null
  crossover: boolean
}

/** By phase and customer. `after`: `<phase>_<customer>`. */
export async function selectAssignmentPage(
  sql: Sql,
  { scopeId }: Scope,
  { experimentId, customerId }: { experimentId: number; customerId: string | null },
  { limit, after }: Page,
): Promise<AssignmentRecord[]> {
  const [phase = null, last = null] = after?.split('_') ?? []
  const rows = await sql.query<
    Row & { reason: 'hash' | 'merged'; assigned: number; exposed: number | null; crossover: boolean }
  >(
    `select a.phase, a.customer_id, a.variant_id, a.is_holdout, a.reason, a.crossover,
       a.assigned_at_ms::float8 as assigned, e.exposed_at_ms::float8 as exposed
     from experiment_assignment a
     left join lateral (
       select exposed_at_ms
       from experiment_exposure
       where scope_id = $1
         and experiment_id = a.experiment_id
         and phase = a.phase
         and customer_id = a.customer_id
       limit 1
     ) e on true
     where a.scope_id = $1
       and a.experiment_id = $2
       and ($3::uuid is null or a.customer_id = $3)
       and ($4::int is null or (a.phase, a.customer_id) > ($4, $5::uuid))
     order by a.phase, a.customer_id
     limit $6`,
    [scopeId, experimentId, customerId, phase, last, limit],
  )
  return rows.map((row) => ({
    ...{ phase: row.phase, customerId: row.customer_id, variantId: row.variant_id, isHoldout: row.is_holdout },
    ...{ reason: row.reason, assignedAtMs: row.assigned, firstExposedAtMs: row.exposed, crossover: row.crossover },
  }))
}
