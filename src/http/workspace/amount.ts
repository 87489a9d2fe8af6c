import Type from 'typebox'
import { decimalText } from '../../entitlements/index.ts'

/** A number in JSON wherever readers of JSON agree on it to the last digit; beyond that its decimal text. */
export const amount = Type.Unsafe<number | string>({
  type: ['number', 'string'],
  description: 'A number, or its decimal text where a JSON number could not hold it exactly.',
})

export const nullableAmount = Type.Unsafe<number | string | null>({
  type: ['number', 'string', 'null'],
  description: 'A number, or its decimal text where a JSON number could not hold it exactly.',
})

/** `stored / 10^scale`. */
export function amountOf(stored: bigint, scale: number): number | string {
  return numberOrText(decimalText(stored, scale))
}

/** Canonical decimal text as a number, unless the number would print as another text. */
export function numberOrText(text: string): number | string {
  const number = Number(text)
  const exact = !/^-?[0-9]+$/.test(text) || Number.isSafeInteger(number)
  return exact && String(number) === text ? number : text
}

export function instantOf(ms: number): string {
  return new Date(ms).toISOString()
}

export function nullableInstantOf(ms: number | null): string | null {
  return ms === null ? null : instantOf(ms)
}
