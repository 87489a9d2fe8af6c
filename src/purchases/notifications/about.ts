import type { JsonObject } from '../../events/index.ts'
import { readCompact } from '../apple/compact.ts'

/** Why a notification was given up whose customer is gone: there is nobody to follow it for. */
export const erasedBecause = 'its customer was deleted'

/**
 * What a notification of the App Store is found by when its customer is deleted: original transaction id and account token.
 * Its inner part is read without a look at its signature: it stands in a payload that was verified, and decides nothing.
 */
export function aboutSigned(data: JsonObject | null): string[] {
  const text = data?.signedTransactionInfo
  const inner = typeof text === 'string' ? readCompact(text) : 'none'
  if (typeof inner === 'string') return []
  const { originalTransactionId, appAccountToken } = inner.payload
  return [originalTransactionId, typeof appAccountToken === 'string' ? appAccountToken.toLowerCase() : null].filter(
    (key) => typeof key === 'string',
  )
}

export function aboutOf({ about }: JsonObject): string[] {
  return Array.isArray(about) ? about.filter((key) => typeof key === 'string') : []
}
