import { dayMs, storeUnreadMsMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'
import type { PlayItem, PlayPurchase } from './purchase.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** After the end of a period: the renewal is looked for soon, then less and less often. */
const afterEnd = [5 * minuteMs, hourMs, 6 * hourMs]

/** When to read a purchase again; null when nothing can come of it any more. Pure. */
export function nextCheckAt({ items, status }: Pick<PlayPurchase, 'items' | 'status'>, now: Ms): Ms | null {
  if (status === 'expired' || status === 'pending_canceled' || status === 'cancelled') return null
  const ends = items.flatMap(({ expiresAt }) => expiresAt ?? [])
  const end = ends.length === 0 ? null : Math.min(...ends)
  return Math.min(now + storeUnreadMsMax, end === null ? quiet(status, now) : afterEndOf(end, now))
}

/** Without an end of its own: what waits for a payment, and what is owned for good. */
function quiet(status: string, now: Ms): Ms {
  return status === 'pending' ? now + hourMs : now + storeUnreadMsMax
}

/** The next of: 5 minutes, 1 hour, 6 hours and each day after the end. */
export function afterEndOf(end: Ms, now: Ms): Ms {
  const soon = afterEnd.find((ms) => end + ms > now)
  if (soon !== undefined) return end + soon
  return end + (Math.floor((now - end) / dayMs) + 1) * dayMs
}

/**
 * When Google refunds and revokes what nobody acknowledged: after 3 days, 3 minutes for license testers, and half the time
 * of a prepaid plan shorter than a week. Pure.
 */
export function acknowledgeBy({ startsAt, isTest }: PlayPurchase, { isPrepaid, expiresAt }: PlayItem): Ms | null {
  if (startsAt === null) return null
  if (isTest) return startsAt + 3 * minuteMs
  const lastsMs = expiresAt === null ? null : expiresAt - startsAt
  return startsAt + (isPrepaid && lastsMs !== null && lastsMs < 7 * dayMs ? Math.floor(lastsMs / 2) : 3 * dayMs)
}
