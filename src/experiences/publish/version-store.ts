import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Experience } from '../authoring/experience-store.ts'

/** A frozen draft. */
export interface Version {
  publicId: string
  versionNumber: number
  draftSha256: string
  note: string | null
  createdAt: Date
}

const columns = 'public_id, version_number, draft_sha256, note, created_at'

interface VersionRow {
  public_id: string
  version_number: number
  draft_sha256: string
  note: string | null
  created_at: Date
}

function versionOf(row: VersionRow): Version {
  return {
    publicId: row.public_id,
    versionNumber: row.version_number,
    draftSha256: row.draft_sha256,
    note: row.note,
    createdAt: row.created_at,
  }
}

/** The next version; its number is given by the locked Experience. */
export async function insertVersion(
  tx: Tx,
  { scopeId, id, lastVersion }: Experience,
  version: Pick<Version, 'publicId' | 'draftSha256' | 'note'> & { draft: string },
): Promise<void> {
  await tx.query(
    `insert into experience_version (scope_id, experience_id, version_number, public_id, draft, draft_sha256, note)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [scopeId, id, lastVersion + 1, version.publicId, version.draft, version.draftSha256, version.note],
  )
  await tx.query(
    `update experience
     set last_version = last_version + 1
     where scope_id = $1
       and id = $2`,
    [scopeId, id],
  )
}

export async function selectVersions(
  sql: Sql,
  { scopeId, id }: Experience,
  { limit, after }: Page,
): Promise<Version[]> {
  const rows = await sql.query<VersionRow>(
    `select ${columns}
     from experience_version
     where scope_id = $1
       and experience_id = $2
       and ($3::text is null or version_number < (select version_number from experience_version where public_id = $3))
     order by version_number desc
     limit $4`,
    [scopeId, id, after, limit],
  )
  return rows.map(versionOf)
}

export async function selectVersion(
  sql: Sql,
  { scopeId, id }: Experience,
  publicId: string,
): Promise<(Version & { draft: string }) | undefined> {
  const rows = await sql.query<VersionRow & { draft: string }>(
    `select ${columns}, draft
     from experience_version
     where scope_id = $1
       and experience_id = $2
       and public_id = $3`,
    [scopeId, id, publicId],
  )
  return rows.map((row) => ({ ...versionOf(row), draft: row.draft }))[0]
}

/** Ids of the newest versions of these Experiences, by the Experience's number. */
export async function selectLatestVersions(sql: Sql, experiences: Experience[]): Promise<Map<number, string>> {
  const rows = await sql.query<{ id: number; versionId: string }>(
    `select e.id, v.public_id as "versionId"
     from experience e
     join experience_version v
       on v.scope_id = e.scope_id and v.experience_id = e.id and v.version_number = e.last_version
     where e.id = any($1)`,
    [experiences.map(({ id }) => id)],
  )
  return new Map(rows.map(({ id, versionId }) => [id, versionId]))
}
