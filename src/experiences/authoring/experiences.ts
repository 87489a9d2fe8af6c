import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Scope } from '../../tenancy/index.ts'
import {
  type Experience,
  insertExperience,
  type SavedDraft,
  selectDraft,
  selectExperiencesNamed,
  updateDraft,
  updateExperience,
} from './experience-store.ts'

export interface ExperienceEdit {
  before: Experience
  after: Experience
  scope: Scope
}

/** Without a draft. 409 for a key that was ever used. */
export async function createExperience(
  tx: Tx,
  scope: Scope,
  { key, name }: { key: string; name: string },
): Promise<Experience> {
  const created = await insertExperience(tx, scope, { publicId: newId('exp'), key, name })
  if (created) return created
  throw refuse('conflict', { param: 'key', message: `There is or was an Experience with the key ${key}.` })
}

/** By id or key. Throws `not_found`, or `invalid_request` for a key that several projects have. */
export async function getExperience(
  sql: Sql,
  scopes: Scope[],
  idOrKey: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<Experience> {
  const found = await selectExperiencesNamed(sql, scopes, idOrKey, { lock })
  const byId = found.find(({ publicId }) => publicId === idOrKey)
  const [first, second] = found
  if (!first) throw refuse('not_found')
  if (second && !byId) {
    throw refuse('invalid_request', {
      param: 'project_id',
      message: 'project_id is required: several projects of the workspace have this key',
    })
  }
  return byId ?? first
}

/** Throws as `getExperience` does. */
export async function renameExperience(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  { name }: { name?: string | undefined },
): Promise<ExperienceEdit> {
  return editExperience(tx, scopes, idOrKey, (before) =>
    updateExperience(tx, before, { ...before, name: name ?? before.name }),
  )
}

/** Replaces the draft whole, whatever is wrong with it. 409 `draft_conflict` when it is no longer at `revision`. */
export async function saveDraft(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  { draft, revision }: { draft: unknown; revision: number },
): Promise<ExperienceEdit & { saved: SavedDraft }> {
  const edited = await editExperience(tx, scopes, idOrKey, async (before) => {
    if (before.status === 'archived') throw refuse('conflict', { message: 'The Experience is archived.' })
    if (before.draftRevision !== revision) {
      throw refuse('draft_conflict', { details: { revision: before.draftRevision } })
    }
    await updateDraft(tx, before, JSON.stringify(draft))
  })
  return { ...edited, saved: await getDraft(tx, edited.after) }
}

export async function getDraft(sql: Sql, experience: Experience): Promise<SavedDraft> {
  return must(await selectDraft(sql, experience), 'the Experience was found')
}

/** Runs a change under the lock of the Experience. Throws as `getExperience` does. */
export async function editExperience(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  change: (before: Experience) => Promise<void>,
): Promise<ExperienceEdit> {
  const before = await getExperience(tx, scopes, idOrKey, { lock: true })
  await change(before)
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === before.scopeId),
    'it was found there',
  )
  return { before, after: await getExperience(tx, [scope], before.publicId), scope }
}
