import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Experience } from '../authoring/experience-store.ts'
import type { Pin } from '../deliver/delivery.ts'

/** What becomes of journeys under way when a publication takes over. */
export type InFlight = 'finish' | 'stop' | 'move_armed'

export type PointerStatus = 'live' | 'paused' | 'unpublished'

/** One version live in one app, now or once. */
export interface Publication {
  publicId: string
  experienceId: string
  appId: string
  versionId: string
  versionNumber: number
  buildId: string
  seq: number
  publishedAt: Date
  publishedBy: string
  inFlight: InFlight
  status: PointerStatus | 'superseded'
}

interface PublicationRow {
  public_id: string
  experience_id: string
  app_id: string
  version_id: string
  version_number: number
  build_id: string
  seq: bigint
  published_at: Date
  published_by: string
  in_flight: InFlight
  status: Publication['status']
}

/** The next publishing number of the app. Whoever publishes there next waits until this transaction ends. */
export async function reserveSeq(tx: Tx, scope: Scope, appId: string): Promise<number> {
  const [row] = await tx.query<{ last: bigint }>(
    `insert into publish_seq (scope_id, app_id, last)
     values ($1, $2, 1)
     on conflict (scope_id, app_id) do update set last = publish_seq.last + 1
     returning last`,
    [scope.scopeId, appId],
  )
  return Number(must(row, 'the row was written').last)
}

export async function insertPublication(
  tx: Tx,
  scope: Scope,
  publication: {
    publicId: string
    experience: Experience
    appId: string
    seq: number
    versionNumber: number
    buildId: string
    plan: string
    publishedAt: Date
    publishedBy: string
    inFlight: InFlight
  },
): Promise<void> {
  const { experience, appId, seq } = publication
  await tx.query(
    `insert into publication
       (scope_id, app_id, seq, public_id, experience_id, version_number, build_id, plan, published_at, published_by,
       in_flight)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      ...[scope.scopeId, appId, seq, publication.publicId, experience.id, publication.versionNumber],
      ...[publication.buildId, publication.plan, publication.publishedAt, publication.publishedBy],
      publication.inFlight,
    ],
  )
  await tx.query(
    `insert into publication_pointer (scope_id, app_id, experience_id, seq, status)
     values ($1, $2, $3, $4, 'live')
     on conflict (scope_id, app_id, experience_id) do update set seq = excluded.seq, status = 'live', holds = false, changed_at = now()`,
    [scope.scopeId, appId, experience.id, seq],
  )
}

export async function insertLegs(
  tx: Tx,
  scope: Scope,
  { appId, seq }: { appId: string; seq: number },
  legs: { legId: string; locale: string; sha256: string }[],
): Promise<void> {
  await tx.query(
    `insert into publication_leg (scope_id, app_id, seq, leg_id, locale, descriptor_sha256)
     select $1, $2, $3, unnest($4::text[]), unnest($5::text[]), unnest($6::text[])`,
    [
      ...[scope.scopeId, appId, seq],
      ...[legs.map(({ legId }) => legId), legs.map(({ locale }) => locale), legs.map(({ sha256 }) => sha256)],
    ],
  )
}

/** Apps where it is, or was, published, with what holds there now. */
export async function selectPointers(
  sql: Sql,
  { scopeId, id }: Experience,
): Promise<{ appId: string; status: PointerStatus }[]> {
  return sql.query<{ appId: string; status: PointerStatus }>(
    `select app_id as "appId", status
     from publication_pointer
     where scope_id = $1
       and experience_id = $2
     order by app_id`,
    [scopeId, id],
  )
}

/** Versions that another publication took the place of in their app during the last days. */
export function selectReplaced(tx: Tx, { scopeId }: Scope, days: number): Promise<Pin[]> {
  return tx.query<Pin>(
    `select distinct app_id as "appId", experience_id as "experienceRowId", version_number as "versionNumber"
     from (
       select app_id, experience_id, version_number,
         lead(published_at) over (partition by app_id, experience_id order by seq) as replaced_at
       from publication
       where scope_id = $1
     ) p
     where replaced_at > now() - make_interval(days => $2)`,
    [scopeId, days],
  )
}

export async function updatePointers(
  tx: Tx,
  { scopeId, id }: Experience,
  appIds: string[],
  status: PointerStatus,
): Promise<void> {
  await tx.query(
    `update publication_pointer
     set status = $4, changed_at = now()
     where scope_id = $1
       and experience_id = $2
       and app_id = any($3)`,
    [scopeId, id, appIds, status],
  )
}

const shown = `p.public_id, e.public_id as experience_id, p.app_id, v.public_id as version_id, p.version_number, p.build_id,
  p.seq, p.published_at, p.published_by, p.in_flight,
  coalesce(pp.status, 'superseded') as status`
const joined = `join experience e on e.id = p.experience_id
  join experience_version v
    on v.scope_id = p.scope_id and v.experience_id = p.experience_id and v.version_number = p.version_number`

/** What is published, newest first; `current` leaves out what was superseded. */
export async function selectPublications(
  sql: Sql,
  scopes: Scope[],
  { experienceId, appId, current }: { experienceId?: string | undefined; appId?: string | undefined; current: boolean },
  { limit, after }: Page,
): Promise<Publication[]> {
  const rows = await sql.query<PublicationRow>(
    `select ${shown}
     from publication p
     ${joined}
     left join publication_pointer pp
       on pp.scope_id = p.scope_id and pp.app_id = p.app_id and pp.experience_id = p.experience_id and pp.seq = p.seq
     where p.scope_id = any($1)
       and ($2::text is null or e.public_id = $2)
       and ($3::text is null or p.app_id = $3)
       and (not $4 or pp.seq is not null)
       and ($5::text is null or p.id < (select id from publication where public_id = $5))
     order by p.id desc
     limit $6`,
    [scopes.map(({ scopeId }) => scopeId), experienceId ?? null, appId ?? null, current, after, limit],
  )
  return rows.map(publicationOf)
}

/** What holds now of these Experiences, in each app where they are or were published. */
export async function selectCurrentPublications(sql: Sql, experiences: Experience[]): Promise<Publication[]> {
  const rows = await sql.query<PublicationRow>(
    `select ${shown}
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     ${joined}
     where pp.scope_id = any($1)
       and pp.experience_id = any($2)
     order by pp.app_id`,
    [[...new Set(experiences.map(({ scopeId }) => scopeId))], experiences.map(({ id }) => id)],
  )
  return rows.map(publicationOf)
}

function publicationOf(row: PublicationRow): Publication {
  return {
    publicId: row.public_id,
    experienceId: row.experience_id,
    appId: row.app_id,
    versionId: row.version_id,
    versionNumber: row.version_number,
    buildId: row.build_id,
    seq: Number(row.seq),
    publishedAt: row.published_at,
    publishedBy: row.published_by,
    inFlight: row.in_flight,
    status: row.status,
  }
}
