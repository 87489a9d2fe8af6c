import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { releaseInsertBytesMax } from '../../kernel/limits.ts'
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

interface SignedRelease {
  sha256: string
  bytes: Buffer
  signingKeyId: number
  signature: Buffer
}

/** A few megabytes at a time: an array is sent as text. */
export async function insertReleases(tx: Tx, scope: Scope, releases: SignedRelease[]): Promise<void> {
  let waiting: SignedRelease[] = []
  let size = 0
  for (const release of releases) {
    if (waiting.length > 0 && size + release.bytes.length > releaseInsertBytesMax) {
      await insertSome(tx, scope, waiting)
      waiting = []
      size = 0
    }
    waiting.push(release)
    size += release.bytes.length
  }
  await insertSome(tx, scope, waiting)
}

async function insertSome(tx: Tx, scope: Scope, releases: SignedRelease[]): Promise<void> {
  const digests = releases.map(({ sha256 }) => sha256)
  await tx.query(
    `insert into release (scope_id, descriptor_sha256, descriptor)
     select $1, unnest($2::text[]), unnest($3::bytea[])
     on conflict do nothing`,
    [scope.scopeId, digests, releases.map(({ bytes }) => bytes)],
  )
  await tx.query(
    `insert into release_signature (scope_id, descriptor_sha256, signing_key_id, signature)
     select $1, unnest($2::text[]), unnest($3::int[]), unnest($4::bytea[])
     on conflict do nothing`,
    [
      ...[scope.scopeId, digests, releases.map(({ signingKeyId }) => signingKeyId)],
      releases.map(({ signature }) => signature),
    ],
  )
}

export async function insertSignature(
  tx: Tx,
  scope: Scope,
  { sha256, signingKeyId, signature }: { sha256: string; signingKeyId: number; signature: Buffer },
): Promise<void> {
  await tx.query(
    `insert into release_signature (scope_id, descriptor_sha256, signing_key_id, signature)
     values ($1, $2, $3, $4)
     on conflict do nothing`,
    [scope.scopeId, sha256, signingKeyId, signature],
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

/** Releases that a key should verify too: those of what holds now in these apps. */
export async function selectCurrentReleases(
  tx: Tx,
  scope: Scope,
  appIds: string[] | '*',
): Promise<{ sha256: string; bytes: Buffer }[]> {
  return tx.query<{ sha256: string; bytes: Buffer }>(
    `select r.descriptor_sha256 as sha256, r.descriptor as bytes
     from release r
     where r.scope_id = $1
       and r.descriptor_sha256 in (
         select l.descriptor_sha256
         from publication_pointer pp
         join publication_leg l on l.scope_id = pp.scope_id and l.app_id = pp.app_id and l.seq = pp.seq
         where pp.scope_id = $1
           and ($2::text[] is null or pp.app_id = any($2)))`,
    [scope.scopeId, appIds === '*' ? null : appIds],
  )
}

/** Those of the newest stamps of versions that something still runs. */
export async function selectPinnedReleases(
  tx: Tx,
  { scopeId }: Scope,
  pins: Pin[],
): Promise<{ sha256: string; bytes: Buffer }[]> {
  return tx.query<{ sha256: string; bytes: Buffer }>(
    `select r.descriptor_sha256 as sha256, r.descriptor as bytes
     from release r
     where r.scope_id = $1
       and r.descriptor_sha256 in (
         select l.descriptor_sha256
         from unnest($2::text[], $3::int[], $4::int[]) as pin(app_id, experience_id, version_number)
         cross join lateral (
           select max(seq) as seq
           from publication p
           where p.scope_id = $1
             and p.app_id = pin.app_id
             and p.experience_id = pin.experience_id
             and p.version_number = pin.version_number
         ) newest
         join publication_leg l on l.scope_id = $1 and l.app_id = pin.app_id and l.seq = newest.seq)`,
    [
      scopeId,
      pins.map(({ appId }) => appId),
      pins.map(({ experienceRowId }) => experienceRowId),
      pins.map(({ versionNumber }) => versionNumber),
    ],
  )
}

/** A release and its signatures, the newest key's first. */
export async function selectRelease(
  sql: Sql,
  scopes: Scope[],
  sha256: string,
): Promise<{ legId: string; bytes: Buffer; keyId: string; signature: Buffer } | undefined> {
  const rows = await sql.query<{ legId: string; bytes: Buffer; keyId: string; signature: Buffer }>(
    `select l.leg_id as "legId", r.descriptor as bytes, k.key_id as "keyId", s.signature
     from release r
     join publication_leg l on l.scope_id = r.scope_id and l.descriptor_sha256 = r.descriptor_sha256
     join release_signature s on s.scope_id = r.scope_id and s.descriptor_sha256 = r.descriptor_sha256
     join signing_key k on k.id = s.signing_key_id
     left join signing_key_use own on own.scope_id = r.scope_id and own.app_id = l.app_id
     left join signing_key_use every on every.scope_id = r.scope_id and every.app_id = '*'
     where r.scope_id = any($1)
       and r.descriptor_sha256 = $2
     order by k.id = coalesce(own.signing_key_id, every.signing_key_id) desc, k.id desc
     limit 1`,
    [scopes.map(({ scopeId }) => scopeId), sha256],
  )
  return rows[0]
}
