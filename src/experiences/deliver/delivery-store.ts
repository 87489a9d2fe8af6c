import type { Sql } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { PointerStatus } from '../publish/publication-store.ts'

/** A publication as its rows say it; drafts and plans are the JSON that was frozen. */
export interface StampRow {
  experience_row_id: number
  experience_id: string
  app_id: string
  seq: bigint
  version_id: string
  version_number: number
  build_id: string
  draft: string
  plan: string
}

export interface PointerRow extends StampRow {
  status: PointerStatus
}

export interface LegRow {
  app_id: string
  seq: bigint
  leg_id: string
  locale: string
  descriptor_sha256: string
  /** Bytes of the descriptor. */
  size: number
}

const stampColumns = `e.id as experience_row_id, e.public_id as experience_id, p.app_id, p.seq, v.public_id as version_id,
  p.version_number, p.build_id, v.draft, p.plan`
const stampJoins = `join experience e on e.id = p.experience_id
     join experience_version v
       on v.scope_id = p.scope_id and v.experience_id = p.experience_id and v.version_number = p.version_number`

export async function selectRevision(sql: Sql, { scopeId }: Scope): Promise<bigint> {
  const [row] = await sql.query<{ revision: bigint }>('select revision from scope where id = $1', [scopeId])
  return must(row, 'the scope exists').revision
}

/** Every Experience that is not archived, wherever it is published. */
export function selectExperienceIds(sql: Sql, { scopeId }: Scope): Promise<{ rowId: number; id: string }[]> {
  return sql.query<{ rowId: number; id: string }>(
    `select id as "rowId", public_id as id
     from experience
     where scope_id = $1
       and status <> 'archived'
     order by public_id collate "C"`,
    [scopeId],
  )
}

/** What holds in every app now. */
export function selectCurrent(sql: Sql, { scopeId }: Scope): Promise<PointerRow[]> {
  return sql.query<PointerRow>(
    `select ${stampColumns}, pp.status
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     ${stampJoins}
     where pp.scope_id = $1
       and e.status <> 'archived'`,
    [scopeId],
  )
}

/** The newest stamp of one version in one app. */
export async function selectStamp(
  sql: Sql,
  { scopeId }: Scope,
  { appId, experienceRowId, versionNumber }: { appId: string; experienceRowId: number; versionNumber: number },
): Promise<StampRow | undefined> {
  const rows = await sql.query<StampRow>(
    `select ${stampColumns}
     from publication p
     ${stampJoins}
     where p.scope_id = $1
       and p.app_id = $2
       and p.experience_id = $3
       and p.version_number = $4
     order by p.seq desc
     limit 1`,
    [scopeId, appId, experienceRowId, versionNumber],
  )
  return rows[0]
}

/** The legs of publications, by app and number. */
export function selectLegs(sql: Sql, { scopeId }: Scope, stamps: { app_id: string; seq: bigint }[]): Promise<LegRow[]> {
  return sql.query<LegRow>(
    `select l.app_id, l.seq, l.leg_id, l.locale, l.descriptor_sha256, octet_length(r.descriptor) as size
     from unnest($2::text[], $3::bigint[]) as p(app_id, seq)
     join publication_leg l on l.scope_id = $1 and l.app_id = p.app_id and l.seq = p.seq
     join release r on r.scope_id = $1 and r.descriptor_sha256 = l.descriptor_sha256`,
    [scopeId, stamps.map(({ app_id }) => app_id), stamps.map(({ seq }) => seq)],
  )
}

/** Signatures that count, the one of the key that signs for the app now first. */
export interface ReleaseRow {
  sha256: string
  descriptor: Buffer
  key_id: string
  public_key: Buffer
  signature: Buffer
}

export function selectReleases(
  sql: Sql,
  { scopeId }: Scope,
  { appId, sha256s }: { appId: string; sha256s: string[] },
): Promise<ReleaseRow[]> {
  return sql.query<ReleaseRow>(
    `select r.descriptor_sha256 as sha256, r.descriptor, k.key_id, k.public_key, s.signature
     from release r
     join release_signature s on s.scope_id = r.scope_id and s.descriptor_sha256 = r.descriptor_sha256
     join signing_key k on k.id = s.signing_key_id
     left join signing_key_use own on own.scope_id = r.scope_id and own.app_id = $2
     left join signing_key_use every on every.scope_id = r.scope_id and every.app_id = '*'
     where r.scope_id = $1
       and r.descriptor_sha256 = any($3)
       and k.status in ('active', 'retired')
     order by k.id = coalesce(own.signing_key_id, every.signing_key_id) desc, k.id desc`,
    [scopeId, appId, sha256s],
  )
}
