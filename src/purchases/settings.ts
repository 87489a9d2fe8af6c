import type { Tx } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import { dayMs, reviewDaysMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { lockSettings, upsertSettings } from './config-store.ts'
import type { Ms, StoreSettings } from './types.ts'

export const defaultSettings: StoreSettings = Object.freeze({
  sandboxInLive: 'review',
  reviewOpenUntil: null,
  reviewCustomers: [],
  unboundPurchases: 'reject',
  transferPolicy: 'keep',
  clientTokenNamespaces: null,
  revocation: 'background',
  pollLeaseHours: 24,
  playVoidedOrderEndsAccess: true,
  checkoutReturnUrls: [],
  cardGraceHours: 72,
})

/** What was changed from the defaults, with the defaults of today. */
export function settingsOf(stored: Partial<StoreSettings> | null): StoreSettings {
  return { ...defaultSettings, ...stored }
}

/** Changes what is named, in the caller's transaction. Throws `invalid_request` for a review that would stay open too long. */
export async function updateSettings(
  tx: Tx,
  scope: Scope,
  appId: string,
  { changes, now }: { changes: Partial<StoreSettings>; now: Ms },
): Promise<{ before: StoreSettings; after: StoreSettings }> {
  const { reviewOpenUntil } = changes
  if (typeof reviewOpenUntil === 'number' && reviewOpenUntil > now + reviewDaysMax * dayMs) {
    throw refuse('invalid_request', {
      param: 'review_open_until',
      message: `review_open_until is at most ${reviewDaysMax} days ahead`,
    })
  }
  const stored = await lockSettings(tx, scope, appId)
  const after = { ...stored, ...changes }
  await upsertSettings(tx, scope, appId, after)
  return { before: settingsOf(stored), after: settingsOf(after) }
}
