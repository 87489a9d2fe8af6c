import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { StoreApp } from '../types.ts'
import { createVerifyPush } from './push.ts'

const { privateKey, publicKey } = await generateKeyPair('RS256')
const other = await generateKeyPair('RS256')
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }] })

const audience = 'https://turnpike.example/webhooks/playstore/app_1'
const email = 'push@example.iam.gserviceaccount.com'

async function keyServer(status = 200) {
  const server = createServer((_request, response) => response.writeHead(status).end(jwks))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/certs`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const appWith = (playJwks: string, push: object = { pushAudience: audience, pushEmail: email }) =>
  ({
    scope: { scopeId: 1, workspaceId: 'ws', projectId: 'proj', environment: 'test' },
    credentials: { playstore: { ...push }, endpoints: { playJwks } },
  }) as unknown as StoreApp // the parts that are looked at

interface Bearer {
  claims?: JWTPayload
  kid?: string
  alg?: string
  expires?: string | number
  key?: typeof privateKey
}
function bearer({
  claims = {},
  kid = 'k1',
  alg = 'RS256',
  expires = '1h',
  key = privateKey,
}: Bearer = {}): Promise<string> {
  return new SignJWT({ iss: 'https://accounts.google.com', aud: audience, email, email_verified: true, ...claims })
    .setProtectedHeader({ alg, kid })
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(key)
}

test('a push is genuine when Google signed it for our audience and it carries our account, verified', async () => {
  await using keys = await keyServer()
  const verify = createVerifyPush()
  const app = appWith(keys.url)
  assert.equal(await verify(app, await bearer()), 'genuine')
  assert.equal(await verify(app, await bearer({ claims: { iss: 'accounts.google.com' } })), 'genuine')
  const foreign: [string, Bearer][] = [
    ['audience', { claims: { aud: 'https://turnpike.example/other' } }],
    ['issuer', { claims: { iss: 'https://accounts.example.com' } }],
    ['e-mail of another account', { claims: { email: 'other@example.iam.gserviceaccount.com' } }],
    ['no e-mail', { claims: { email: undefined } }],
    ['e-mail not verified', { claims: { email_verified: false } }],
    ['e-mail verified in words', { claims: { email_verified: 'true' } }],
    ['expired', { expires: Math.floor(Date.now() / 1000) - 120 }],
    ['unknown key', { kid: 'k2' }],
    ['other key under a known name', { key: other.privateKey }],
  ]
  for (const [what, wrong] of foreign) assert.equal(await verify(app, await bearer(wrong)), 'foreign', what)
  for (const text of ['', 'a.b.c', 'noise', `${await bearer()}x`])
    assert.equal(await verify(app, text), 'foreign', text.slice(0, 20))
})

test('an unsigned bearer, or one signed with our public key as a secret, is foreign', async () => {
  await using keys = await keyServer()
  const verify = createVerifyPush()
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = part({ iss: 'accounts.google.com', aud: audience, email, email_verified: true, exp: 9_999_999_999 })
  assert.equal(await verify(appWith(keys.url), `${part({ alg: 'none' })}.${claims}.`), 'foreign')
  const hmac = await new SignJWT({ iss: 'accounts.google.com', aud: audience, email, email_verified: true })
    .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
    .sign(new TextEncoder().encode(jwks))
  assert.equal(await verify(appWith(keys.url), hmac), 'foreign')
})

test('keys that cannot be had decide nothing', async () => {
  const text = await bearer()
  await using broken = await keyServer(500)
  assert.equal(await createVerifyPush()(appWith(broken.url), text), 'undecided')
  assert.equal(await createVerifyPush()(appWith('http://127.0.0.1:1/certs'), text), 'undecided')
})

test('without an audience and an account nothing is accepted', async () => {
  await using keys = await keyServer()
  const text = await bearer()
  for (const push of [{}, { pushAudience: audience }, { pushEmail: email }, { pushAudience: '', pushEmail: '' }]) {
    assert.equal(await createVerifyPush()(appWith(keys.url, push), text), 'not_configured')
  }
})

test('in live the keys are Google’s, whatever an endpoint says', async () => {
  await using keys = await keyServer()
  const app = appWith(keys.url)
  const live = { ...app, scope: { ...app.scope, environment: 'live' } } as StoreApp
  assert.notEqual(await createVerifyPush()(live, await bearer()), 'genuine')
})
