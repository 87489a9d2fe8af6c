import { must } from '../../kernel/assert.ts'
import type { Draft } from '../draft/draft.ts'
import { isDeviceEnrolled } from '../draft/fields.ts'

/** The experiment that `policy.holdout` names. */
export interface Holdout {
  experimentId: string
  variants: { id: string; isHoldout: boolean }[]
}

/** Generated ids begin with @, and only this one with two. */
const gateId = '@@holdout'
const heldOut = '@holdout'

/**
 * What stands before the first step on a device: the holdout, so that who is held out meets the same entry condition and is
 * counted. Where the server enrols, it asks the holdout itself.
 */
export function gateOf(draft: Draft, holdout: Holdout | null, sectionKey: string) {
  if (holdout === null || sectionKey !== draft.graph.entry || !isDeviceEnrolled(draft)) return null
  const { experimentId, variants } = holdout
  const fallback = must(
    variants.find(({ isHoldout }) => !isHoldout),
    'a holdout lets somebody in',
  )
  const outlets = Object.fromEntries(variants.map(({ id, isHoldout }) => [id, isHoldout ? heldOut : sectionKey]))
  const action = { type: 'experiment', experimentId, variants, fallbackVariantId: fallback.id }
  const steps = [
    { id: gateId, kind: 'action', action, outlets },
    { id: heldOut, kind: 'complete', outcome: 'holdout' },
  ]
  return { entryStepId: gateId, steps }
}
