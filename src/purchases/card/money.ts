import type { Ms, Revocation } from '../types.ts'
import { type Fields, listIn, textIn } from './fields.ts'

/** Disputes whose money was not taken, or came back. */
const harmless: ReadonlySet<unknown> = new Set([
  ...['won', 'warning_needs_response', 'warning_under_review', 'warning_closed'],
])

/** What a charge lost again: to a dispute that is open or lost, or to refunds. Null: nothing. Amounts are minor units. Pure. */
export function lossOf(charge: Fields | null, disputes: Fields, at: Ms): Revocation | null {
  if (charge === null) return null
  const { amount, amount_refunded: back } = charge
  const id = textIn(charge, 'id')
  const isDisputed = listIn(disputes).some((each) => each.charge === id && !harmless.has(each.status))
  if (isDisputed) return { at, reason: null, share: 1, kind: 'other' }
  if (charge.refunded === true) return { at, reason: null, share: 1, kind: 'refund' }
  if (typeof amount !== 'number' || typeof back !== 'number' || amount <= 0 || back <= 0) return null
  return { at, reason: null, share: Math.min(back / amount, 1), kind: 'refund' }
}
