import type { References } from '../../src/experiences/draft/references.ts'
import { validateDraft } from '../../src/experiences/draft/validate.ts'
import { aDraft, device, server } from './a-draft.ts'

export const known: References = {
  segments: new Set(['seg_known']),
  features: new Set(['pro']),
  experiments: new Map([
    [
      'xp_one',
      {
        kind: 'ab',
        isArchived: false,
        variants: [
          { id: 'a', isHoldout: false },
          { id: 'h', isHoldout: true },
        ],
      },
    ],
    ['xp_old', { kind: 'ab', isArchived: true, variants: [{ id: 'a', isHoldout: false }] }],
  ]),
}

export type Draft = ReturnType<typeof aDraft>

/** What is found in the draft after a change, as `code path`. */
export function found(change: (draft: Draft) => void): string[] {
  const draft = aDraft()
  change(draft)
  const { issues, warnings } = validateDraft(draft, known).findings
  return [...issues, ...warnings].map(({ code, path }) => `${code} ${path}`)
}

export const ir = (expr: object) => ({ ir_version: 1, expr })
export const feature = { type: 'Feature', op: 'has', id: 'pro' }
export const grant = (id: string, next: string | null = null) =>
  server(id, { type: 'grant_feature', featureId: 'pro', amount: 1 }, { next })
export const wait = (trust: string) => ({ type: 'wait_for_event', eventName: 'paid', trust, timeoutMs: 1000 })

/** Puts an experiment before the last step. */
export function experiment(graph: Draft['graph'], experimentId: string, variants: object[]): void {
  Object.assign(graph.steps[3]?.outlets ?? {}, { next: 'try' })
  graph.steps.push(device('try', { type: 'experiment', experimentId, variants, fallbackVariantId: 'a' }, { a: 'bye' }))
}
