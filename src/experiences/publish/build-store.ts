import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Experience } from '../authoring/experience-store.ts'
import type { CompiledLeg } from '../compile/leg.ts'

/** What a version was compiled to for an app: a new publication of the version there is made of the same. */
export interface Build {
  buildId: string
  appId: string
  versionId: string
  compilerVersion: string
  locales: string[]
  /** JSON. */
  plan: string
  createdAt: Date
}

export interface NewBuild extends Omit<Build, 'versionId' | 'createdAt'> {
  versionNumber: number
  legs: CompiledLeg[]
  /** Store texts that were copied, by Product. */
  previews: Record<string, unknown>
}

export async function insertBuild(tx: Tx, scope: Scope, experience: Experience, build: NewBuild): Promise<void> {
  const { buildId, appId, versionNumber, compilerVersion, locales, plan, previews, legs } = build
  const inserted = await tx.query(
    `insert into experience_build
       (scope_id, build_id, app_id, experience_id, version_number, compiler_version, locales, plan, products)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (scope_id, build_id) do nothing
     returning 1`,
    [
      ...[scope.scopeId, buildId, appId, experience.id, versionNumber, compilerVersion, locales, plan],
      JSON.stringify(previews),
    ],
  )
  if (inserted.length === 0) return
  await tx.query(
    `insert into experience_build_leg (scope_id, build_id, leg_id, section_key, locales, body)
     select $1, $2, leg_id, section_key, string_to_array(locales, ' '), body
     from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as leg (leg_id, section_key, locales, body)`,
    [
      ...[scope.scopeId, buildId, legs.map(({ legId }) => legId), legs.map(({ sectionKey }) => sectionKey)],
      // A language tag has no blank in it.
      ...[legs.map((leg) => leg.locales.join(' ')), legs.map(({ body }) => JSON.stringify(body))],
    ],
  )
}

const columns = `b.build_id as "buildId", b.app_id as "appId", v.public_id as "versionId",
  b.compiler_version as "compilerVersion", b.locales, b.plan, b.created_at as "createdAt"`
const versionOf = `join experience_version v
  on v.scope_id = b.scope_id and v.experience_id = b.experience_id and v.version_number = b.version_number`

export async function selectBuild(
  sql: Sql,
  scopes: Scope[],
  buildId: string,
): Promise<(Build & { scopeId: number }) | undefined> {
  const rows = await sql.query<Build & { scopeId: number }>(
    `select ${columns}, b.scope_id as "scopeId"
     from experience_build b
     ${versionOf}
     where b.scope_id = any($1)
       and b.build_id = $2`,
    [scopes.map(({ scopeId }) => scopeId), buildId],
  )
  return rows[0]
}

/** Those of some versions, first in each app what was published last. */
export async function selectBuilds(
  sql: Sql,
  { scopeId, id }: Pick<Experience, 'scopeId' | 'id'>,
  versionNumbers: number[],
): Promise<(Build & { versionNumber: number })[]> {
  return sql.query<Build & { versionNumber: number }>(
    `select ${columns}, b.version_number as "versionNumber"
     from experience_build b
     ${versionOf}
     where b.scope_id = $1
       and b.experience_id = $2
       and b.version_number = any($3::int[])
     order by b.app_id,
       (select max(p.seq)
        from publication p
        where p.scope_id = b.scope_id and p.app_id = b.app_id and p.build_id = b.build_id) desc nulls last,
       b.id desc`,
    [scopeId, id, versionNumbers],
  )
}

/** In the order in which they were compiled: by section, then by locale. */
export async function selectBuildLegs(sql: Sql, scopeId: number, buildId: string): Promise<CompiledLeg[]> {
  const rows = await sql.query<Omit<CompiledLeg, 'body'> & { body: string }>(
    `select leg_id as "legId", section_key as "sectionKey", locales, body
     from experience_build_leg
     where scope_id = $1
       and build_id = $2
     order by section_key collate "C", locales`,
    [scopeId, buildId],
  )
  return rows.map((row) => ({ ...row, body: JSON.parse(row.body) as CompiledLeg['body'] })) // as written above
}

/** Store texts in what is live or paused of an Experience, as JSON by Product. */
export async function selectSentPreviews(
  sql: Sql,
  { scopeId, id }: Pick<Experience, 'scopeId' | 'id'>,
): Promise<Map<string, string>> {
  const rows = await sql.query<{ products: string }>(
    `select b.products
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     join experience_build b on b.scope_id = p.scope_id and b.build_id = p.build_id
     where pp.scope_id = $1
       and pp.experience_id = $2
       and pp.status <> 'unpublished'
     order by p.id`,
    [scopeId, id],
  )
  return new Map(
    rows.flatMap(({ products }) => {
      const previews = JSON.parse(products) as Record<string, unknown> // as written above
      return Object.entries(previews).map(([id, preview]) => [id, JSON.stringify(preview)] as const)
    }),
  )
}
