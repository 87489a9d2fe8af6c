import type { Sql } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Context, Conversion, EndReason, Journey, LegStatus, Ms, Status, TimerKind, Trust } from '../types.ts'

/** A journey as people look at it. */
export interface JourneyRecord {
  scopeId: number
  id: string
  experienceId: string
  versionId: string
  appId: string
  customerId: string
  origin: Journey['origin']
  occurrence: string
  status: Status
  endReason: EndReason | null
  endDetail: string | null
  generation: number
  rev: number
  sectionKey: string | null
  stepId: string | null
  trust: Trust
  held: boolean
  context: Context
  conversion: Conversion
  startedAt: Ms
  expiresAt: Ms
  endedAt: Ms | null
  createdAt: Ms
  nextTimer: { kind: TimerKind; dueAt: Ms; rev: number } | null
}

interface JourneyRow {
  scope_id: number
  id: string
  experience: string
  version: string
  app_id: string
  customer_id: string
  origin: JourneyRecord['origin']
  occurrence: string
  status: Status
  end_reason: EndReason | null
  end_detail: string | null
  generation: number
  rev: number
  section_key: string | null
  step_id: string | null
  trust: Trust
  held: boolean
  context: string
  conversion: string
  started_at_ms: bigint
  expires_at_ms: bigint
  ended_at_ms: bigint | null
  created_at_ms: bigint | null
  timer_kind: TimerKind | null
  timer_due_ms: bigint | null
  timer_rev: number | null
}

const select = `
  select j.scope_id, j.id, e.public_id as experience, v.public_id as version, j.app_id, j.customer_id, j.origin,
    j.occurrence, j.status, j.end_reason, j.end_detail, j.generation, j.rev, j.section_key, j.step_id, j.trust, j.held,
    j.context, j.conversion, j.started_at_ms, j.expires_at_ms, j.ended_at_ms, first.at_ms as created_at_ms,
    timer.kind as timer_kind, timer.due_at_ms as timer_due_ms, timer.rev as timer_rev
  from journey j
  join experience e on e.id = j.experience_id
  join experience_version v
    on v.scope_id = j.scope_id and v.experience_id = j.experience_id and v.version_number = j.version_number
  left join journey_transition first on first.scope_id = j.scope_id and first.journey_id = j.id and first.rev = 1
  left join lateral (
    select kind, due_at_ms, rev
    from journey_timer
    where scope_id = j.scope_id
      and journey_id = j.id
      and not parked
    order by due_at_ms, kind
    limit 1
  ) timer on true`

/** What the engine wrote is read back with its types. */
function recordOf(row: JourneyRow): JourneyRecord {
  const { timer_kind: kind, timer_due_ms: dueAt, timer_rev: rev } = row
  return {
    ...{ scopeId: row.scope_id, id: row.id, experienceId: row.experience, versionId: row.version, appId: row.app_id },
    ...{ customerId: row.customer_id, origin: row.origin, occurrence: row.occurrence, status: row.status },
    ...{ endReason: row.end_reason, endDetail: row.end_detail, generation: row.generation, rev: row.rev },
    ...{ sectionKey: row.section_key, stepId: row.step_id, trust: row.trust, held: row.held },
    context: JSON.parse(row.context) as Context,
    conversion: JSON.parse(row.conversion) as Conversion,
    startedAt: Number(row.started_at_ms),
    expiresAt: Number(row.expires_at_ms),
    endedAt: row.ended_at_ms === null ? null : Number(row.ended_at_ms),
    createdAt: Number(row.created_at_ms ?? row.started_at_ms),
    nextTimer: kind === null || dueAt === null || rev === null ? null : { kind, dueAt: Number(dueAt), rev },
  }
}

export interface JourneyFilter {
  /** Null: any. An empty list: none. */
  customerId: string | null
  /** Id or key. */
  experience: string | null
  status: Status | null
}

/** Newest first, as their ids say. */
export async function selectJourneyRecords(
  sql: Sql,
  { scopeId }: Scope,
  { customerId, experience, status }: JourneyFilter,
  { limit, after }: Page,
): Promise<JourneyRecord[]> {
  const rows = await sql.query<JourneyRow>(
    `${select}
     where j.scope_id = $1
       and ($2::uuid is null or j.customer_id = $2)
       and ($3::text is null or j.experience_id in (
         select id from experience where scope_id = $1 and (public_id = $3 or key = $3)))
       and ($4::text is null or j.status = $4)
       and ($5::uuid is null or j.id < $5)
     order by j.id desc
     limit $6`,
    [scopeId, customerId, experience, status, after, limit],
  )
  return rows.map(recordOf)
}

export async function selectJourneyRecord(
  sql: Sql,
  scopes: readonly Scope[],
  id: string,
): Promise<JourneyRecord | undefined> {
  const rows = await sql.query<JourneyRow>(
    `${select}
     where j.scope_id = any($1)
       and j.id = $2
     limit 1`,
    [scopes.map(({ scopeId }) => scopeId), id],
  )
  return rows.map(recordOf)[0]
}

export interface TransitionRecord {
  rev: number
  at: Ms
  input: unknown
  from: string
  to: string
  effects: unknown
}

/** Newest first; `after` is a rev. */
export async function selectTransitions(
  sql: Sql,
  { scopeId, id }: Pick<JourneyRecord, 'scopeId' | 'id'>,
  { limit, after }: Page,
): Promise<TransitionRecord[]> {
  const rows = await sql.query<{
    rev: number
    at_ms: bigint
    input: string
    from_state: string
    to_state: string
    effects: string
  }>(
    `select rev, at_ms, input, from_state, to_state, effects
     from journey_transition
     where scope_id = $1
       and journey_id = $2
       and ($3::int is null or rev < $3)
     order by rev desc
     limit $4`,
    [scopeId, id, after === null ? null : Number(after), limit],
  )
  return rows.map((row) => ({
    ...{ rev: row.rev, at: Number(row.at_ms), from: row.from_state, to: row.to_state },
    ...{ input: JSON.parse(row.input), effects: JSON.parse(row.effects) },
  }))
}

export interface LegRecord {
  generation: number
  legId: string
  sectionKey: string
  /** Of the newest release of its version in the app; null: the version is known no more. */
  descriptorSha256: string | null
  status: LegStatus
  armedAt: Ms | null
  startedAt: Ms | null
  completedAt: Ms | null
  outcome: string | null
  outputs: unknown
  dispositions: string[]
}

/** Newest first; `after` is a generation. */
export async function selectLegs(
  sql: Sql,
  { scopeId, id }: Pick<JourneyRecord, 'scopeId' | 'id'>,
  { limit, after }: Page,
): Promise<LegRecord[]> {
  const rows = await sql.query<{
    generation: number
    leg_id: string
    section_key: string
    sha256: string | null
    status: LegStatus
    armed_at_ms: bigint | null
    started_at_ms: bigint | null
    completed_at_ms: bigint | null
    outcome: string | null
    outputs: string | null
    dispositions: string
  }>(
    `select l.generation, l.leg_id, l.section_key, release.sha256, l.status, l.armed_at_ms, l.started_at_ms,
       l.completed_at_ms, l.outcome, l.outputs, l.dispositions
     from journey_leg l
     join journey j on j.scope_id = l.scope_id and j.id = l.journey_id
     left join lateral (
       select pl.descriptor_sha256 as sha256
       from publication p
       join publication_leg pl
         on pl.scope_id = p.scope_id and pl.app_id = p.app_id and pl.seq = p.seq and pl.leg_id = l.leg_id
       where p.scope_id = j.scope_id
         and p.experience_id = j.experience_id
         and p.app_id = j.app_id
         and p.version_number = l.version_number
       order by p.seq desc, pl.locale
       limit 1
     ) release on true
     where l.scope_id = $1
       and l.journey_id = $2
       and ($3::int is null or l.generation < $3)
     order by l.generation desc
     limit $4`,
    [scopeId, id, after === null ? null : Number(after), limit],
  )
  const instant = (ms: bigint | null) => (ms === null ? null : Number(ms))
  return rows.map((row) => ({
    ...{ generation: row.generation, legId: row.leg_id, sectionKey: row.section_key, status: row.status },
    ...{ descriptorSha256: row.sha256, outcome: row.outcome },
    armedAt: instant(row.armed_at_ms),
    startedAt: instant(row.started_at_ms),
    completedAt: instant(row.completed_at_ms),
    outputs: row.outputs === null ? null : JSON.parse(row.outputs),
    dispositions: JSON.parse(row.dispositions) as string[], // written by the engine
  }))
}
