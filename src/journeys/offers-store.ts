import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'

interface Leg {
  appId: string
  versionId: string
  legId: string
  descriptorSha256: string
}

/** A leg as it was delivered in an app. */
export interface DeliveredLeg {
  experienceId: number
  versionNumber: number
  plan: string
  descriptor: string
  /** Unix milliseconds; null: it holds now. */
  replacedAt: number | null
}

/** The newest publication that delivered these very bytes for the leg. */
export async function selectDeliveredLeg(sql: Sql, { scopeId }: Scope, leg: Leg): Promise<DeliveredLeg | undefined> {
  const [row] = await sql.query<DeliveredLeg>(
    `select p.experience_id as "experienceId", p.version_number as "versionNumber", p.plan,
       convert_from(r.descriptor, 'UTF8') as descriptor,
       (extract(epoch from least(
         (select min(next.published_at)
           from publication next
           where next.scope_id = p.scope_id
             and next.app_id = p.app_id
             and next.experience_id = p.experience_id
             and next.seq > p.seq),
         case when pp.seq = p.seq and pp.status = 'unpublished' then pp.changed_at end)) * 1000)::float8 as "replacedAt"
     from publication_leg l
     join publication p on p.scope_id = l.scope_id and p.app_id = l.app_id and p.seq = l.seq
     join experience_version v on v.scope_id = p.scope_id and v.experience_id = p.experience_id
       and v.version_number = p.version_number
     join publication_pointer pp on pp.scope_id = p.scope_id and pp.app_id = p.app_id
       and pp.experience_id = p.experience_id
     join release r on r.scope_id = l.scope_id and r.descriptor_sha256 = l.descriptor_sha256
     where l.scope_id = $1
       and l.descriptor_sha256 = $2
       and l.app_id = $3
       and l.leg_id = $4
       and v.public_id = $5
     order by p.seq desc
     limit 1`,
    [scopeId, leg.descriptorSha256, leg.appId, leg.legId, leg.versionId],
  )
  return row
}

/** Where a journey is now. */
export interface CurrentLeg {
  customerId: string
  appId: string
  experienceId: number
  versionNumber: number
  /** Null: it is in no leg, or has ended. */
  legId: string | null
}

export async function selectCurrentLeg(
  sql: Sql,
  { scopeId }: Scope,
  journeyId: string,
): Promise<CurrentLeg | undefined> {
  const [row] = await sql.query<CurrentLeg>(
    `select j.customer_id as "customerId", j.app_id as "appId", j.experience_id as "experienceId",
       j.version_number as "versionNumber", case when j.status in ('armed', 'on_device') then l.leg_id end as "legId"
     from journey j
     left join journey_leg l on l.scope_id = j.scope_id and l.journey_id = j.id and l.generation = j.generation
     where j.scope_id = $1
       and j.id = $2`,
    [scopeId, journeyId],
  )
  return row
}
