import { dayMs } from '../period.ts'
import { type Account, add, seconds, type Thing } from './account.ts'

/** What each thing costs, in the minor unit of the currency. */
export const price = 4900

/** `POST /v1/checkout/sessions`. */
export function openPage(account: Account, form: URLSearchParams): Thing {
  const id = account.newId('cs_test_')
  const now = account.now()
  const prices = [...form].filter(([name]) => /^line_items\[\d+\]\[price\]$/.test(name)).map(([, each]) => each)
  const isPayment = form.get('mode') === 'payment'
  const session = {
    ...{ id, object: 'checkout.session', mode: form.get('mode'), status: 'open', payment_status: 'unpaid' },
    ...{ livemode: false, created: seconds(now), expires_at: seconds(now + dayMs), url: account.pageUrl(id) },
    ...{ client_reference_id: form.get('client_reference_id'), currency: 'nok', amount_total: price * prices.length },
    ...{ payment_intent: null, subscription: null, success_url: form.get('success_url') },
    ...{ cancel_url: form.get('cancel_url'), metadata: fieldsOf(form, 'metadata') },
    // What the payment or the subscription will carry: the API shows it there only.
    carried: fieldsOf(form, isPayment ? 'payment_intent_data[metadata]' : 'subscription_data[metadata]'),
    lines: prices.map((each, i) => ({ id: `li_${id}_${i}`, object: 'item', price: { id: each }, quantity: 1 })),
    customer_details: { email: 'somebody@example.com' },
  }
  add(account, session)
  return session
}

/** `metadata[app]=a` gives `{app: 'a'}`. */
function fieldsOf(form: URLSearchParams, prefix: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of form) {
    const key = name.startsWith(`${prefix}[`) ? name.slice(prefix.length + 1, -1) : ''
    if (/^\w+$/.test(key)) found[key] = value
  }
  return found
}
