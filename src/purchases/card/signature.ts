import { createHmac, timingSafeEqual } from 'node:crypto'
import { cardSignatureAgeSMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'

/**
 * Whether the header `Stripe-Signature` vouches for these very bytes: one of its `v1` is theirs under the secret, and its time is
 * at most five minutes from now, either way. Pure.
 */
export function isSigned(raw: Buffer, header: string, { secret, now }: { secret: string; now: Ms }): boolean {
  const parts = header
    .split(',')
    .slice(0, partsMax)
    .map((part) => part.trim())
  const times = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2))
  const [time] = times
  if (time === undefined || times.length > 1 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(now / 1000 - Number(time)) > cardSignatureAgeSMax) return false
  const expected = createHmac('sha256', secret).update(`${time}.`).update(raw).digest()
  return parts.some((part) => part.startsWith('v1=') && isSame(expected, part.slice(3)))
}

/** Stripe signs with the old and the new secret for a day when one is rolled: two, and room for other schemes. */
const partsMax = 20

function isSame(expected: Buffer, hex: string): boolean {
  return /^[0-9a-f]{64}$/.test(hex) && timingSafeEqual(expected, Buffer.from(hex, 'hex'))
}
