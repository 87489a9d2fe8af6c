import type { Sql } from '../../db/pool.ts'
import type { Plan } from '../../experiences/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { PinnedPlan } from '../plan.ts'

interface PlanRow {
  build_id: string
  experience_id: number
  experience: string
  version_number: number
  version: string
  plan: string
}

/** By the ids of builds, which name content: of several publications of one, any will do. */
export async function selectPinnedPlans(
  sql: Sql,
  { scopeId }: Scope,
  builds: readonly { appId: string; buildId: string }[],
): Promise<PinnedPlan[]> {
  const rows = await sql.query<PlanRow>(
    `select p.build_id, p.experience_id, e.public_id as experience, p.version_number, v.public_id as version, p.plan
     from unnest($2::text[], $3::text[]) as k(app_id, build_id)
     cross join lateral (
       select build_id, experience_id, version_number, plan
       from publication
       where scope_id = $1
         and app_id = k.app_id
         and build_id = k.build_id
       limit 1
     ) p
     join experience e on e.id = p.experience_id
     join experience_version v
       on v.scope_id = $1 and v.experience_id = p.experience_id and v.version_number = p.version_number`,
    [scopeId, builds.map(({ appId }) => appId), builds.map(({ buildId }) => buildId)],
  )
  return rows.map((row) => ({
    ...(JSON.parse(row.plan) as Plan), // made by the compiler
    buildId: row.build_id,
    experienceId: row.experience_id,
    experiencePublicId: row.experience,
    versionNumber: row.version_number,
    versionPublicId: row.version,
  }))
}
