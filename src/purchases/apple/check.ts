import { storeVerdictMsMax } from '../../kernel/limits.ts'
import type { CredentialCheck } from '../check-credential.ts'
import type { AppStoreApi } from './api.ts'

/** Asks for a transaction that nobody has: whoever is told so was let in. */
export function createAppStoreCheck(api: AppStoreApi): CredentialCheck {
  return async (app) => {
    if (app.bundleId === null) return 'The app has no bundle_id.'
    const { appstore } = app.credentials
    if (!appstore?.api) return 'There is no key: issuer_id, key_id and private_key are missing.'
    const isLive = app.scope.environment === 'live'
    if (isLive && appstore.appAppleId === null) return 'app_apple_id is missing: live purchases are answered 503.'
    const where = isLive ? 'production' : 'sandbox'
    const answer = await api.read(app, where, '/inApps/v1/transactions/1', AbortSignal.timeout(storeVerdictMsMax))
    if (answer.kind === 'refused') return 'The App Store does not take the key.'
    return answer.kind === 'silent' ? 'The App Store does not answer.' : null
  }
}
