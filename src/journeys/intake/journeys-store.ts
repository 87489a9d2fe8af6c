import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { AuthoredLeg } from '../measure/origin.ts'
import type { Conversion, Ms, Status } from '../types.ts'

/** What is looked at of a journey before it is told something. */
export interface KnownJourney {
  id: string
  customerId: string
  appId: string
  experienceId: number
  versionNumber: number
  buildId: string
  status: Status
  startedAt: Ms
  conversion: Conversion
}

interface JourneyRow {
  id: string
  customer_id: string
  app_id: string
  experience_id: number
  version_number: number
  build_id: string
  status: Status
  started_at_ms: bigint
  conversion: string
}

const columns = `j.id, j.customer_id, j.app_id, j.experience_id, j.version_number, j.build_id, j.status, j.started_at_ms,
  j.conversion`

function journeyOf(row: JourneyRow): KnownJourney {
  return {
    id: row.id,
    customerId: row.customer_id,
    appId: row.app_id,
    experienceId: row.experience_id,
    versionNumber: row.version_number,
    buildId: row.build_id,
    status: row.status,
    startedAt: Number(row.started_at_ms),
    conversion: JSON.parse(row.conversion) as Conversion, // written by the engine
  }
}

export async function selectJourneys(
  sql: Sql,
  { scopeId }: Scope,
  ids: readonly string[],
): Promise<Map<string, KnownJourney>> {
  if (ids.length === 0) return new Map()
  const rows = await sql.query<JourneyRow>(
    `select ${columns}
     from journey j
     where j.scope_id = $1
       and j.id = any($2::uuid[])`,
    [scopeId, ids],
  )
  return new Map(rows.map((row) => [row.id, journeyOf(row)]))
}

/** Those that are open, or ended with a goal that can still be met; by customer, oldest first. */
export async function selectListening(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
  now: Ms,
): Promise<KnownJourney[]> {
  const rows = await sql.query<JourneyRow>(
    `select ${columns}
     from journey j
     where j.scope_id = $1
       and j.customer_id = any($2::uuid[])
       and (j.ended_at_ms is null or j.watched_until_ms >= $3)
     order by j.id`,
    [scopeId, customerIds, now],
  )
  return rows.map(journeyOf)
}

/** The version of each offer of a leg, by journey and generation. */
export async function selectOffers(
  sql: Sql,
  { scopeId }: Scope,
  asked: readonly { journeyId: string; generation: number }[],
): Promise<(of: { journeyId: string; generation: number }) => { versionNumber: number; legId: string } | undefined> {
  const rows = await sql.query<{ journeyId: string; generation: number; versionNumber: number; legId: string }>(
    `select l.journey_id as "journeyId", l.generation, l.version_number as "versionNumber", l.leg_id as "legId"
     from unnest($2::uuid[], $3::int[]) as asked (journey_id, generation)
     join journey_leg l on l.scope_id = $1 and l.journey_id = asked.journey_id and l.generation = asked.generation`,
    [scopeId, asked.map(({ journeyId }) => journeyId), asked.map(({ generation }) => generation)],
  )
  const byKey = new Map(rows.map((row) => [`${row.journeyId} ${row.generation}`, row]))
  return ({ journeyId, generation }) => byKey.get(`${journeyId} ${generation}`)
}

/** Open journeys that wait for events, by customer and name. */
export async function selectWaiting(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
): Promise<{ customerId: string; eventName: string; journeyId: string }[]> {
  return sql.query<{ customerId: string; eventName: string; journeyId: string }>(
    `select customer_id as "customerId", event_name as "eventName", journey_id as "journeyId"
     from journey_subscription
     where scope_id = $1
       and customer_id = any($2::uuid[])
     order by journey_id`,
    [scopeId, customerIds],
  )
}

/** What a leg of a build sends, from one of its releases. */
export async function selectAuthored(
  sql: Sql,
  { scopeId }: Scope,
  { buildId, legId }: { buildId: string; legId: string },
): Promise<AuthoredLeg | undefined> {
  const rows = await sql.query<{ bytes: Buffer }>(
    `select r.descriptor as bytes
     from publication p
     join publication_leg l on l.scope_id = p.scope_id and l.app_id = p.app_id and l.seq = p.seq and l.leg_id = $3
     join release r on r.scope_id = l.scope_id and r.descriptor_sha256 = l.descriptor_sha256
     where p.scope_id = $1
       and p.build_id = $2
     limit 1`,
    [scopeId, buildId, legId],
  )
  const [row] = rows
  return row && (JSON.parse(row.bytes.toString()) as AuthoredLeg) // a descriptor, made by the compiler
}
