import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'

export type ExperienceStatus = 'draft' | 'published' | 'paused' | 'archived'

export interface Experience {
  scopeId: number
  id: number
  publicId: string
  key: string
  name: string
  status: ExperienceStatus
  /** 0: none was saved yet. */
  draftRevision: number
  /** Counts its versions; 0: none. */
  lastVersion: number
  createdAt: Date
}

export interface SavedDraft {
  revision: number
  updatedAt: Date | null
  /** JSON; null before the first is saved. */
  text: string | null
}

const columns = 'scope_id, id, public_id, key, name, status, draft_revision, last_version, created_at'

interface ExperienceRow {
  scope_id: number
  id: number
  public_id: string
  key: string
  name: string
  status: ExperienceStatus
  draft_revision: number
  last_version: number
  created_at: Date
}

function experienceOf(row: ExperienceRow): Experience {
  return {
    scopeId: row.scope_id,
    id: row.id,
    publicId: row.public_id,
    key: row.key,
    name: row.name,
    status: row.status,
    draftRevision: row.draft_revision,
    lastVersion: row.last_version,
    createdAt: row.created_at,
  }
}

/** Undefined when the key is taken. */
export async function insertExperience(
  tx: Tx,
  scope: Scope,
  { publicId, key, name }: Pick<Experience, 'publicId' | 'key' | 'name'>,
): Promise<Experience | undefined> {
  const rows = await tx.query<ExperienceRow>(
    `insert into experience (scope_id, public_id, key, name)
     values ($1, $2, $3, $4)
     on conflict (scope_id, key) do nothing
     returning ${columns}`,
    [scope.scopeId, publicId, key, name],
  )
  return rows.map(experienceOf)[0]
}

/** By id or key. `lock`: nobody else changes them, or publishes, until the transaction ends. */
export async function selectExperiencesNamed(
  sql: Sql,
  scopes: Scope[],
  idOrKey: string,
  { lock }: { lock: boolean },
): Promise<Experience[]> {
  const rows = await sql.query<ExperienceRow>(
    `select ${columns}
     from experience
     where scope_id = any($1)
       and (public_id = $2 or key = $2)
     order by id
     ${lock ? 'for update' : ''}`,
    [scopes.map(({ scopeId }) => scopeId), idOrKey],
  )
  return rows.map(experienceOf)
}

/** Those that are not archived. */
export async function selectExperiences(sql: Sql, scope: Scope, { limit, after }: Page): Promise<Experience[]> {
  const rows = await sql.query<ExperienceRow>(
    `select ${columns}
     from experience
     where scope_id = $1
       and status <> 'archived'
       and ($2::text is null or id < (select id from experience where public_id = $2))
     order by id desc
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map(experienceOf)
}

export async function updateExperience(
  tx: Tx,
  { scopeId, id }: Experience,
  { name, status }: Pick<Experience, 'name' | 'status'>,
): Promise<void> {
  await tx.query(
    `update experience
     set name = $3, status = $4
     where scope_id = $1
       and id = $2`,
    [scopeId, id, name, status],
  )
}

export async function selectDraft(sql: Sql, { scopeId, id }: Experience): Promise<SavedDraft | undefined> {
  const rows = await sql.query<{ revision: number; updatedAt: Date | null; text: string | null }>(
    `select draft_revision as revision, draft_updated_at as "updatedAt", draft as text
     from experience
     where scope_id = $1
       and id = $2`,
    [scopeId, id],
  )
  return rows[0]
}

export async function updateDraft(tx: Tx, { scopeId, id }: Experience, text: string): Promise<void> {
  await tx.query(
    `update experience
     set draft = $3, draft_revision = draft_revision + 1, draft_updated_at = clock_timestamp()
     where scope_id = $1
       and id = $2`,
    [scopeId, id, text],
  )
}
