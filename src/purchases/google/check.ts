import { storeVerdictMsMax } from '../../kernel/limits.ts'
import type { CredentialCheck } from '../check-credential.ts'
import { playAccess } from './access.ts'
import type { PlayApi } from './play-api.ts'

/** Asks for a purchase that nobody made: whoever is told so was let in. */
export function createPlayCheck(api: PlayApi): CredentialCheck {
  return async (app) => {
    if (app.packageName === null) return 'The app has no package_name.'
    const access = playAccess(app)
    if (access === null) return 'There is no service account.'
    const answer = await api.read(access, 'one_time', 'check', AbortSignal.timeout(storeVerdictMsMax))
    if (answer.kind === 'refused') {
      return 'Google does not take the key, or the service account has no rights to the app in the Play Console.'
    }
    if (answer.kind === 'silent') return 'Google Play does not answer.'
    return answer.kind === 'limited' ? 'Google Play wants us to wait.' : null
  }
}
