import { dropInternalSegments } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Announced, announce } from '../announce/announce.ts'
import { type ExperienceStatus, updateExperience } from '../authoring/experience-store.ts'
import { type ExperienceEdit, editExperience } from '../authoring/experiences.ts'
import { type PointerStatus, selectPointers, updatePointers } from './publication-store.ts'

export type StateVerb = 'pause' | 'resume' | 'unpublish' | 'archive'

/** What a publication has to be, and what it becomes. */
const steps: Record<StateVerb, { from: PointerStatus[]; to: PointerStatus }> = {
  pause: { from: ['live'], to: 'paused' },
  resume: { from: ['paused'], to: 'live' },
  unpublish: { from: ['live', 'paused'], to: 'unpublished' },
  archive: { from: ['live', 'paused'], to: 'unpublished' },
}

const told: Record<StateVerb, Announced> = {
  pause: 'experience.paused',
  resume: 'experience.resumed',
  unpublish: 'experience.unpublished',
  archive: 'experience.archived',
}

/**
 * Pauses, resumes, takes back or archives an Experience, in some apps or in all. Where a publication is not in a state to
 * be changed, it stays as it is; numbers are kept. Throws as `getExperience` does, `not_found` for an app it never was in.
 */
export async function changeState(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  verb: StateVerb,
  appIds?: string[],
): Promise<ExperienceEdit> {
  return editExperience(tx, scopes, idOrKey, async (before) => {
    const { from, to } = steps[verb]
    const pointers = await selectPointers(tx, before)
    const known = new Set(pointers.map(({ appId }) => appId))
    if (appIds?.some((appId) => !known.has(appId))) throw refuse('not_found', { param: 'app_ids' })
    const changed = pointers.filter(({ appId, status }) => from.includes(status) && (appIds?.includes(appId) ?? true))
    await updatePointers(
      tx,
      before,
      changed.map(({ appId }) => appId),
      to,
    )
    const after = pointers.map((pointer) => (changed.includes(pointer) ? to : pointer.status))
    const isArchived = verb === 'archive' || before.status === 'archived'
    if (verb === 'archive') await dropInternalSegments(tx, scopeOf(scopes, before), before.publicId)
    await updateExperience(tx, before, { name: before.name, status: isArchived ? 'archived' : statusOf(after) })
    const hasChanged = changed.length > 0 || (verb === 'archive' && before.status !== 'archived')
    if (hasChanged) await announce(tx, scopeOf(scopes, before), told[verb], { experience: before, changed })
  })
}

function scopeOf(scopes: Scope[], { scopeId }: { scopeId: number }): Scope {
  return must(
    scopes.find((scope) => scope.scopeId === scopeId),
    'it was found there',
  )
}

function statusOf(pointers: PointerStatus[]): ExperienceStatus {
  if (pointers.includes('live')) return 'published'
  return pointers.includes('paused') ? 'paused' : 'draft'
}
