import { generateKeyPairSync, hash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { must } from '../../src/kernel/assert.ts'

/** What the store holds of a token, as its API shows it; `acknowledged` and `consumed` are kept apart. */
export interface SoldToken {
  kind: 'subscription' | 'one_time'
  body: Record<string, unknown>
  acknowledged: boolean
  consumed: boolean
}

export interface PlayStore extends AsyncDisposable {
  url: string
  serviceAccount: Record<string, string>
  sold: Map<string, SoldToken>
  voided: Record<string, unknown>[]
  /** Every call, tokens left out: `GET subscriptionsv2`, `POST acknowledge`. */
  calls: string[]
  /** What the next calls answer instead, by what they are; undefined: as usual. */
  fault: ((call: string) => { status: number; body?: string; headers?: Record<string, string> } | undefined) | undefined
  /** A push of Pub/Sub with the bearer that goes with it. */
  push: (url: string, data: object, more?: { messageId?: string; bearer?: string }) => Promise<number>
  bearer: (audience: string, claims?: Record<string, unknown>) => Promise<string>
}

export const pushEmail = 'push@example.iam.gserviceaccount.com'

/** Google Play on a local port, as far as the service asks it: what it holds is set by the test. */
export async function startPlayStore(packageName: string): Promise<PlayStore> {
  const account = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signer = await generateKeyPair('RS256')
  const jwks = { keys: [{ ...(await exportJWK(signer.publicKey)), kid: 'push', alg: 'RS256', use: 'sig' }] }
  const base = `/androidpublisher/v3/applications/${packageName}/purchases/`
  let messages = 0

  async function answer(request: IncomingMessage, response: ServerResponse) {
    await text(request)
    const { pathname } = new URL(must(request.url, 'a request'), 'http://local')
    const reply = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (pathname === '/token') return reply(200, { access_token: 'bearer', expires_in: 3600 })
    if (pathname === '/certs') return reply(200, jwks)
    if (request.headers.authorization !== 'Bearer bearer') return reply(401, {})
    if (!pathname.startsWith(base)) return reply(404, {})
    const rest = pathname.slice(base.length)
    const [resource = ''] = rest.split('/')
    const [, verb] = /:(\w+)$/.exec(rest) ?? []
    const call = `${request.method} ${verb ?? resource}`
    store.calls.push(call)
    const fault = store.fault?.(call)
    if (fault) return response.writeHead(fault.status, fault.headers).end(fault.body ?? '{}')
    if (resource === 'voidedpurchases') return reply(200, { voidedPurchases: store.voided })
    const [, encoded = ''] = /tokens\/([^/:]+)/.exec(rest) ?? []
    const sold = store.sold.get(decodeURIComponent(encoded))
    if (sold === undefined) return reply(404, { error: { status: 'NOT_FOUND' } })
    const kind = resource.startsWith('subscription') ? 'subscription' : 'one_time'
    if (kind !== sold.kind) return reply(400, { error: { status: 'INVALID_ARGUMENT' } })
    if (verb === undefined) return reply(200, shown(sold))
    if (verb === 'acknowledge' ? sold.acknowledged : sold.consumed) {
      return reply(400, { error: { status: 'FAILED_PRECONDITION' } })
    }
    if (verb === 'consume') sold.consumed = true
    sold.acknowledged = true
    return reply(200, {})
  }

  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const store: PlayStore = {
    url,
    serviceAccount: {
      type: 'service_account',
      client_email: `play-${hash('sha256', url).slice(0, 12)}@example.iam.gserviceaccount.com`,
      private_key_id: 'key-1',
      private_key: account.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      token_uri: `${url}/token`,
    },
    sold: new Map(),
    voided: [],
    calls: [],
    fault: undefined,
    bearer: (audience, claims = {}) =>
      new SignJWT({
        iss: 'https://accounts.google.com',
        aud: audience,
        email: pushEmail,
        email_verified: true,
        ...claims,
      })
        .setProtectedHeader({ alg: 'RS256', kid: 'push' })
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(signer.privateKey),
    async push(to, data, { messageId = `m-${++messages}-${url}`, bearer } = {}) {
      const message = { messageId, data: Buffer.from(JSON.stringify(data)).toString('base64') }
      const response = await fetch(to, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer ?? (await store.bearer(to))}` },
        body: JSON.stringify({ message, subscription: 'projects/p/subscriptions/play' }),
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

function shown({ kind, body, acknowledged, consumed }: SoldToken): object {
  const acknowledgementState = `ACKNOWLEDGEMENT_STATE_${acknowledged ? 'ACKNOWLEDGED' : 'PENDING'}`
  if (kind === 'subscription') return { ...body, acknowledgementState }
  const state = `CONSUMPTION_STATE_${consumed ? 'CONSUMED' : 'YET_TO_BE_CONSUMED'}`
  const [line] = body.productLineItem as [Record<string, unknown>] // as `oneTime` makes it
  const offer = { ...(line.productOfferDetails as object), consumptionState: state }
  return { ...body, acknowledgementState, productLineItem: [{ ...line, productOfferDetails: offer }] }
}
