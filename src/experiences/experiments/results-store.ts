import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** What a customer has seen in a phase. Instants in Unix milliseconds. */
export interface SeenUnit {
  customerId: string
  /** Null: nothing that counts. */
  variantId: string | null
  exposedAtMs: number | null
  isMismatch: boolean
  /** Of the weights that it was assigned by; null: its assignment is gone. */
  weightPeriod: number | null
  crossover: boolean
}

/** By customer, behind `after`. Assignments are looked up one by one: joined without statistics, each is read once for each unit. */
export function selectSeen(
  sql: Sql,
  { scopeId }: Scope,
  { experimentId, phase }: { experimentId: number; phase: number },
  { after, limit }: { after: string; limit: number },
): Promise<SeenUnit[]> {
  return sql.query<SeenUnit>(
    `select e.customer_id as "customerId", e.variant_id as "variantId", e.exposed_at_ms::float8 as "exposedAtMs",
       e.mismatch_at_ms is not null as "isMismatch", a.weight_period as "weightPeriod",
       coalesce(a.crossover, false) as crossover
     from experiment_exposure e
     left join lateral (
       select weight_period, crossover
       from experiment_assignment
       where scope_id = $1
         and experiment_id = e.experiment_id
         and phase = e.phase
         and customer_id = e.customer_id
       limit 1
     ) a on true
     where e.scope_id = $1
       and e.experiment_id = $2
       and e.phase = $3
       and e.customer_id > $4
     order by e.customer_id
     limit $5`,
    [scopeId, experimentId, phase, after, limit],
    'experiments_seen',
  )
}
