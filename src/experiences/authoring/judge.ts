import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { compileDraft } from '../compile/compile-draft.ts'
import { legIdOf } from '../compile/leg-id.ts'
import type { DraftIssue } from '../draft/findings.ts'
import { validateDraft } from '../draft/validate.ts'
import type { Experience } from './experience-store.ts'
import { loadKnown, type Settings } from './load-known.ts'

export interface DraftJudgement {
  valid: boolean
  issues: DraftIssue[]
  warnings: DraftIssue[]
  /** What devices will run, when the draft is valid. */
  sections: { key: string; legId: string; steps: string[] }[]
}

/** Whether a draft could be published now. */
export async function judgeDraft(
  sql: Sql,
  scope: Scope,
  { experience, draft }: { experience: Experience; draft: unknown },
  settings: Settings,
): Promise<DraftJudgement> {
  const known = await loadKnown(sql, scope, { experience, draft }, settings)
  const { findings, graph, draft: right } = validateDraft(draft, known)
  if (right !== null) {
    for (const platform of right.platforms) compileDraft({ draft: right, experience, known, platform }, findings)
  }
  const sections = graph === null || findings.issues.length > 0 ? [] : [...graph.sections.values()]
  return {
    valid: graph !== null && findings.issues.length === 0,
    issues: findings.issues,
    warnings: findings.warnings,
    sections: sections.map(({ key, steps }) => ({
      key,
      legId: legIdOf(experience.publicId, key),
      steps: steps.map(({ id }) => id),
    })),
  }
}
