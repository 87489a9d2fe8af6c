import type { Tx } from '../db/pool.ts'
import type { Pin } from '../experiences/index.ts'
import type { Scope } from '../tenancy/index.ts'

/** The versions that open journeys of a scope run: their legs may be armed as long as those last. */
export function selectPinned(tx: Tx, { scopeId }: Scope): Promise<Pin[]> {
  return tx.query<Pin>(
    `select distinct app_id as "appId", experience_id as "experienceRowId", version_number as "versionNumber"
     from journey
     where scope_id = $1
       and ended_at_ms is null`,
    [scopeId],
  )
}
