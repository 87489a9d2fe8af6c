import type { Sql } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Ms } from '../types.ts'

export interface StartRecord {
  id: string
  appId: string
  customerId: string
  key: string
  status: 'started' | 'ineligible'
  reason: string | null
  journeyId: string | null
  at: Ms
}

/** What began journeys of an Experience through the server, or did not; newest first. */
export async function selectStarts(
  sql: Sql,
  { scopeId, id: experienceId }: { scopeId: number; id: number },
  customerId: string | null,
  { limit, after }: Page,
): Promise<StartRecord[]> {
  const rows = await sql.query<Omit<StartRecord, 'id' | 'at'> & { id: bigint; at: bigint }>(
    `select id, app_id as "appId", customer_id as "customerId", key, status, reason, journey_id as "journeyId", at_ms as at
     from journey_occurrence
     where scope_id = $1
       and experience_id = $2
       and ($3::uuid is null or customer_id = $3)
       and ($4::bigint is null or id < $4)
     order by id desc
     limit $5`,
    [scopeId, experienceId, customerId, after, limit],
  )
  return rows.map((row) => ({ ...row, id: String(row.id), at: Number(row.at) }))
}

export interface SectionCounts {
  sectionKey: string
  /** Offered, or begun by a device. */
  armed: number
  started: number
  outcomes: Record<string, number>
}

/** Of the legs of one version, in all apps. */
export async function selectFunnel(
  sql: Sql,
  { scopeId, id: experienceId }: { scopeId: number; id: number },
  versionNumber: number,
): Promise<SectionCounts[]> {
  const rows = await sql.query<{ section: string; outcome: string | null; armed: bigint; started: bigint }>(
    `select l.section_key as section, l.outcome, count(*) as armed, count(l.started_at_ms) as started
     from journey j
     join journey_leg l on l.scope_id = j.scope_id and l.journey_id = j.id and l.version_number = $3
     where j.scope_id = $1
       and j.experience_id = $2
     group by l.section_key, l.outcome
     order by l.section_key, l.outcome`,
    [scopeId, experienceId, versionNumber],
  )
  const sections = new Map<string, SectionCounts>()
  for (const { section, outcome, armed, started } of rows) {
    const counts = sections.get(section) ?? { sectionKey: section, armed: 0, started: 0, outcomes: {} }
    counts.armed += Number(armed)
    counts.started += Number(started)
    if (outcome !== null) counts.outcomes[outcome] = Number(armed)
    sections.set(section, counts)
  }
  return [...sections.values()]
}
