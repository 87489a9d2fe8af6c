import { type Account, add, all, change, get, type Line, seconds, type Thing } from './account.ts'
import { price } from './open-page.ts'

export interface Paid {
  from: number
  until: number
  trial?: boolean
}

/** Pays a page. Gives the id of the subscription or of the charge that it became. */
export function pay(account: Account, sessionId: string, { from, until, trial = false }: Paid): string {
  const session = get(account, sessionId)
  const { lines = [] } = session
  const paid = { status: 'complete', payment_status: 'paid' }
  if (session.mode === 'payment') {
    const intent = account.newId('pi_')
    change(account, sessionId, { ...paid, payment_intent: intent })
    return charge(account, Number(session.amount_total), { payment_intent: intent })
  }
  const id = account.newId('sub_')
  const isOnce = ({ price: { id: each } }: Line) => account.held.pricesOnce.includes(each)
  const items = lines.filter((line) => !isOnce(line))
  add(account, {
    ...{ id, object: 'subscription', status: trial ? 'trialing' : 'active', livemode: false },
    ...{ created: seconds(from), start_date: seconds(from), cancel_at_period_end: false, cancel_at: null },
    metadata: session.carried,
    items: { data: items.map(({ price: each }, i) => ({ id: `si_${id}_${i}`, price: each, quantity: 1 })) },
  })
  change(account, sessionId, { ...paid, subscription: id })
  const once = lines
    .filter(isOnce)
    .map(({ id: line, price: each }) => ({ id: `il_${line}`, price: each, amount: price, quantity: 1 }))
  bill(account, id, { from, until, trial }, { billing_reason: 'subscription_create', once })
  return id
}

/** A paid invoice of a subscription for a period. Gives its id. `once`: lines beside those of its items. */
export function bill(
  account: Account,
  subscription: string,
  { from, until, trial = false }: Paid,
  { once = [], ...more }: Record<string, unknown> & { once?: Line[] } = {},
): string {
  const items = get(account, subscription).items?.data ?? []
  const period = { start: seconds(from), end: seconds(until) }
  const amount = trial ? 0 : price
  const lines = items.map(({ id, price: each, quantity }) => ({
    ...{ id: account.newId('il_'), subscription_item: id, price: each, quantity, period, amount, proration: false },
  }))
  const id = account.newId('in_')
  return add(account, {
    ...{ id, object: 'invoice', subscription, status: 'paid', created: seconds(from), currency: 'nok' },
    ...{ amount_paid: amount, billing_reason: 'subscription_cycle' },
    charge: trial ? null : charge(account, amount, { invoice: id }),
    lines: [...lines, ...once],
    ...more,
  })
}

export function refund(account: Account, chargeId: string, amount?: number): void {
  const all = Number(get(account, chargeId).amount)
  change(account, chargeId, { amount_refunded: amount ?? all, refunded: (amount ?? all) === all })
}

/** Gives the id of the dispute. */
export function dispute(account: Account, chargeId: string, status = 'needs_response'): string {
  change(account, chargeId, { disputed: true })
  return add(account, { id: account.newId('du_'), object: 'dispute', charge: chargeId, status })
}

/** The newest first, also of those of one second. */
export function invoicesOf(account: Account, subscription: string): Thing[] {
  const own = all(account, 'invoice').filter((one) => one.subscription === subscription)
  return own.toReversed().toSorted((a, b) => Number(b.created) - Number(a.created))
}

function charge(account: Account, amount: number, more: Record<string, unknown>): string {
  return add(account, {
    ...{ id: account.newId('ch_'), object: 'charge', amount, amount_refunded: 0, refunded: false, disputed: false },
    ...{ created: seconds(account.now()), invoice: null, payment_intent: null, ...more },
  })
}
