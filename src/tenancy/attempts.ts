import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Sql } from '../db/pool.ts'
import { type Counted, countAttempts } from './attempt-store.ts'

/** What is left of an allowance that several subjects share: the one that has least left speaks. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  resetsInS: number
}

export interface AttemptLimit {
  max: number
  windowMs: number
}

/**
 * Counts an attempt at `what` by an address and for an e-mail, over all processes of the database. Refused ones count no
 * further, so that an allowance always comes back when its window ends.
 */
export async function attempt(
  sql: Sql,
  what: string,
  { address, email }: { address: string; email?: string | undefined },
  limit: AttemptLimit,
): Promise<Allowance> {
  const subjects = [['address', networkOf(address)], ...(email === undefined ? [] : [['email', email.toLowerCase()]])]
  const counted = await countAttempts(
    sql,
    subjects.map(([kind, name]) => hash('sha256', JSON.stringify([what, kind, name]), 'buffer')),
    limit,
  )
  return decideAllowance(counted, limit)
}

export function decideAllowance(counted: Counted[], { max }: AttemptLimit): Allowance {
  const highest = Math.max(...counted.map(({ count }) => count))
  const waits = counted.filter(({ count }) => count === highest).map(({ resetsInMs }) => resetsInMs)
  return {
    allowed: highest <= max,
    limit: max,
    remaining: Math.max(0, max - highest),
    resetsInS: Math.max(1, Math.ceil(Math.max(...waits) / 1000)),
  }
}

/** An IPv6 caller has a /64 to choose addresses from. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? []
  const parts = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - parts.length - after.length)
  const whole = [...parts, ...Array.from({ length: zeros }, () => '0'), ...after]
  return whole
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(':')
}
