import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeJwt, SignJWT } from 'jose'
import { type StartOptions, type StoreSim, startStoreSim } from '../../store-sim/start.ts'

/** Any JSON answer. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads answers of many shapes
export type Body = any

export interface Answer {
  status: number
  body: Body
  headers: Headers
}

export interface Simulator extends AsyncDisposable {
  sim: StoreSim
  url: string
  config: Body
  call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  /** A control call that has to succeed. */
  control: (method: string, path: string, body?: object) => Promise<Body>
  buyApple: (purchase: object) => Promise<Body>
  buyPlay: (purchase: object) => Promise<Body>
  verb: (held: Body, verb: string, body?: object) => Promise<Body>
  move: (by: string) => Promise<void>
  /** The App Store Server API, with a good bearer of the demo's app, or of another. */
  apple: (method: string, path: string, body?: unknown, of?: string) => Promise<Answer>
  /** The Play Developer API, below the package, with a good bearer. */
  play: (method: string, path: string, body?: unknown, of?: string) => Promise<Answer>
}

export const noon = Date.parse('2027-01-15T12:00:00Z')
export const bundle = 'com.example.demo'

export async function openSim(options: StartOptions = {}): Promise<Simulator> {
  const sim = await startStoreSim({ seed: 'test', clock: { mode: 'manual', at: noon }, ...options })
  const call: Simulator['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${sim.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, body: isJson ? parse(text) : text, headers: response.headers }
  }
  const control: Simulator['control'] = async (method, path, body) => {
    const answer = await call(method, path, body)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const config = await control('GET', '/sim/config')
  let bearer = ''
  return {
    sim,
    url: sim.url,
    config,
    call,
    control,
    buyApple: (purchase) => control('POST', '/sim/appstore/purchases', { account: 'ann', ...purchase }),
    buyPlay: (purchase) => control('POST', '/sim/playstore/purchases', { account: 'ann', ...purchase }),
    verb: ({ store, id }, verb, body = {}) => control('POST', `/sim/${store}/purchases/${id}/${verb}`, body),
    move: async (by) => void (await control('POST', '/sim/clock', { by })),
    apple: async (method, path, body, of = bundle) =>
      call(method, `/appstore${path}`, body, { authorization: `Bearer ${await appleBearer(config, { bid: of })}` }),
    play: async (method, path, body, of = bundle) => {
      bearer ||= (await fetchPlayBearer(config)).access_token
      const base = `/play/androidpublisher/v3/applications/${of}`
      return call(method, `${base}${path}`, body, { authorization: `Bearer ${bearer}` })
    },
    [Symbol.asyncDispose]: () => sim[Symbol.asyncDispose](),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function appleBearer({ appstore }: Body, changes: Record<string, unknown> = {}, key = appstore.private_key) {
  const now = Math.floor(Date.now() / 1000)
  const { kid = appstore.key_id, ...claims } = changes
  const usual = { iss: appstore.issuer_id, iat: now, exp: now + 300, aud: 'appstoreconnect-v1', bid: bundle }
  return new SignJWT({ ...usual, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: String(kid), typ: 'JWT' })
    .sign(createPrivateKey(key))
}

export function playAssertion({ playstore }: Body, changes: Record<string, unknown> = {}): Promise<string> {
  const { service_account: account } = playstore
  const now = Math.floor(Date.now() / 1000)
  const scope = 'https://www.googleapis.com/auth/androidpublisher'
  const usual = { iss: account.client_email, scope, aud: account.token_uri, iat: now, exp: now + 3600 }
  return new SignJWT({ ...usual, ...changes })
    .setProtectedHeader({ alg: 'RS256', kid: account.private_key_id })
    .sign(createPrivateKey(account.private_key))
}

export async function postAssertion(assertion: string, tokenUri: string): Promise<Answer> {
  const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
  const response = await fetch(tokenUri, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: grantType, assertion }),
  })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

async function fetchPlayBearer(config: Body): Promise<Body> {
  const answer = await postAssertion(await playAssertion(config), config.playstore.service_account.token_uri)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

export interface Received {
  headers: Record<string, unknown>
  body: Body
}

export interface Receiver extends AsyncDisposable {
  url: string
  received: Received[]
  /** What it answers from now on. */
  status: number
}

/** Stands where the service would: keeps what stores send. */
export async function openReceiver(): Promise<Receiver> {
  const server = createServer((incoming, outgoing) => {
    const parts: Buffer[] = []
    incoming.on('data', (part: Buffer) => parts.push(part))
    incoming.on('end', () => {
      receiver.received.push({ headers: incoming.headers, body: JSON.parse(Buffer.concat(parts).toString()) })
      outgoing.writeHead(receiver.status).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, // it listens on a port
    received: [],
    status: 200,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return receiver
}

/** `DID_RENEW BILLING_RECOVERY` and the like, of what the App Store sent. */
export function appleLabels({ received }: Receiver): string[] {
  return received.map(({ body }) => {
    const { notificationType, subtype }: Body = decodeJwt(body.signedPayload)
    return subtype === undefined ? notificationType : `${notificationType} ${subtype}`
  })
}

/** What Play's notifications carry. */
export function playNotices({ received }: Receiver): Body[] {
  return received.map(({ body }) => JSON.parse(Buffer.from(body.message.data, 'base64').toString()))
}
