import type { Json } from '../../events/index.ts'
import { numberOf, predicate } from './compare.ts'
import type { FeatureFact, StandingFact } from './facts.ts'

export const noStanding: StandingFact = { state: 'none', willRenew: false }

/** Whether a question about a Feature is one about its subscriptions. */
export function isStandingOp(op: string): boolean {
  return /^(is_trialing|is_active|is_expired|will_renew|will_not_renew)$/.test(op)
}

/** Of a Feature that isn't had nothing is left. */
export function featureHolds(
  op: string,
  feature: FeatureFact | undefined,
  against: Json | undefined,
): boolean | undefined {
  if (op === 'has') return feature !== undefined
  if (op === 'not_has') return feature === undefined
  if (op === 'is_unlimited') return feature?.unlimited === true
  if (!op.startsWith('credits_')) return undefined
  if (feature?.unlimited) return unlimitedHolds(op, against)
  return predicate(op.slice('credits_'.length), feature?.balance ?? 0, against)
}

/** More than any number. */
function unlimitedHolds(op: string, against: Json | undefined): boolean | undefined {
  if (against === undefined) return undefined
  if (numberOf(against) === undefined) return op === 'credits_neq' && against === null
  return op === 'credits_neq' || op === 'credits_gt' || op === 'credits_gte'
}

export function standingHolds(op: string, standing: StandingFact | undefined): boolean | undefined {
  if (standing === undefined) return undefined
  const { state, willRenew } = standing
  const active = state === 'active' || state === 'trialing'
  switch (op) {
    case 'active':
      return active
    case 'not_active':
      return !active
    case 'trialing':
    case 'expired':
      return state === op
    case 'will_renew':
      return active && willRenew
    case 'will_not_renew':
      return active && !willRenew
    default:
      return undefined
  }
}
