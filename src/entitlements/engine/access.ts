import type { AccessDecision, FeatureType, State, Units } from '../types.ts'
import { available } from './draw.ts'
import { settled } from './settle.ts'
import { jsonUnits, noBalance } from './units.ts'

/** May the caller use `required` units now? True exactly when a consume of them would be accepted. Changes nothing. */
export function decideAccess(state: State, required: Units): AccessDecision {
  const { type } = state.feature
  if (!state.applies)
    return { code: 'feature_inapplicable', allowed: false, unlimited: false, balance: noBalance(type) }

  const offer = available(settled(state))
  if (type === 'boolean') return { code: 'feature_found', allowed: offer.live, unlimited: false, balance: null }
  if (offer.unlimited) return { code: 'feature_found', allowed: true, unlimited: true, balance: null }
  const allowed = offer.live && required <= offer.units
  return { code: 'feature_found', allowed, unlimited: false, balance: jsonUnits(offer.units) }
}

/** The answer when no customer record exists; there is no state to decide on. */
export function accessWithoutCustomer(type: FeatureType): AccessDecision {
  return { code: 'customer_missing', allowed: false, unlimited: false, balance: noBalance(type) }
}
