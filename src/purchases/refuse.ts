import { type ErrorCode, type Refusal, refuse } from '../kernel/errors.ts'
import { retryAfterS as someRetryAfterS } from '../kernel/retry-after.ts'
import type { Refused, Store, Suffix } from './types.ts'

const prefixes = {
  appstore: 'app_store_purchase_',
  playstore: 'android_store_purchase_',
  stripe: 'stripe_purchase_',
} as const

/** Details are public only where the contract names them: every other one is for the log. */
export function refusePurchase(store: Store, { suffix, detail, retryAfterS, cause }: Refused): Refusal {
  const code: ErrorCode = `${prefixes[store]}${suffix}`
  const isTemporary = suffix === 'unavailable' || suffix === 'reconciliation_retryable'
  // The App Store side never answers 429: its clients know only 503.
  const isLimited = store === 'playstore' && suffix === 'unavailable' && detail === 'rate_limited'
  return refuse(code, {
    ...(suffix === 'unsupported' ? { reason: detail } : {}),
    ...(isTemporary ? { retryAfterS: retryAfterS ?? someRetryAfterS() } : {}),
    ...(isLimited ? { status: 429 as const } : {}),
    cause: cause ?? new Error(`${suffix}: ${detail}`),
  })
}

/** Bringing the same evidence again soon would end the same. */
export function isStable(suffix: Suffix): boolean {
  return suffix === 'invalid'
}
