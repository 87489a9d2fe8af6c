import type { Sql } from '../db/pool.ts'
import type { Environment, Scope } from '../tenancy/index.ts'
import type { DeviceStore, Ms, StoreEnvironment } from './types.ts'

export interface MappedClaim {
  scope: Scope
  appId: string
  store: DeviceStore
  storeEnvironment: StoreEnvironment
  evidenceKey: string
  distinctId: string
  evidenceSealed: string
  reason: string
}

/**
 * Claims whose store product had no Product and has one now, or no duration and has one now; few at any time, by the index
 * on store products.
 */
export async function selectMappedClaims(sql: Sql, { now, limit }: { now: Ms; limit: number }): Promise<MappedClaim[]> {
  const rows = await sql.query<{
    scope_id: number
    workspace_id: string
    project_id: string
    environment: Environment
    app_id: string
    store: DeviceStore
    store_environment: StoreEnvironment
    evidence_key: string
    distinct_id: string
    evidence_sealed: string
    reason: string
  }>(
    `select c.scope_id, p.workspace_id, s.project_id, s.environment, c.app_id, c.store, c.store_environment, c.evidence_key,
       c.distinct_id, c.evidence_sealed, c.reason
     from pending_claim c
     join scope s on s.id = c.scope_id
     join project p on p.id = s.project_id and p.deleted_at is null
     join app a on a.id = c.app_id and a.deleted_at is null
     where c.reason in ('unmapped_product', 'duration_not_configured')
       and c.evidence_sealed is not null
       and c.distinct_id is not null
       and c.due_at_ms <= $1
       and c.expires_at_ms > $1
       and exists (
         select from store_link l
         where l.scope_id = c.scope_id
           and l.store = c.store
           and l.store_product_id = c.store_product_id
           and (c.reason = 'unmapped_product' or l.duration is not null)
       )
     order by c.created_at_ms
     limit $2`,
    [now, limit],
  )
  return rows.map((row) => ({
    scope: {
      ...{ scopeId: row.scope_id, workspaceId: row.workspace_id },
      ...{ projectId: row.project_id, environment: row.environment },
    },
    ...{ appId: row.app_id, store: row.store, storeEnvironment: row.store_environment },
    ...{ evidenceKey: row.evidence_key, distinctId: row.distinct_id, evidenceSealed: row.evidence_sealed },
    reason: row.reason,
  }))
}

export async function removeClaim(sql: Sql, claim: MappedClaim): Promise<void> {
  await sql.query(
    `delete from pending_claim
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = $5
       and reason = $6`,
    [...keyOf(claim), claim.reason],
  )
}

export async function postponeClaim(sql: Sql, claim: MappedClaim, until: Ms): Promise<void> {
  await sql.query(
    `update pending_claim
     set due_at_ms = $6
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment = $4
       and evidence_key = $5`,
    [...keyOf(claim), until],
  )
}

function keyOf({ scope, appId, store, storeEnvironment, evidenceKey }: MappedClaim): unknown[] {
  return [scope.scopeId, appId, store, storeEnvironment, evidenceKey]
}
