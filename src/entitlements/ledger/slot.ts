import type { Refusal } from '../../kernel/errors.ts'
import type { AppScope } from '../../tenancy/index.ts'
import type { Feature, FeatureType, UsageDecision, UsageMode } from '../types.ts'
import type { Holder, Inquiry } from './load-state.ts'

/** One `/feature/consume`, checked at the edge. */
export interface ConsumeCommand {
  scope: AppScope
  distinctId: string
  featureKey: string
  operationId: string
  /** 1 to 2^53 − 1; in set_usage the cumulative total. */
  quantity: bigint
  mode: UsageMode
  entityId: string | null
  /** Names the purchase that came with it, whatever the bytes of its evidence; part of the fingerprint. */
  purchaseKey?: string
}

export interface ConsumeAnswer extends UsageDecision {
  type: FeatureType
  /** Unix milliseconds; null when the customer has no record. */
  occurredAt: number | null
  replay: boolean
}

/** A command on its way through one attempt. */
export interface Slot {
  command: ConsumeCommand
  inquiry: Inquiry
  holder: Holder
  answer: ConsumeAnswer | Refusal | undefined
}

/** A command that needs a decision: its customer and Feature exist and nothing is saved yet. */
export interface Decidable extends Slot {
  customerId: string
  feature: Feature
}

/** What the attempt was built on changed under it: load and decide again. */
export class Changed extends Error {}

/** How modes and types are stored. */
export const modeNumber: Record<UsageMode, number> = { consume: 0, set_usage: 1 }
export const featureTypes: FeatureType[] = ['boolean', 'metered', 'creditSystem']
