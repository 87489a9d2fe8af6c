import { bucketOf, isInNamespace, rangeAt, rangesOf } from './hash.ts'
import type { Assignment, Experiment } from './types.ts'

/** What an experiment says to a customer. `fresh`: it is to be stored. */
export type Decision = { assignment: Assignment; fresh: boolean } | null

/** What is known of a customer. */
export interface Unit {
  /** The record's id, never a distinct id. */
  customerId: string
  /** Of this phase. */
  stored: Assignment | undefined
  inAudience: boolean
}

/** Who has a variant keeps it; the others get one where they take part. Null: the signed fallback runs. */
export function decide(experiment: Experiment, { customerId, stored, inAudience }: Unit): Decision {
  const { status, variants, winnerVariantId, namespace, seed, coverage } = experiment
  if (status === 'draft' || status === 'archived') return null
  if (status === 'concluded') return given(variants.find(({ id }) => id === winnerVariantId))
  if (stored) return { assignment: stored, fresh: false }
  if (status === 'paused' || !inAudience) return null
  if (namespace !== null && !isInNamespace(customerId, namespace)) return null
  const weights = variants.map(({ weight }) => weight)
  const chosen = variants[rangeAt(bucketOf(seed, customerId, 2) ?? 1, rangesOf(variants.length, weights, coverage))]
  return chosen === undefined ? null : { assignment: assignmentOf(chosen), fresh: true }
}

function given(variant: { id: string; isHoldout: boolean } | undefined): Decision {
  return variant === undefined ? null : { assignment: assignmentOf(variant), fresh: false }
}

function assignmentOf({ id, isHoldout }: { id: string; isHoldout: boolean }): Assignment {
  return { variantId: id, isHoldout }
}
