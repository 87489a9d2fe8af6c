import { refuse } from '../../kernel/errors.ts'
import { storedUnitsMax } from '../engine/units.ts'
import type { CycleUnit, Feature, Rollover, Units } from '../types.ts'

/** How often a grant of the catalogue or of an author resets. */
export type Interval = Extract<CycleUnit, 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'>
export const intervals = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const satisfies Interval[]

/** What a grant gives, in units of the Feature (credits of a credit system). */
export interface GrantTerms {
  /** 0 or more; null for a boolean Feature and with `unlimited`. */
  allowance: Units | null
  unlimited: boolean
  /** Null: once. */
  interval: Interval | null
  rollover: { max: Units | null; periods: number | null } | null
}

/** The same as it is stored: credits times 10^scale. */
export interface StoredTerms {
  amount: Units
  unlimited: boolean
  interval: Interval | null
  rollover: Rollover | null
}

/** Throws `invalid_request` when the terms do not fit the Feature; `path` goes before the names of fields, such as `grants.0.`. */
export function storedTerms(feature: Pick<Feature, 'type' | 'scale'>, terms: GrantTerms, path = ''): StoredTerms {
  const { allowance, unlimited, interval, rollover } = terms
  const wrong = (field: string, words: string) =>
    refuse('invalid_request', { param: `${path}${field}`, message: `${path}${field} ${words}` })

  if (feature.type === 'boolean') {
    if (allowance !== null) throw wrong('allowance', 'is not for a boolean Feature')
    if (interval !== null) throw wrong('interval', 'is not for a boolean Feature')
    if (rollover !== null) throw wrong('rollover', 'is not for a boolean Feature')
    // It has no units, so that it could not be limited either.
    return { amount: 0n, unlimited: false, interval: null, rollover: null }
  }
  if (unlimited && allowance !== null) throw wrong('allowance', 'and unlimited exclude each other')
  if (!unlimited && allowance === null) throw wrong('allowance', 'is required, or unlimited: true')
  if (rollover !== null && interval === null) throw wrong('rollover', 'needs an interval')
  if (rollover !== null && unlimited) throw wrong('rollover', 'is not for an unlimited grant')

  const power = 10n ** BigInt(feature.scale)
  const amount = (allowance ?? 0n) * power
  if (amount > storedUnitsMax) {
    throw wrong('allowance', `is more than can be kept exactly: this Feature has ${feature.scale} decimals`)
  }
  // A cap beyond what can be stored caps nothing.
  const max =
    rollover === null || rollover.max === null || rollover.max * power > storedUnitsMax ? null : rollover.max * power
  return { amount, unlimited, interval, rollover: rollover && { max, periods: rollover.periods } }
}
