import type { Ms } from '../types.ts'
import { countIn, type Fields, idIn, objectIn, textIn, timeIn } from './fields.ts'
import { lossOf } from './money.ts'
import { type CardState, onceAccess } from './subscription.ts'

/** A page on which things were paid once. Null: it was not, or not yet. Pure. */
export function paidOnce(
  { session, lines, disputes }: { session: Fields; lines: Fields[]; disputes: Fields },
  now: Ms,
): CardState | null {
  const id = textIn(session, 'id')
  const isPaid = session.payment_status === 'paid' || session.payment_status === 'no_payment_required'
  if (id === null || session.status !== 'complete' || !isPaid) return null
  const charge = chargeOf(session)
  const startedAt = (charge && timeIn(charge, 'created')) ?? timeIn(session, 'created') ?? now
  const access = onceAccess(lossOf(charge, disputes, now))
  const periods = lines.flatMap((line) => {
    const [lineId, priceId] = [textIn(line, 'id'), idIn(line, 'price')]
    if (lineId === null || priceId === null) return []
    return {
      ...{ line: lineId, key: id, priceId, type: 'one_time' as const, quantity: countIn(line, 'quantity') },
      ...{ orderId: idIn(session, 'payment_intent') ?? id, startsAt: startedAt, paidUntil: null, access },
    }
  })
  const isGone = access.kind === 'closed' && access.revocation?.share === 1
  return { status: isGone ? 'revoked' : 'active', autoRenews: null, nextCheckAt: null, startedAt, periods }
}

export function chargeOf(session: Fields): Fields | null {
  const charge = objectIn(objectIn(session, 'payment_intent'), 'latest_charge')
  return textIn(charge, 'id') === null ? null : charge
}
