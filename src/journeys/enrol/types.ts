import type { PinnedPlan } from '../plan.ts'
import type { PointerState } from '../plans-store.ts'
import type { Context, Ms, Origin } from '../types.ts'

/** Somebody who would enter an Experience through the server. */
export interface Candidate {
  customerId: string
  appId: string
  plan: PinnedPlan
  state: PointerState
  by: Exclude<Origin, 'device'>
  /** Tells it from every other start of this customer, Experience and app. */
  occurrence: string
  at: Ms
  context: Context
  contextHash: Buffer | null
}

/** Why a journey did not begin. */
export type Reason =
  | 'customer_paused'
  | 'experience_paused'
  | 'eligibility'
  | 'held_out'
  | 'frequency'
  | 'input_missing'
  | 'no_app'

export type Start =
  | { status: 'started' | 'coalesced'; journeyId: string }
  | { status: 'ineligible'; journeyId: null; reason: Reason }
