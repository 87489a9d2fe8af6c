import { unitsMax } from '../../kernel/limits.ts'
import type { FeatureType, Units } from '../types.ts'

/** The most the database stores exactly; counters saturate here. */
export const storedUnitsMax: Units = 2n ** 63n - 1n

export function minUnits(a: Units, b: Units): Units {
  return a < b ? a : b
}

export function maxUnits(a: Units, b: Units): Units {
  return a > b ? a : b
}

const jsonMax = BigInt(unitsMax)

/** A balance as replies give it: capped where JSON numbers end to be exact. */
export function jsonUnits(units: Units): number {
  return Number(minUnits(units, jsonMax))
}

/** The balance of a reply without access. A boolean Feature has none. */
export function noBalance(type: FeatureType): number | null {
  return type === 'boolean' ? null : 0
}
