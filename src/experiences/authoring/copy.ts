import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Experience, selectExperiencesNamed, updateDraft } from './experience-store.ts'
import { createExperience, getDraft, getExperience } from './experiences.ts'

/**
 * The Experience with the same key in another environment, made if there is none, with this one's draft in place of its own.
 * Versions and releases stay where they are: they are signed for their environment. 409 for one that is archived there.
 */
export async function copyExperience(
  tx: Tx,
  { from, to }: { from: Scope[]; to: (source: Experience) => Scope },
  idOrKey: string,
): Promise<{ before: Experience | undefined; after: Experience; scope: Scope }> {
  const source = await getExperience(tx, from, idOrKey, { lock: true })
  const scope = to(source)
  const found = await selectExperiencesNamed(tx, [scope], source.key, { lock: true })
  const before = found.find(({ key }) => key === source.key)
  if (before?.status === 'archived') {
    throw refuse('conflict', { message: `The Experience ${source.key} of ${scope.environment} is archived.` })
  }
  const { id } = before ?? (await createExperience(tx, scope, source))
  const { text } = await getDraft(tx, source)
  if (text !== null) await updateDraft(tx, { ...source, scopeId: scope.scopeId, id }, text)
  const [after] = await selectExperiencesNamed(tx, [scope], source.key, { lock: false })
  return { before, after: must(after, 'it is there by now'), scope }
}
