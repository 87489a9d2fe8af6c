import { playCallsPerMinute } from '../../kernel/limits.ts'
import type { Allowed } from '../quota.ts'
import type { StoreApp } from '../types.ts'
import type { PlayAccess } from './play-api.ts'

/** Where Google itself gives out bearers: the only address that a live key file may name. */
export const googleTokenUri = 'https://oauth2.googleapis.com/token'
const googleApi = 'https://androidpublisher.googleapis.com'
const googleKeys = 'https://www.googleapis.com/oauth2/v3/certs'

/** What to call Google Play with, or null: the app has no package name or no key file, or a live one that leads elsewhere. */
export function playAccess({ scope, appId, packageName, credentials }: StoreApp): PlayAccess | null {
  const account = credentials.playstore?.serviceAccount
  if (account === undefined || packageName === null) return null
  const whose = { scope, appId }
  if (scope.environment === 'live') {
    return account.tokenUri === googleTokenUri ? { whose, account, base: googleApi, packageName } : null
  }
  const base = (credentials.endpoints?.playApi ?? googleApi).replace(/\/+$/, '')
  return { whose, account, base, packageName }
}

/** Google counts the calls of a service account, whatever app they are about. */
export function allowedOf({ account }: PlayAccess): Allowed {
  return { name: `play ${account.clientEmail}`, perMinute: playCallsPerMinute }
}

/** Where the keys are that sign Pub/Sub pushes. */
export function pushKeysUrl({ scope, credentials }: Pick<StoreApp, 'scope' | 'credentials'>): string {
  return (scope.environment === 'test' ? credentials.endpoints?.playJwks : null) ?? googleKeys
}
