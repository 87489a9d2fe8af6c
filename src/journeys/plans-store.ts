import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'

export type PointerState = 'live' | 'paused'

/** What is live, or paused, in an app. */
export interface Pointer {
  appId: string
  state: PointerState
  buildId: string
}

export async function selectLive(sql: Sql, { scopeId }: Scope): Promise<Pointer[]> {
  return sql.query<Pointer>(
    `select pp.app_id as "appId", pp.status as state, p.build_id as "buildId"
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     where pp.scope_id = $1
       and pp.status <> 'unpublished'
     order by pp.experience_id, pp.app_id`,
    [scopeId],
  )
}

/** What is live or paused of one Experience, by its id or key, in one app. */
export async function selectStartable(
  sql: Sql,
  { scopeId }: Scope,
  { experience, appId }: { experience: string; appId: string },
): Promise<Pointer | undefined> {
  const rows = await sql.query<Pointer>(
    `select pp.app_id as "appId", pp.status as state, p.build_id as "buildId"
     from experience e
     join publication_pointer pp on pp.scope_id = e.scope_id and pp.app_id = $3 and pp.experience_id = e.id
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     where e.scope_id = $1
       and (e.public_id = $2 or e.key = $2)
       and e.status <> 'archived'
       and pp.status <> 'unpublished'
     order by e.public_id = $2 desc
     limit 1`,
    [scopeId, experience, appId],
  )
  return rows[0]
}

/** A version that a device names. */
export interface NamedVersion {
  appId: string
  experienceId: string
  versionId: string
}

/** The newest build of each that was ever live in that app. */
export async function selectBuildsOf(
  sql: Sql,
  { scopeId }: Scope,
  named: readonly NamedVersion[],
): Promise<(NamedVersion & { buildId: string })[]> {
  return sql.query<NamedVersion & { buildId: string }>(
    `select named.app_id as "appId", named.experience as "experienceId", named.version as "versionId",
       p.build_id as "buildId"
     from unnest($2::text[], $3::text[], $4::text[]) as named (app_id, experience, version)
     join experience e on e.scope_id = $1 and e.public_id = named.experience
     join experience_version v on v.scope_id = $1 and v.experience_id = e.id and v.public_id = named.version
     join lateral (
       select build_id
       from publication
       where scope_id = $1
         and experience_id = e.id
         and app_id = named.app_id
         and version_number = v.version_number
       order by seq desc
       limit 1
     ) p on true`,
    [
      scopeId,
      named.map(({ appId }) => appId),
      named.map(({ experienceId }) => experienceId),
      named.map(({ versionId }) => versionId),
    ],
  )
}

/** The apps that each customer's events came from, the last first: as far as the newest 200 events tell. */
export async function selectLastApps(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<Map<string, string[]>> {
  if (customerIds.length === 0) return new Map()
  const rows = await sql.query<{ customer: string; apps: string[] }>(
    `select c.id as customer, array(
       select app_id
       from (
         select distinct on (app_id) app_id, pos
         from (
           select app_id, pos
           from event
           where scope_id = $1
             and customer_id = c.id
             and app_id is not null
           order by ts desc
           limit 200
         ) newest
         order by app_id, pos desc
       ) apps
       order by pos desc
     ) as apps
     from unnest($2::uuid[]) as c (id)`,
    [scopeId, customerIds],
  )
  return new Map(rows.map(({ customer, apps }) => [customer, apps]))
}
