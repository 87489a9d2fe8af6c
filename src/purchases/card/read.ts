import { cardInvoicePagesMax, cardInvoicesFirst, dayMs, storeVerdictMsMax, stripePageMax } from '../../kernel/limits.ts'
import type { Refused, StoreApp } from '../types.ts'
import type { CardApi, Query } from './api.ts'
import { type Fields, idIn, listIn, objectIn, textIn, timeIn } from './fields.ts'
import { notAnswered } from './not-answered.ts'
import { chargeOf, paidOnce } from './session.ts'
import {
  areWhole,
  type CardState,
  chargesOf,
  disputedCharges,
  isFirstInvoice,
  type ReadSubscription,
  stateOf,
} from './subscription.ts'

/** What an event named, or what a purchase is known by. */
export interface CardHint {
  object: 'checkout.session' | 'subscription' | 'invoice' | 'charge' | 'dispute'
  id: string
}

/** A page or a subscription as Stripe has it now. */
export interface CardReading {
  kind: 'read'
  rootKey: string
  /** The instant before it was read. */
  readAt: number
  isLive: boolean
  metadata: Fields
  state: CardState
  /** Kept as Stripe told it: amounts in minor units. Nothing of who paid. */
  claims: Fields
}

export type ReadCard = (app: StoreApp, hint: CardHint, now: number) => Promise<CardReading | Refused>

const kept = [
  ...['id', 'object', 'status', 'mode', 'currency', 'amount_total', 'amount_subtotal', 'payment_status', 'created'],
  ...['start_date', 'current_period_start', 'current_period_end', 'cancel_at', 'cancel_at_period_end', 'canceled_at'],
]
const keptOfInvoices = ['id', 'currency', 'amount_paid', 'amount_due', 'total', 'billing_reason', 'created']

/** Reads whatever an event was about again, from the page or the subscription that it belongs to. Writes nothing. */
export function createReadCard(api: CardApi): ReadCard {
  return async (app, hint, now) => {
    const signal = AbortSignal.timeout(storeVerdictMsMax)
    const asking = asker((path, query) => api.get(app, path, query, signal))
    try {
      const root = await rootOf(asking, hint)
      if (root.object === 'subscription') return await readSubscription(asking, app, root.id, now)
      return await readSession(asking, app, root.id, now)
    } catch (error) {
      if (error instanceof Stopped) return error.refused
      throw error
    }
  }
}

/** Leaves the reading with what is to be said of it. */
class Stopped extends Error {
  refused: Refused
  constructor(refused: Refused) {
    super(refused.detail)
    this.refused = refused
  }
}

function stop(suffix: Refused['suffix'], detail: string): never {
  throw new Stopped({ kind: 'refused', suffix, detail })
}

interface Asking {
  (path: string, query?: Query): Promise<Fields>
  /** When the first question was sent. */
  since: () => number
}

function asker(get: (path: string, query: Query) => ReturnType<CardApi['get']>): Asking {
  let first: number | undefined
  async function ask(path: string, query: Query = []): Promise<Fields> {
    const answer = await get(path, query)
    if (answer.kind === 'missing' || answer.kind === 'declined') return stop('invalid', 'Stripe does not know it')
    if (answer.kind !== 'ok') throw new Stopped(notAnswered(answer))
    first ??= answer.sentAt
    return answer.body
  }
  return Object.assign(ask, { since: () => first ?? 0 })
}

const at = (resource: string, id: string) => `/v1/${resource}/${encodeURIComponent(id)}`

async function rootOf(
  ask: Asking,
  { object, id }: CardHint,
): Promise<{ object: 'subscription' | 'session'; id: string }> {
  switch (object) {
    case 'subscription':
      return { object: 'subscription', id }
    case 'checkout.session': {
      const subscription = idIn(await ask(at('checkout/sessions', id)), 'subscription')
      return subscription === null ? { object: 'session', id } : { object: 'subscription', id: subscription }
    }
    case 'invoice': {
      const subscription = idIn(await ask(at('invoices', id)), 'subscription')
      return subscription === null
        ? stop('invalid', 'of no subscription')
        : { object: 'subscription', id: subscription }
    }
    case 'dispute': {
      const charge = idIn(await ask(at('disputes', id)), 'charge')
      return charge === null ? stop('invalid', 'of no charge') : rootOf(ask, { object: 'charge', id: charge })
    }
    case 'charge': {
      const charge = await ask(at('charges', id))
      const invoice = idIn(charge, 'invoice')
      if (invoice !== null) return rootOf(ask, { object: 'invoice', id: invoice })
      const intent = idIn(charge, 'payment_intent')
      if (intent === null) return stop('invalid', 'of no payment')
      const [session] = listIn(
        await ask('/v1/checkout/sessions', [
          ['payment_intent', intent],
          ['limit', '1'],
        ]),
      )
      const sessionId = session && textIn(session, 'id')
      return sessionId ? { object: 'session', id: sessionId } : stop('invalid', 'of no page')
    }
  }
}

async function readSession(ask: Asking, app: StoreApp, id: string, now: number): Promise<CardReading> {
  const session = await ask(at('checkout/sessions', id), [['expand[]', 'payment_intent.latest_charge']])
  checkOurs(app, session, id)
  const lines = listIn(await ask(`${at('checkout/sessions', id)}/line_items`, [['limit', '100']]))
  const charge = chargeOf(session)
  const disputes = await disputesOf(ask, charge === null ? [] : disputedCharges([charge]))
  const state = paidOnce({ session, lines, disputes }, now)
  if (state === null) return stop('unsupported', 'purchase_pending')
  const claims = { ...only(session, kept), payment_intent: idIn(session, 'payment_intent') }
  return readingOf(ask, session, { rootKey: id, state, claims })
}

async function readSubscription(ask: Asking, app: StoreApp, id: string, now: number): Promise<CardReading> {
  const subscription = await ask(at('subscriptions', id))
  checkOurs(app, subscription, id)
  const own = objectIn(subscription, 'items')
  const items =
    own.has_more === true
      ? listIn(
          await ask('/v1/subscription_items', [
            ['subscription', id],
            ['limit', '100'],
          ]),
        )
      : listIn(own)
  const invoices = await invoicesOf(ask, { subscription, items }, now)
  const disputes = await disputesOf(ask, disputedCharges(chargesOf(invoices)))
  const graceHours = app.settings.cardGraceHours
  const state = stateOf({ subscription, items, invoices, disputes }, { now, graceHours })
  if (state === null) return stop('reconciliation_retryable', 'a state that is not known')
  const paid = invoices.slice(0, cardInvoicesFirst).map(({ invoice }) => only(invoice, keptOfInvoices))
  const claims = { ...only(subscription, kept), invoices: paid }
  return readingOf(ask, subscription, { rootKey: id, state, claims })
}

/**
 * The newest paid invoices, as far back as one of them paid for a whole period of each item; and the first one, for what was sold
 * beside the subscription may be taken back at any time.
 */
async function invoicesOf(
  ask: Asking,
  { subscription, items }: { subscription: Fields; items: Fields[] },
  now: number,
): Promise<ReadSubscription['invoices']> {
  const invoices: ReadSubscription['invoices'] = []
  const look = async (limit: number, ...rest: Query) => {
    const query: Query = [
      ['subscription', textIn(subscription, 'id') ?? ''],
      ['status', 'paid'],
      ['limit', String(limit)],
      ['expand[]', 'data.charge'],
    ]
    const list = await ask('/v1/invoices', [...query, ...rest])
    const known = new Set(invoices.map(({ invoice }) => invoice.id))
    for (const invoice of listIn(list)) {
      if (!known.has(invoice.id)) invoices.push({ invoice, lines: await linesOf(ask, invoice) })
    }
    return list.has_more === true
  }

  let hasMore = await look(cardInvoicesFirst)
  for (let pages = 1; hasMore && pages < cardInvoicePagesMax && !areWhole(items, invoices, now); pages++) {
    hasMore = await look(stripePageMax, ['starting_after', String(invoices.at(-1)?.invoice.id)])
  }
  const created = timeIn(subscription, 'created')
  if (hasMore && created !== null && !invoices.some(({ invoice }) => isFirstInvoice(invoice))) {
    await look(cardInvoicesFirst, ['created[lte]', String((created + dayMs) / 1000)])
  }
  return invoices
}

async function linesOf(ask: Asking, invoice: Fields): Promise<Fields[]> {
  const own = objectIn(invoice, 'lines')
  const id = textIn(invoice, 'id')
  if (own.has_more !== true || id === null) return listIn(own)
  return listIn(await ask(`${at('invoices', id)}/lines`, [['limit', '100']]))
}

async function disputesOf(ask: Asking, charges: readonly string[]): Promise<Fields> {
  const data: Fields[] = []
  for (const charge of charges)
    data.push(
      ...listIn(
        await ask('/v1/disputes', [
          ['charge', charge],
          ['limit', '10'],
        ]),
      ),
    )
  return { data }
}

/** What was asked for; an account may sell other things too: ours carry whose they are. */
function checkOurs({ scope, appId }: StoreApp, object: Fields, id: string): void {
  if (textIn(object, 'id') !== id) stop('unavailable', 'of something else')
  const { project, app, environment, checkout } = objectIn(object, 'metadata')
  const isOurs = project === scope.projectId && app === appId && environment === scope.environment
  if (!isOurs || typeof checkout !== 'string') stop('invalid', 'not sold by this app')
}

function readingOf(ask: Asking, object: Fields, read: Pick<CardReading, 'rootKey' | 'state' | 'claims'>): CardReading {
  const metadata = objectIn(object, 'metadata')
  return { kind: 'read', readAt: ask.since(), isLive: object.livemode === true, metadata, ...read }
}

function only(object: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.filter((name) => name in object).map((name) => [name, object[name]]))
}
