import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { type Account, all, change, get, type Thing } from '../../store-sim/stripe/account.ts'
import { answerCard } from '../../store-sim/stripe/call.ts'
import { bill, dispute, pay, refund } from '../../store-sim/stripe/happen.ts'
import { signatureOf } from '../../store-sim/stripe/sign.ts'

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

/** The simulator's Stripe, as far as a test steers it. */
export interface CardStore extends AsyncDisposable {
  url: string
  secretKey: string
  webhookSecret: string
  /** `POST /v1/checkout/sessions`, with what was sent. */
  calls: { call: string; form: URLSearchParams; headers: IncomingMessage['headers'] }[]
  /** What it does instead of answering; `silence`: it hangs up. */
  fault: ((call: string) => Fault | 'silence' | undefined) | undefined
  /** What it says instead of the truth: the content of an answer as it would be. */
  bend: ((call: string, content: unknown) => unknown) | undefined
  /** How long it thinks about each answer. */
  slowMs: number
  /** A price that is paid once; every other one renews each month. */
  sellOnce: (price: string) => void
  /** Of a kind, as the API shows them, or nearly so. */
  all: (object: string) => Thing[]
  get: (id: string) => Thing
  change: (id: string, changes: Record<string, unknown>) => void
  /** Pays a page. Gives the id of the subscription or the charge that it became. */
  pay: (sessionId: string, more?: { from?: number; until?: number; trial?: boolean }) => string
  /** The next paid month of a subscription. Gives the invoice's id. */
  invoice: (subscriptionId: string, from: number, until: number, more?: Record<string, unknown>) => string
  chargeOf: (invoiceId: string) => string
  refund: (chargeId: string, amount?: number) => void
  dispute: (chargeId: string, status?: string) => string
  /** An event as it is sent: the bytes, and the header that vouches for them. */
  sign: (event: SentEvent) => { raw: string; signature: string | null }
  send: (url: string, event: SentEvent) => Promise<number>
}

const monthMs = 30 * 24 * 3600_000

/** The simulator's Stripe on a port of its own: what happens there is said by the test. */
export async function startCardStore(): Promise<CardStore> {
  const held: Account['held'] = {
    ...{ secretKey: `sk_test_${randomText(24)}`, webhookSecret: `whsec_${randomText(24)}` },
    ...{ objects: {}, answered: {}, pricesOnce: [] },
  }
  const account: Account = {
    held,
    newId: (prefix) => `${prefix}${randomText(24)}`,
    now: () => Date.now(),
    pageUrl: (id) => `https://checkout.stripe.com/c/pay/${id}`,
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = await text(request)
    const { pathname, searchParams } = new URL(must(request.url, 'a request'), 'http://local')
    const { method = 'GET', headers } = request
    const call = `${method} ${pathname}`
    store.calls.push({ call, form: new URLSearchParams(body), headers })
    if (store.slowMs > 0) await sleep(store.slowMs)
    const fault = store.fault?.(call)
    if (fault === 'silence') return request.socket.destroy()
    if (fault) return response.writeHead(fault.status, fault.headers).end(fault.body ?? '{}')
    const key = headers['idempotency-key']
    const { status, body: content } = answerCard(account, {
      ...{ method, path: pathname.slice('/v1'.length), query: searchParams, body },
      ...{ authorization: headers.authorization, idempotencyKey: typeof key === 'string' ? key : undefined },
    })
    const said = status === 200 && store.bend ? store.bend(call, content) : content
    response.writeHead(status, { 'content-type': 'application/json' })
    return response.end(typeof said === 'string' ? said : JSON.stringify(said))
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const store: CardStore = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // a TCP address after listen
    ...{ secretKey: held.secretKey, webhookSecret: held.webhookSecret },
    ...{ calls: [], fault: undefined, bend: undefined, slowMs: 0 },
    sellOnce: (price) => void held.pricesOnce.push(price),
    all: (object) => all(account, object),
    get: (id) => get(account, id),
    change: (id, changes) => change(account, id, changes),
    pay: (id, { from = Date.now() - 1000, until = from + monthMs, trial = false } = {}) =>
      pay(account, id, { from, until, trial }),
    invoice: (id, from, until, more) => bill(account, id, { from, until }, more),
    chargeOf: (id) => String(get(account, id).charge),
    refund: (id, amount) => refund(account, id, amount),
    dispute: (id, status) => dispute(account, id, status),
    sign({ type, object, id = `evt_${randomText(16)}`, secret = held.webhookSecret, at = Date.now(), ...more }) {
      const raw = more.raw ?? JSON.stringify({ id, object: 'event', type, data: { object: { id: object } } }, null, 2)
      return { raw, signature: more.signature === undefined ? signatureOf(secret, raw, at) : more.signature }
    },
    async send(to, event) {
      const { raw, signature } = store.sign(event)
      const signed: Record<string, string> = signature === null ? {} : { 'stripe-signature': signature }
      const headers = { 'content-type': 'application/json', ...signed }
      const response = await fetch(to, { method: 'POST', headers, body: raw })
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
