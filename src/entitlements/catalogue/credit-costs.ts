import { refuse } from '../../kernel/errors.ts'
import type { Cost } from '../types.ts'
import { decimalText, parseDecimal } from './decimals.ts'

/** The finest cost, and the scale at which every cost can be written. */
export const costDecimalsMax = 6
const costWholeDigitsMax = 12

/** What one unit of a member Feature costs, as it is written. */
export interface CreditCost {
  /** Key of the metered Feature. */
  feature: string
  /** Credits per unit: a positive decimal with at most 12 digits before and 6 after the point. */
  cost: string | number
}

/** A cost as the exact rational that decisions use, in lowest powers of ten. `decimals` is the scale it needs. */
export interface ExactCost extends Cost {
  decimals: number
}

/** Throws `invalid_request`; `path` names the cost in the caller's words. */
export function parseCost(cost: string | number, path: string): ExactCost {
  const number = parseDecimal(String(cost))
  if (number === null || number.decimals > costDecimalsMax) {
    throw refuse('invalid_request', {
      param: path,
      message: `${path} must be a decimal number with at most ${costDecimalsMax} decimals`,
    })
  }
  const per = 10n ** BigInt(number.decimals)
  if (number.digits <= 0n || number.digits >= per * 10n ** BigInt(costWholeDigitsMax)) {
    throw refuse('invalid_request', {
      param: path,
      message: `${path} must be more than 0 and have at most ${costWholeDigitsMax} digits before the point`,
    })
  }
  return { credits: number.digits, per, decimals: number.decimals }
}

/** The cost as a decimal, such as `0.25`. */
export function costText({ credits, per }: Cost): string {
  return decimalText((credits * 10n ** BigInt(costDecimalsMax)) / per, costDecimalsMax)
}
