import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { legIdOf } from '../compile/leg-id.ts'
import type { DraftIssue } from '../draft/findings.ts'
import { validateDraft } from '../draft/validate.ts'
import type { Experience } from './experience-store.ts'
import { loadReferences } from './load-references.ts'

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
  experience: Experience,
  draft: unknown,
): Promise<DraftJudgement> {
  const { findings, graph } = validateDraft(draft, await loadReferences(sql, scope))
  const sections = graph === null ? [] : [...graph.sections.values()]
  return {
    valid: graph !== null,
    issues: findings.issues,
    warnings: findings.warnings,
    sections: sections.map(({ key, steps }) => ({
      key,
      legId: legIdOf(experience.publicId, key),
      steps: steps.map(({ id }) => id),
    })),
  }
}
