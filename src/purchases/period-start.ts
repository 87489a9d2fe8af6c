import type { Ms } from './types.ts'

/** What is known of the periods of one line of a purchase. */
export interface Lasting {
  key: string
  startsAt: Ms
  paidUntil: Ms | null
}

/**
 * When what a period gives begins. Google Play tells when a subscription began and until when it is paid, not when each
 * period began: one that follows another begins where that one ended. After a gap, as of a subscription on hold, nobody knows
 * the very beginning: then it is not before somebody noticed, so that no reset of a time that was not paid brings units. Pure.
 */
export function startOf(period: Lasting, known: readonly Lasting[], now: Ms): Ms {
  const same = known.find(({ key }) => key === period.key)
  if (same) return same.startsAt
  const before = known.reduce<Lasting | null>((last, each) => (endOf(each) > endOf(last) ? each : last), null)
  if (before === null || before.paidUntil === null || period.paidUntil === null) return period.startsAt
  if (period.startsAt >= before.paidUntil) return period.startsAt
  const lasted = before.paidUntil - before.startsAt
  const further = period.paidUntil - before.paidUntil
  if (further > 0 && further <= lasted * gapFrom) return before.paidUntil
  const from = further > 0 ? Math.max(before.paidUntil, now) : Math.max(period.startsAt, now)
  return Math.min(from, period.paidUntil - 1)
}

/** Months differ by a tenth; what ends later than that after the period before was paid after a gap, or for longer. */
const gapFrom = 1.5

function endOf(period: Lasting | null): Ms {
  return period?.paidUntil ?? Number.NEGATIVE_INFINITY
}
