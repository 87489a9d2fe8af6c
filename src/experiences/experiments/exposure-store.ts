import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { assert } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { UnitKey } from './assignment-store.ts'

/** By id or key: its id, and when its phases began and ended. Instants in Unix milliseconds. */
export interface KnownPhase {
  name: string
  experimentId: number
  phase: number
  startedAtMs: number
  endedAtMs: number | null
}

/** What began, in the order of phases. */
export async function selectPhases(sql: Sql, { scopeId }: Scope, names: readonly string[]): Promise<KnownPhase[]> {
  return sql.query<KnownPhase>(
    `select n.name, x.id as "experimentId", p.phase, p.started_at_ms::float8 as "startedAtMs",
       p.ended_at_ms::float8 as "endedAtMs"
     from unnest($2::text[]) as n(name)
     join experiment x on x.scope_id = $1 and (x.public_id = n.name or x.key = n.name)
     join experiment_phase p on p.scope_id = $1 and p.experiment_id = x.id and p.started_at_ms is not null
     order by x.public_id = n.name desc, x.id, p.phase`,
    [scopeId, names],
  )
}

/** What a unit was assigned, and when. */
export async function selectAssigned(
  sql: Sql,
  { scopeId }: Scope,
  units: readonly UnitKey[],
): Promise<(UnitKey & { variantId: string; isHoldout: boolean; assignedAtMs: number })[]> {
  return sql.query(
    `select u.experiment_id as "experimentId", u.phase, u.customer_id as "customerId", a.variant_id as "variantId",
       a.is_holdout as "isHoldout", a.assigned_at_ms::float8 as "assignedAtMs"
     from unnest($2::int[], $3::int[], $4::uuid[]) as u(experiment_id, phase, customer_id)
     cross join lateral (
       select variant_id, is_holdout, assigned_at_ms
       from experiment_assignment
       where scope_id = $1
         and experiment_id = u.experiment_id
         and phase = u.phase
         and customer_id = u.customer_id
       limit 1
     ) a`,
    [scopeId, ...unitsOf(units)],
    'experiments_assigned',
  )
}

/** What is known of a unit's exposure. */
export interface Exposure extends UnitKey {
  counted: { variantId: string; atMs: number; eventUuid: string | null } | null
  fallbackAtMs: number | null
  mismatchAtMs: number | null
}

/** The earliest of each kind stays, in whatever order they come. Each unit at most once. */
export async function upsertExposures(tx: Tx, { scopeId }: Scope, exposures: readonly Exposure[]): Promise<void> {
  assert(new Set(exposures.map(keyOf)).size === exposures.length, 'each unit is named once')
  const ordered = exposures.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  await tx.query(
    `insert into experiment_exposure as e
       (scope_id, experiment_id, phase, customer_id, variant_id, exposed_at_ms, event_uuid, fallback_at_ms, mismatch_at_ms)
     select $1, u.experiment_id, u.phase, u.customer_id, u.variant_id, u.exposed_at_ms, u.event_uuid::uuid,
       u.fallback_at_ms, u.mismatch_at_ms
     from unnest($2::int[], $3::int[], $4::uuid[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[])
       as u(experiment_id, phase, customer_id, variant_id, exposed_at_ms, event_uuid, fallback_at_ms, mismatch_at_ms)
     on conflict (scope_id, experiment_id, phase, customer_id) do update
     set (variant_id, exposed_at_ms, event_uuid) = (
         select f.variant_id, f.exposed_at_ms, f.event_uuid
         from (
           values (e.variant_id, e.exposed_at_ms, e.event_uuid),
             (excluded.variant_id, excluded.exposed_at_ms, excluded.event_uuid)
         ) as f(variant_id, exposed_at_ms, event_uuid)
         order by f.exposed_at_ms, f.event_uuid
         limit 1
       ),
       fallback_at_ms = least(e.fallback_at_ms, excluded.fallback_at_ms),
       mismatch_at_ms = least(e.mismatch_at_ms, excluded.mismatch_at_ms)`,
    [
      scopeId,
      ...unitsOf(ordered),
      texts(ordered.map(({ counted }) => counted?.variantId ?? null)),
      int8s(ordered.map(({ counted }) => counted?.atMs ?? null)),
      texts(ordered.map(({ counted }) => counted?.eventUuid ?? null)),
      int8s(ordered.map(({ fallbackAtMs }) => fallbackAtMs)),
      int8s(ordered.map(({ mismatchAtMs }) => mismatchAtMs)),
    ],
    'experiments_expose',
  )
}

function unitsOf(units: readonly UnitKey[]): [Buffer, Buffer, Buffer] {
  return [
    int4s(units.map(({ experimentId }) => experimentId)),
    int4s(units.map(({ phase }) => phase)),
    uuids(units.map(({ customerId }) => customerId)),
  ]
}

export function keyOf({ experimentId, phase, customerId }: UnitKey): string {
  return `${String(experimentId).padStart(10, '0')} ${String(phase).padStart(10, '0')} ${customerId}`
}
