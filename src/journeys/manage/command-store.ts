import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Ms } from '../types.ts'

/** Open journeys of a customer. */
export async function selectOpenOf(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<OpenJourney[]> {
  return sql.query<OpenJourney>(
    `select j.id, j.customer_id as "customerId", j.app_id as "appId", j.experience_id as "experienceId", j.held
     from journey j
     where j.scope_id = $1
       and j.customer_id = any($2::uuid[])
       and j.ended_at_ms is null
     order by j.id`,
    [scopeId, customerIds],
  )
}

export interface OpenJourney {
  id: string
  customerId: string
  appId: string
  experienceId: number
  held: boolean
}

/** The next open journeys of an Experience in an app, of those begun by then, behind `after`, in the order of their ids. */
export async function selectOpenIn(
  sql: Sql,
  { scopeId }: Pick<Scope, 'scopeId'>,
  { experienceId, appId, begunBy, after, limit }: OpenIn,
): Promise<OpenJourney[]> {
  return sql.query<OpenJourney>(
    `select j.id, j.customer_id as "customerId", j.app_id as "appId", j.experience_id as "experienceId", j.held
     from journey j
     where j.scope_id = $1
       and j.experience_id = $2
       and j.app_id = $3
       and j.ended_at_ms is null
       and ($4::uuid is null or j.id > $4)
       and exists (
         select
         from journey_transition t
         where t.scope_id = j.scope_id
           and t.journey_id = j.id
           and t.rev = 1
           and t.at_ms <= $5)
     order by j.id
     limit $6`,
    [scopeId, experienceId, appId, after, begunBy, limit],
  )
}

interface OpenIn {
  experienceId: number
  appId: string
  begunBy: Ms
  after: string | null
  limit: number
}

/** False: they rested already. */
export async function insertPause(tx: Tx, { scopeId }: Scope, customerId: string, at: Ms): Promise<boolean> {
  const rows = await tx.query(
    `insert into journey_pause (scope_id, customer_id, at_ms)
     values ($1, $2, $3)
     on conflict do nothing
     returning 1`,
    [scopeId, customerId, at],
  )
  return rows.length > 0
}

export async function deletePause(tx: Tx, { scopeId }: Scope, customerId: string): Promise<boolean> {
  const rows = await tx.query(
    `delete from journey_pause
     where scope_id = $1
       and customer_id = $2
     returning 1`,
    [scopeId, customerId],
  )
  return rows.length > 0
}

/** Where what is open is on hold. */
export async function selectHolding(sql: Sql, { scopeId }: Scope): Promise<{ experienceId: number; appId: string }[]> {
  return sql.query<{ experienceId: number; appId: string }>(
    `select experience_id as "experienceId", app_id as "appId"
     from publication_pointer
     where scope_id = $1
       and status = 'paused'
       and holds`,
    [scopeId],
  )
}
