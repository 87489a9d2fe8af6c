/** Names that generator, seeding and the check afterwards derive alike, so that no list of ids has to be kept. */

/** Digits of the counter at the end of every id. */
export const counterDigits = 12

/** Distinct ids of one length, so that requests are stamped in place. */
export function distinctIdOf(customer: number): string {
  return `bench-${String(customer).padStart(8, '0')}`
}

/**
 * The first 24 characters of every event uuid and operation id of one round; the counter in 12 hexadecimal digits follows.
 * Shaped like UUID version 7, which is what mobile clients send: rising in time.
 */
export function idPrefix(startedMs: number, round: number): string {
  const time = startedMs.toString(16).padStart(12, '0')
  const tail = round.toString(16).padStart(6, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${tail.slice(0, 3)}-8${tail.slice(3)}-`
}

/** The customer of the n-th request: spread evenly and without a pattern, and the same for every server. */
export function customerOf(n: number, customers: number): number {
  let mixed = Math.imul(n ^ (n >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return ((mixed ^ (mixed >>> 15)) >>> 0) % customers
}

/** Writes `value` right-aligned in lower-case digits of `radix` into bytes that already hold a number there. */
export function stampNumber(bytes: Buffer, end: number, digits: number, value: number, radix: 10 | 16): void {
  let left = value
  for (let at = end - 1; at >= end - digits; at--) {
    const digit = left % radix
    bytes[at] = digit < 10 ? 48 + digit : 87 + digit
    left = (left - digit) / radix
  }
}
