import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'

type Thing = Record<string, unknown>

export interface SentEvent {
  type: string
  object: string
  id?: string
  secret?: string
  /** When it says that it was signed. */
  at?: number
  /** In place of the whole header. */
  signature?: string | null
  /** In place of the body, signed as it is. */
  raw?: string
}

interface Fault {
  status: number
  body?: string
  headers?: Record<string, string>
}

export interface CardStore extends AsyncDisposable {
  url: string
  secretKey: string
  webhookSecret: string
  /** Every object by its id, as the API shows it. */
  objects: Map<string, Thing>
  /** `POST /v1/checkout/sessions`, with what was sent. */
  calls: { call: string; form: URLSearchParams; headers: IncomingMessage['headers'] }[]
  /** What it does instead of answering; `silence`: it hangs up. */
  fault: ((call: string) => Fault | 'silence' | undefined) | undefined
  /** What it says instead of the truth: the content of an answer as it would be. */
  bend: ((call: string, content: unknown) => unknown) | undefined
  /** How long it thinks about each answer. */
  slowMs: number
  /** Prices that stay with one payment; every other one renews each month. */
  once: Set<string>
  get: (id: string) => Thing
  change: (id: string, change: Thing) => void
  /** Pays a page. Gives the id of the subscription or the charge that it became. */
  pay: (sessionId: string, more?: { from?: number; until?: number; trial?: boolean }) => string
  /** The next paid month of a subscription. Gives the invoice's id. */
  invoice: (subscriptionId: string, from: number, until: number, more?: Thing) => string
  chargeOf: (invoiceId: string) => string
  refund: (chargeId: string, amount?: number) => void
  dispute: (chargeId: string, status?: string) => string
  /** An event as it is sent: the bytes, and the header that vouches for them. */
  sign: (event: SentEvent) => { raw: string; signature: string | null }
  send: (url: string, event: SentEvent) => Promise<number>
}

const seconds = (ms: number) => Math.floor(ms / 1000)
const monthMs = 30 * 24 * 3600_000

/** Stripe on a local port, as far as the service asks it: what it holds is set by the test. */
export async function startCardStore(): Promise<CardStore> {
  const made = new Map<string, { form: string; answer: Thing }>()
  const secretKey = `sk_test_${randomText(24)}`
  const webhookSecret = `whsec_${randomText(24)}`
  const add = (thing: Thing) => {
    store.objects.set(String(thing.id), thing)
    return String(thing.id)
  }
  const list = (data: unknown[], max = 10) => ({
    object: 'list',
    data: data.slice(0, max),
    has_more: data.length > max,
  })
  const all = (object: string) => [...store.objects.values()].filter((one) => one.object === object)

  function openSession(form: URLSearchParams): Thing {
    const priced = [...form].filter(([name]) => /^line_items\[\d+\]\[price\]$/.test(name)).map(([, price]) => price)
    const fields = (prefix: string) =>
      Object.fromEntries(
        [...form].flatMap(([name, value]) => {
          const [, key] = name.startsWith(prefix) ? (/\[(\w+)\]$/.exec(name) ?? []) : []
          return key === undefined ? [] : [[key, value]]
        }),
      )
    const id = `cs_test_${randomText(24)}`
    const session = {
      ...{ id, object: 'checkout.session', mode: form.get('mode'), status: 'open', payment_status: 'unpaid' },
      ...{ livemode: false, created: seconds(Date.now()), expires_at: seconds(Date.now() + 24 * 3600_000) },
      ...{ url: `https://checkout.stripe.com/c/pay/${id}`, client_reference_id: form.get('client_reference_id') },
      ...{ currency: 'nok', amount_total: 4900 * priced.length, payment_intent: null, subscription: null },
      metadata: fields('metadata['),
      carried: fields(form.get('mode') === 'payment' ? 'payment_intent_data[' : 'subscription_data['),
      lines: priced.map((price, i) => ({ id: `li_${id}_${i}`, object: 'item', price: { id: price }, quantity: 1 })),
      customer_details: { email: 'somebody@example.com' },
    }
    add(session)
    return session
  }

  function read(path: string, query: URLSearchParams): Thing | undefined {
    const [, , resource = '', second = '', third = '', fourth = ''] = path.split('/')
    const limit = Number(query.get('limit') ?? 10)
    if (resource === 'checkout') {
      if (third === '') {
        const intent = query.get('payment_intent')
        return list(
          all('checkout.session').filter((one) => intent === null || one.payment_intent === intent),
          limit,
        )
      }
      const session = store.objects.get(third)
      if (!session) return undefined
      const { lines, carried: _carried, ...shown } = session
      if (fourth === 'line_items') return list(lines as Thing[], limit)
      const isExpanded = query.get('expand[]') === 'payment_intent.latest_charge'
      if (!isExpanded || session.payment_intent === null) return shown
      const charge = must(
        all('charge').find((one) => one.payment_intent === session.payment_intent),
        'it was paid',
      )
      return { ...shown, payment_intent: { id: session.payment_intent, latest_charge: charge } }
    }
    if (resource === 'invoices' && second === '') {
      const until = Number(query.get('created[lte]') ?? Number.POSITIVE_INFINITY)
      const own = all('invoice').filter(
        ({ subscription, status, created }) =>
          subscription === query.get('subscription') && status === query.get('status') && Number(created) <= until,
      )
      const newest = own.toSorted((a, b) => Number(b.created) - Number(a.created))
      const after = newest.findIndex(({ id }) => id === query.get('starting_after'))
      return list(
        newest.slice(after + 1).map((one) => ({
          ...one,
          charge: one.charge === null ? null : store.get(one.charge as string), // an id, as it was made
          lines: list(one.lines as Thing[]),
        })),
        limit,
      )
    }
    if (resource === 'subscription_items') {
      return list((store.get(String(query.get('subscription'))).items as { data: Thing[] }).data, limit)
    }
    if (resource === 'disputes' && second === '') {
      return list(
        all('dispute').filter((one) => one.charge === query.get('charge')),
        limit,
      )
    }
    const one = store.objects.get(second)
    if (!one) return undefined
    if (resource === 'invoices' && third === 'lines') return list(one.lines as Thing[], limit)
    if (resource === 'subscriptions') return { ...one, items: list((one.items as { data: Thing[] }).data) }
    return one
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = await text(request)
    const { pathname, searchParams } = new URL(must(request.url, 'a request'), 'http://local')
    const call = `${request.method} ${pathname}`
    const reply = (status: number, content: unknown) => {
      const said = status === 200 && store.bend ? store.bend(call, content) : content
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(typeof said === 'string' ? said : JSON.stringify(said))
    }
    const form = new URLSearchParams(body)
    store.calls.push({ call, form, headers: request.headers })
    if (store.slowMs > 0) await sleep(store.slowMs)
    if (request.headers.authorization !== `Bearer ${secretKey}`) return reply(401, { error: { type: 'invalid' } })
    const fault = store.fault?.(call)
    if (fault === 'silence') return request.socket.destroy()
    if (fault) return response.writeHead(fault.status, fault.headers).end(fault.body ?? '{}')
    if (call === 'POST /v1/checkout/sessions') {
      const key = String(request.headers['idempotency-key'])
      const known = made.get(key)
      if (known && known.form !== body) return reply(400, { error: { type: 'idempotency_error' } })
      const session = known?.answer ?? openSession(form)
      made.set(key, { form: body, answer: session })
      return reply(200, session)
    }
    const found = request.method === 'GET' ? read(pathname, searchParams) : undefined
    return found ? reply(200, found) : reply(404, { error: { code: 'resource_missing' } })
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const store: CardStore = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{
      secretKey,
      webhookSecret,
      objects: new Map(),
      calls: [],
      fault: undefined,
      bend: undefined,
      slowMs: 0,
      once: new Set(),
    },
    get: (id) => must(store.objects.get(id), `${id} is known`),
    change(id, change) {
      store.objects.set(id, { ...store.get(id), ...change })
    },
    pay(sessionId, { from = Date.now() - 1000, until = from + monthMs, trial = false } = {}) {
      const session = store.get(sessionId)
      const lines = session.lines as { id: string; price: { id: string } }[]
      const paid = { status: 'complete', payment_status: 'paid' }
      if (session.mode === 'payment') {
        const intent = `pi_${randomText(16)}`
        store.change(sessionId, { ...paid, payment_intent: intent })
        return add(charge(Number(session.amount_total), { payment_intent: intent }))
      }
      const id = `sub_${randomText(16)}`
      const items = lines.filter(({ price }) => !store.once.has(price.id))
      add({
        ...{ id, object: 'subscription', status: trial ? 'trialing' : 'active', livemode: false },
        ...{ created: seconds(from), start_date: seconds(from), cancel_at_period_end: false, cancel_at: null },
        metadata: session.carried,
        items: { data: items.map(({ price }, i) => ({ id: `si_${id}_${i}`, price, quantity: 1 })) },
      })
      store.change(sessionId, { ...paid, subscription: id })
      const extra = lines
        .filter(({ price }) => store.once.has(price.id))
        .map(({ id: line, price }) => ({ id: `il_${line}`, price, amount: 4900, quantity: 1 }))
      store.invoice(id, from, until, { billing_reason: 'subscription_create', extra, trial })
      return id
    },
    invoice(subscription, from, until, { extra = [], trial = false, ...more } = {}) {
      const { items } = store.get(subscription) as { items: { data: Thing[] } }
      const period = { start: seconds(from), end: seconds(until) }
      const amount = trial ? 0 : 4900
      const lines = items.data.map(({ id, price, quantity }) => ({
        ...{ id: `il_${randomText(12)}`, subscription_item: id, price, quantity, period, amount, proration: false },
      }))
      return add({
        ...{ id: `in_${randomText(16)}`, object: 'invoice', subscription, status: 'paid', created: seconds(from) },
        ...{ currency: 'nok', amount_paid: amount, billing_reason: 'subscription_cycle' },
        charge: trial ? null : add(charge(amount, {})),
        lines: [...lines, ...(extra as Thing[])],
        ...more,
      })
    },
    chargeOf(invoiceId) {
      const id = String(store.get(invoiceId).charge)
      store.change(id, { invoice: invoiceId })
      return id
    },
    refund(id, amount) {
      const all = Number(store.get(id).amount)
      store.change(id, { amount_refunded: amount ?? all, refunded: (amount ?? all) === all })
    },
    dispute(id, status = 'needs_response') {
      store.change(id, { disputed: true })
      return add({ id: `du_${randomText(16)}`, object: 'dispute', charge: id, status })
    },
    sign({ type, object, id = `evt_${randomText(16)}`, secret = webhookSecret, at = Date.now(), ...more }) {
      const raw = more.raw ?? JSON.stringify({ id, object: 'event', type, data: { object: { id: object } } }, null, 2)
      const time = seconds(at)
      const signed = createHmac('sha256', secret).update(`${time}.${raw}`).digest('hex')
      return { raw, signature: more.signature === undefined ? `t=${time},v1=${signed},v0=${signed}` : more.signature }
    },
    async send(to, event) {
      const { raw, signature } = store.sign(event)
      const response = await fetch(to, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(signature === null ? {} : { 'stripe-signature': signature }),
        },
        body: raw,
      })
      await response.text()
      return response.status
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return store
}

function charge(amount: number, more: Thing): Thing {
  return {
    ...{ id: `ch_${randomText(16)}`, object: 'charge', amount, amount_refunded: 0, refunded: false, disputed: false },
    ...{ created: seconds(Date.now()), invoice: null, payment_intent: null, ...more },
  }
}
