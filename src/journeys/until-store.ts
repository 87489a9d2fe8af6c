import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'

/** What a record had by then, as a merge would have noted it. */
export async function selectUntil(
  sql: Sql,
  { scopeId }: Scope,
  customerId: string,
  until: number,
): Promise<{
  journeys: string[]
  enrolments: { experienceId: number; count: number; times: number[] }[]
  occurrences: string[]
}> {
  const journeys = await sql.query<{ id: string; experienceId: number; isLater: boolean; countedAt: number | null }>(
    `select j.id, j.experience_id as "experienceId", t.at_ms > $3 as "isLater",
       case when j.end_reason is distinct from 'refused' then (t.input::jsonb ->> 'at')::float8 end as "countedAt"
     from journey j
     join journey_transition t on t.scope_id = j.scope_id and t.journey_id = j.id and t.rev = 1
     where j.scope_id = $1
       and j.customer_id = $2`,
    [scopeId, customerId, until],
  )
  const enrolments = await sql.query<{ experienceId: number; count: number; times: bigint[] }>(
    `select experience_id as "experienceId", count, times
     from experience_enrolment
     where scope_id = $1
       and customer_id = $2`,
    [scopeId, customerId],
  )
  const occurrences = await sql.query<{ id: bigint }>(
    `select id
     from journey_occurrence
     where scope_id = $1
       and customer_id = $2
       and at_ms <= $3`,
    [scopeId, customerId, until],
  )
  const later = journeys.filter(({ isLater, countedAt }) => isLater && countedAt !== null)
  return {
    journeys: journeys.filter(({ isLater }) => !isLater).map(({ id }) => id),
    enrolments: enrolments
      .map((row) => {
        const own = later.filter(({ experienceId }) => experienceId === row.experienceId)
        return countedUntil(
          row,
          own.map(({ countedAt }) => countedAt),
          until,
        )
      })
      .filter(({ count }) => count > 0),
    occurrences: occurrences.map(({ id }) => String(id)),
  }
}

/** A device may report afterwards that it began before: `later` are the times of journeys that were not there by then. */
function countedUntil(
  { experienceId, count, times }: { experienceId: number; count: number; times: readonly bigint[] },
  later: readonly (number | null)[],
  until: number,
): { experienceId: number; count: number; times: number[] } {
  const left = times.map(Number)
  for (const at of later) {
    const i = left.indexOf(at ?? Number.NaN)
    if (i >= 0) left.splice(i, 1)
  }
  const own = left.filter((time) => time <= until)
  // Who was held out was counted without a journey.
  return { experienceId, count: count - later.length - (left.length - own.length), times: own }
}
