import type { Namespace } from './hash.ts'

export type ExperimentKind = 'ab' | 'holdout'
export type ExperimentStatus = 'draft' | 'running' | 'paused' | 'concluded' | 'archived'

export interface Variant {
  id: string
  /** The weights of a phase add up to 1. */
  weight: number
  isHoldout: boolean
}

/** The first event of this name within the window after the first exposure is a conversion. */
export interface Metric {
  eventName: string
  windowMs: number
}

/** What one phase asks. */
export interface Terms {
  seed: string
  /** The first is the control. */
  variants: Variant[]
  /** The share of customers that takes part, 0 to 1. */
  coverage: number
  /** Only its members take part; null: everybody. */
  audienceSegmentId: string | null
  namespace: Namespace | null
  metrics: Metric[]
}

/** With the terms of its current phase. */
export interface Experiment extends Terms {
  scopeId: number
  id: number
  publicId: string
  key: string
  name: string
  kind: ExperimentKind
  status: ExperimentStatus
  phase: number
  /** Everybody's, once it is concluded. */
  winnerVariantId: string | null
  /** The weights that have held in this phase, the newest last. */
  weightPeriods: number[][]
  /** In Unix milliseconds; null: not yet. */
  startedAtMs: number | null
  createdAt: Date
}

/** What a customer is shown. */
export interface Assignment {
  variantId: string
  isHoldout: boolean
}
