import { cardRenewalMs, cardSignatureAgeSMax, hourMs } from '../../kernel/limits.ts'
import { afterEndOf } from '../google/due.ts'
import type { Ms, PeriodAccess, Revocation, Unsupported } from '../types.ts'
import { countIn, type Fields, idIn, objectIn, textIn, timeIn } from './fields.ts'
import { lossOf } from './money.ts'

/** A line of what was bought at once, before its Product is known. */
export interface CardPeriod {
  line: string
  key: string
  priceId: string
  type: 'subscription' | 'one_time'
  quantity: number
  orderId: string
  startsAt: Ms
  paidUntil: Ms | null
  access: PeriodAccess
}

export interface CardState {
  status: string
  autoRenews: boolean | null
  nextCheckAt: Ms | null
  startedAt: Ms
  periods: CardPeriod[]
}

/** A subscription with its paid invoices as far as they count, the newest first, each with its charge, and the disputes about them. */
export interface ReadSubscription {
  subscription: Fields
  items: Fields[]
  invoices: { invoice: Fields; lines: Fields[] }[]
  disputes: Fields
}

interface Asked {
  now: Ms
  graceHours: number
}

const ourWords: Record<string, string> = { trialing: 'active', active: 'active', past_due: 'grace' }
const closedBy: Record<string, Unsupported> = {
  unpaid: 'billing_retry',
  paused: 'paused',
  incomplete: 'purchase_pending',
  incomplete_expired: 'purchase_canceled',
}

/**
 * What a subscription gives: each item what its newest paid invoice paid for, as the state allows. Nothing unpaid gives
 * anything but through grace. Null for a state that Stripe does not document. Pure.
 */
export function stateOf(read: ReadSubscription, { now, graceHours }: Asked): CardState | null {
  const { subscription, items, invoices, disputes } = read
  const word = textIn(subscription, 'status') ?? ''
  if (!(word in ourWords) && !(word in closedBy) && word !== 'canceled') return null
  const renews = subscription.cancel_at_period_end !== true && timeIn(subscription, 'cancel_at') === null
  const until = (paidUntil: Ms) => lastsUntil(word, paidUntil, { renews, graceMs: graceHours * hourMs })
  const accessOf = (paidUntil: Ms, loss: Revocation | null): PeriodAccess => {
    const detail = closedBy[word]
    if (loss !== null && loss.share === 1) return revoked(loss)
    if (detail !== undefined) return { kind: 'closed', detail, claim: false, revocation: null }
    return { kind: 'open', until: until(paidUntil) }
  }
  const lossIn = (invoice: Fields) => lossOf(chargeOf(invoice), disputes, now)

  const periods = items.flatMap((item) => {
    const paid = paidFor(textIn(item, 'id') ?? '', invoices, now)
    const priceId = idIn(item, 'price')
    if (!paid || priceId === null) return []
    const { invoiceId, startsAt, paidUntil, invoice } = paid
    return {
      ...{ line: paid.itemId, key: `${invoiceId} ${priceId}`, priceId, type: 'subscription' as const },
      ...{ quantity: countIn(item, 'quantity'), orderId: invoiceId, startsAt, paidUntil },
      access: accessOf(paidUntil, lossIn(invoice)),
    }
  })
  const ends = periods.map(({ paidUntil }) => paidUntil)
  const end = ends.length === 0 ? null : Math.min(...ends)
  return {
    status: ourWords[word] ?? (word === 'canceled' ? 'canceled' : (closedBy[word] ?? word)),
    autoRenews: word === 'canceled' ? false : renews,
    nextCheckAt: end === null || word === 'canceled' ? null : afterEndOf(end, now),
    startedAt: timeIn(subscription, 'start_date') ?? timeIn(subscription, 'created') ?? now,
    periods: [...periods, ...boughtOnce(invoices, lossIn)],
  }
}

/** A renewal is charged about an hour after the period's end, and a card that fails then has its grace anyway. */
function lastsUntil(word: string, paidUntil: Ms, { renews, graceMs }: { renews: boolean; graceMs: Ms }): Ms {
  if (word === 'past_due') return paidUntil + graceMs
  if (word === 'canceled' || !renews) return paidUntil
  return paidUntil + Math.max(graceMs, cardRenewalMs)
}

export function revoked(revocation: Revocation): PeriodAccess {
  return { kind: 'closed', detail: 'revoked', claim: false, revocation }
}

/** The newest invoice that an item was paid by: whole periods before what was added within one, and none that lies ahead. */
function paidFor(itemId: string, invoices: ReadSubscription['invoices'], now: Ms) {
  for (const isPart of [false, true]) {
    for (const { invoice, lines } of invoices) {
      const line = lines.find(
        (each) =>
          idIn(each, 'subscription_item') === itemId &&
          (each.proration === true) === isPart &&
          (!isPart || Number(each.amount) > 0) &&
          hasBegun(each, now),
      )
      const period = line && objectIn(line, 'period')
      const startsAt = period ? timeIn(period, 'start') : null
      const paidUntil = period ? timeIn(period, 'end') : null
      const invoiceId = textIn(invoice, 'id')
      if (invoiceId === null || startsAt === null || paidUntil === null || paidUntil <= startsAt) continue
      return { itemId, invoice, invoiceId, startsAt, paidUntil }
    }
  }
  return undefined
}

/** What is paid ahead counts from its time on: until then the period before it does. Our clocks differ a little. */
function hasBegun(line: Fields, now: Ms): boolean {
  const startsAt = timeIn(objectIn(line, 'period'), 'start')
  return startsAt !== null && startsAt <= now + cardSignatureAgeSMax * 1000
}

/** Whether one of the invoices paid for a whole period of each item: older ones add nothing. */
export function areWhole(items: readonly Fields[], invoices: ReadSubscription['invoices'], now: Ms): boolean {
  const isOf = (id: string | null, line: Fields) =>
    idIn(line, 'subscription_item') === id && line.proration !== true && hasBegun(line, now)
  const isWhole = (id: string | null) => invoices.some(({ lines }) => lines.some((line) => isOf(id, line)))
  return items.every((item) => isWhole(textIn(item, 'id')))
}

export function isFirstInvoice(invoice: Fields): boolean {
  return invoice.billing_reason === 'subscription_create'
}

/** Sold beside the subscription, on its first invoice. */
function boughtOnce(
  invoices: ReadSubscription['invoices'],
  lossIn: (invoice: Fields) => Revocation | null,
): CardPeriod[] {
  return invoices.flatMap(({ invoice, lines }) => {
    const invoiceId = textIn(invoice, 'id')
    const startsAt = timeIn(invoice, 'created')
    if (!isFirstInvoice(invoice) || invoiceId === null || startsAt === null) return []
    return lines.flatMap((line) => {
      const [id, priceId] = [textIn(line, 'id'), idIn(line, 'price')]
      if (idIn(line, 'subscription_item') !== null || id === null || priceId === null) return []
      return {
        ...{ line: id, key: invoiceId, priceId, type: 'one_time' as const, quantity: countIn(line, 'quantity') },
        ...{ orderId: invoiceId, startsAt, paidUntil: null, access: onceAccess(lossIn(invoice)) },
      }
    })
  })
}

/** Of units a part may be given back; the rest stays. */
export function onceAccess(loss: Revocation | null): PeriodAccess {
  return loss === null ? { kind: 'open', until: null } : revoked(loss)
}

function chargeOf(invoice: Fields): Fields | null {
  const charge = objectIn(invoice, 'charge')
  return textIn(charge, 'id') === null ? null : charge
}

/** Ids of the charges that Stripe calls disputed. */
export function disputedCharges(charges: readonly Fields[]): string[] {
  return charges.filter((charge) => charge.disputed === true).flatMap((charge) => textIn(charge, 'id') ?? [])
}

export function chargesOf(invoices: ReadSubscription['invoices']): Fields[] {
  return invoices.map(({ invoice }) => objectIn(invoice, 'charge'))
}
