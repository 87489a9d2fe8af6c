import { decimal } from '../engine/balance.ts'

/** An exact positive decimal: `digits / 10^decimals`, without trailing zeros after the point. */
export interface Decimal {
  digits: bigint
  decimals: number
}

/** Reads plain decimal notation such as `12` or `0.250`; null for anything else. */
export function parseDecimal(text: string): Decimal | null {
  const match = /^([0-9]+)(?:\.([0-9]+))?$/.exec(text)
  if (!match) return null
  const fraction = (match[2] ?? '').replace(/0+$/, '')
  return { digits: BigInt(`${match[1]}${fraction}`), decimals: fraction.length }
}

/** `stored / 10^scale` in plain decimal notation, without trailing zeros after the point. */
export function decimalText(stored: bigint, scale: number): string {
  return stored < 0n ? `-${decimal(-stored, scale)}` : decimal(stored, scale)
}
