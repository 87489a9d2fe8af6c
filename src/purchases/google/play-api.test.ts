import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { must } from '../../kernel/assert.ts'
import { systemClock } from '../../kernel/clock.ts'
import { createStoreCalls } from '../store-calls.ts'
import { createBearers } from './bearers.ts'
import { createPlayApi, type PlayAccess } from './play-api.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

type Reply = { status: number; body?: string; headers?: Record<string, string>; holdMs?: number }

/** A store that answers what it is told, one reply after the other, the last one for ever. */
async function store(
  replies: Reply[],
  token: Reply = { status: 200, body: '{"access_token":"bearer","expires_in":3600}' },
) {
  const asked: { method: string; url: string; authorization: string | undefined; body: string }[] = []
  const tokens: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    const isToken = request.url === '/token'
    if (isToken) tokens.push(body)
    else
      asked.push({
        method: must(request.method, 'a request'),
        url: must(request.url, 'a request'),
        authorization: request.headers.authorization,
        body,
      })
    const reply = isToken ? token : must(replies[Math.min(asked.length, replies.length) - 1], 'a reply')
    if (reply.holdMs !== undefined) return
    response.writeHead(reply.status, reply.headers).end(reply.body ?? '{}')
  }
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const serviceAccount = {
    clientEmail: 'play@example.com',
    privateKey: pem,
    privateKeyId: 'key-1',
    tokenUri: `${base}/token`,
  }
  const scope = { scopeId: 1, workspaceId: 'ws_1', projectId: 'prj_1', environment: 'test' } as const
  const whose = { scope, appId: 'app_1' }
  const access: PlayAccess = { whose, account: serviceAccount, base, packageName: 'app.example' }
  const bearers = createBearers(systemClock)
  return {
    ...{ asked, tokens, access, base, bearers, api: createPlayApi(bearers, createStoreCalls(systemClock)) },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const calm = () => AbortSignal.timeout(10_000)
const kindOf = async (replies: Reply[]) => {
  await using play = await store(replies)
  return { ...(await play.api.read(play.access, 'subscription', 'token', calm())), calls: play.asked.length }
}

test('each of Google’s answers is told apart, and asked again where that helps', async () => {
  const error = (status: string) => JSON.stringify({ error: { status } })
  const table: [reply: Reply, kind: string, calls: number][] = [
    [{ status: 200, body: '{"a":1}' }, 'ok', 1],
    [{ status: 400, body: error('INVALID_ARGUMENT') }, 'invalid', 1],
    [{ status: 400, body: error('FAILED_PRECONDITION') }, 'gone', 1],
    [{ status: 400, body: 'not json' }, 'invalid', 1],
    [{ status: 401 }, 'refused', 2],
    [{ status: 403 }, 'refused', 1],
    [{ status: 404 }, 'unknown', 2],
    [{ status: 410 }, 'gone', 1],
    [{ status: 414 }, 'invalid', 1],
    [{ status: 431 }, 'invalid', 1],
    [{ status: 429 }, 'limited', 1],
    [{ status: 500 }, 'silent', 2],
    [{ status: 503 }, 'silent', 2],
    [{ status: 302, headers: { location: '/elsewhere' } }, 'silent', 1],
    [{ status: 200, body: '{"trunc' }, 'silent', 2],
    [{ status: 200, body: `"${'x'.repeat(8 * 1024 * 1024)}"` }, 'silent', 2],
  ]
  for (const [reply, kind, calls] of table) {
    const found = await kindOf([reply])
    assert.deepEqual([found.kind, found.calls], [kind, calls], `${reply.status} ${reply.body?.slice(0, 40)}`)
  }
})

test('a second try that succeeds is the answer', async () => {
  for (const status of [500, 404, 401]) {
    const found = await kindOf([{ status }, { status: 200, body: '{"a":1}' }])
    assert.deepEqual([found.kind, found.calls], ['ok', 2], `${status}`)
  }
})

test('a wait that Google asks for is passed on in seconds, within an hour', async () => {
  const waits = async (header: string) => {
    const found = await kindOf([{ status: 429, headers: { 'retry-after': header } }])
    return found.kind === 'limited' && found.retryAfterS
  }
  assert.equal(await waits('17'), 17)
  assert.equal(await waits('0'), 1)
  assert.equal(await waits('86400'), 3600)
  assert.equal(await waits('Fri, 20 Nov 2026 10:00:00 GMT'), null)
})

test('tokens of 16,384 characters, of any characters, arrive whole', async () => {
  await using play = await store([{ status: 200 }])
  const token = `${'t'.repeat(16_380)}/?#%`
  assert.equal((await play.api.read(play.access, 'one_time', token, calm())).kind, 'ok')
  const path = '/androidpublisher/v3/applications/app.example/purchases/productsv2/tokens/'
  assert.equal(decodeURIComponent(must(play.asked[0], 'asked').url.slice(path.length)), token)
})

test('acknowledging and consuming name the product and the token', async () => {
  await using play = await store([{ status: 204, body: '' }])
  const sold = { productId: 'pro plan', token: 'a/b' }
  const base = '/androidpublisher/v3/applications/app.example/purchases'
  assert.equal((await play.api.acknowledge(play.access, 'subscription', sold, calm())).kind, 'ok')
  assert.equal((await play.api.acknowledge(play.access, 'one_time', sold, calm())).kind, 'ok')
  assert.equal((await play.api.consume(play.access, sold, calm())).kind, 'ok')
  assert.deepEqual(
    play.asked.map(({ method, url }) => `${method} ${url}`),
    [
      `POST ${base}/subscriptions/pro%20plan/tokens/a%2Fb:acknowledge`,
      `POST ${base}/products/pro%20plan/tokens/a%2Fb:acknowledge`,
      `POST ${base}/products/pro%20plan/tokens/a%2Fb:consume`,
    ],
  )
})

test('the list of voided purchases asks for subscriptions and partial refunds too', async () => {
  await using play = await store([{ status: 200 }])
  await play.api.voided(play.access, { startMs: 1000, pageToken: 'next' }, calm())
  const { pathname, searchParams } = new URL(must(play.asked[0], 'asked').url, play.base)
  assert.equal(pathname, '/androidpublisher/v3/applications/app.example/purchases/voidedpurchases')
  assert.deepEqual(Object.fromEntries(searchParams), {
    ...{ type: '1', includeQuantityBasedPartialRefund: 'true', startTime: '1000', maxResults: '1000', token: 'next' },
  })
})

test('one bearer serves all calls, also those that start at once; a refused one is replaced', async () => {
  await using play = await store([{ status: 200 }])
  await Promise.all(Array.from({ length: 5 }, () => play.api.read(play.access, 'subscription', 't', calm())))
  assert.equal(play.tokens.length, 1)
  await using turned = await store([{ status: 401 }, { status: 200 }])
  assert.equal((await turned.api.read(turned.access, 'subscription', 't', calm())).kind, 'ok')
  assert.equal(turned.tokens.length, 2)
})

test('another key file never gets the bearer of the first', async () => {
  await using play = await store([{ status: 200 }])
  await play.api.read(play.access, 'subscription', 't', calm())
  const changed = { ...play.access, account: { ...play.access.account, privateKeyId: 'key-2' } }
  await play.api.read(changed, 'subscription', 't', calm())
  assert.equal(play.tokens.length, 2)
})

test('the assertion is what Google documents, by the wall clock', async () => {
  await using play = await store([{ status: 200 }])
  await play.api.read(play.access, 'subscription', 't', calm())
  const form = new URLSearchParams(must(play.tokens[0], 'asked'))
  assert.equal(form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const assertion = must(form.get('assertion') ?? undefined, 'sent')
  assert.deepEqual(decodeProtectedHeader(assertion), { alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  const { iat = 0, exp = 0, ...claims } = decodeJwt(assertion)
  assert.deepEqual(claims, {
    ...{ iss: 'play@example.com', aud: `${play.base}/token` },
    scope: 'https://www.googleapis.com/auth/androidpublisher',
  })
  assert.ok(exp - iat <= 3600 && Math.abs(iat - Date.now() / 1000) < 10)
})

test('a key that Google does not take is refused, one that it cannot judge now is silence', async () => {
  const withToken = async (token: Reply) => {
    await using play = await store([{ status: 200 }], token)
    return (await play.api.read(play.access, 'subscription', 't', calm())).kind
  }
  assert.equal(await withToken({ status: 400, body: '{"error":"invalid_grant"}' }), 'refused')
  assert.equal(await withToken({ status: 401 }), 'refused')
  assert.equal(await withToken({ status: 500 }), 'silent')
  assert.equal(await withToken({ status: 429 }), 'silent')
  assert.equal(await withToken({ status: 200, body: '{}' }), 'silent')
})

test('whoever waits for a bearer waits no longer than the purchase may take', async () => {
  await using play = await store([{ status: 200 }], { status: 200, holdMs: 1 })
  const began = performance.now()
  assert.equal((await play.api.read(play.access, 'subscription', 't', AbortSignal.timeout(200))).kind, 'silent')
  assert.ok(performance.now() - began < 2500, 'not the six seconds of two tries')
  assert.equal(play.asked.length, 0)
})

test('a store that hangs costs three seconds for each of two tries', async () => {
  await using play = await store([{ status: 200, holdMs: 1 }])
  const began = performance.now()
  assert.equal((await play.api.read(play.access, 'subscription', 't', calm())).kind, 'silent')
  const took = performance.now() - began
  assert.ok(took > 5500 && took < 30_000, `${took}`)
  assert.equal(play.asked.length, 2)
})
