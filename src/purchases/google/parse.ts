import type { Ms } from '../types.ts'
import { Unreadable } from './fields.ts'
import { readOneTime } from './one-time.ts'
import type { PlayKind } from './play-api.ts'
import type { PlayPurchase } from './purchase.ts'
import { readSubscription } from './subscription.ts'

/** Null: an answer that is not what the store documents is no verdict. */
export function parsePurchase(kind: PlayKind, body: unknown, now: Ms): PlayPurchase | null {
  try {
    return kind === 'subscription' ? readSubscription(body, now) : readOneTime(body, now)
  } catch (error) {
    if (error instanceof Unreadable) return null
    throw error
  }
}
