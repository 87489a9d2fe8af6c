import { storeVerdictMsMax } from '../../kernel/limits.ts'
import type { CredentialCheck } from '../check-credential.ts'
import type { CardApi } from './api.ts'

/** Asks for the newest payment page: whoever is shown it, or that there is none, may open others. */
export function createCardCheck(api: CardApi): CredentialCheck {
  return async (app) => {
    const { stripe } = app.credentials
    if (!stripe) return 'There is no secret key.'
    if (app.settings.checkoutReturnUrls.length === 0)
      return 'The app has no checkout_return_urls in its store settings.'
    const signal = AbortSignal.timeout(storeVerdictMsMax)
    const answer = await api.get(app, '/v1/checkout/sessions', [['limit', '1']], signal)
    if (answer.kind === 'ok') return null
    if (answer.kind === 'limited') return 'Stripe wants us to wait.'
    if (answer.kind === 'silent') return 'Stripe does not answer.'
    return 'Stripe does not take the key, or it has no rights to Checkout Sessions.'
  }
}
