import Type, { type Static } from 'typebox'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { pemCharsMax, storeIdCharsMax, testCertificatesMax } from '../../kernel/limits.ts'
import {
  type CredentialKind,
  type CredentialRecord,
  type CredentialVerdict,
  listCredentials,
  type NewCredential,
  putCredential,
  removeCredential,
} from '../../purchases/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, oneOf } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { listOf, wholeList } from './list.ts'
import { byId, deleted, id } from './parts.ts'
import { appAndScope, type StoreServices } from './store-settings.ts'

const kind = oneOf('appstore', 'playstore', 'stripe', 'appstore_trust', 'endpoints')
const text = Type.String({ minLength: 1, maxLength: storeIdCharsMax, 'x-trimmed': true, 'x-storable': true })
const secret = (description: string) =>
  Type.String({ minLength: 1, maxLength: pemCharsMax, 'x-storable': true, description })
const address = Type.Optional(
  nullable(Type.String({ pattern: '^https?://[^ #?]+$', maxLength: 2048, 'x-storable': true })),
)
const pems = Type.Optional(Type.Array(secret('PEM'), { maxItems: testCertificatesMax }))

const AppStore = closed({
  kind: oneOf('appstore'),
  app_apple_id: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Needed for purchases that are no test.',
      }),
    ),
  ),
  issuer_id: Type.Optional(text),
  key_id: Type.Optional(text),
  private_key: Type.Optional(secret('P-256, PKCS#8, PEM: the .p8 file of the In-App Purchase key.')),
})
const PlayStore = closed({
  kind: oneOf('playstore'),
  service_account: Type.Object(
    {
      client_email: text,
      private_key: secret('RSA, PKCS#8, PEM'),
      private_key_id: Type.Optional(text),
      token_uri: Type.String({ pattern: '^https?://[^ #?]+$', maxLength: 2048 }),
    },
    { description: 'The key file of a service account. Fields that are not needed are not kept.' },
  ),
  pubsub_subscription: Type.Optional(nullable(text)),
  push_audience: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 2048, 'x-storable': true }))),
  push_email: Type.Optional(nullable(text)),
})
const Stripe = closed({ kind: oneOf('stripe'), secret_key: secret('sk_…'), webhook_secret: secret('whsec_…') })
const Trust = closed({ kind: oneOf('appstore_trust'), roots: pems, xcode_certificates: pems })
const Addresses = closed({
  kind: oneOf('endpoints'),
  ...{ appstore_api: address, play_api: address, play_jwks: address, stripe_api: address },
})
const Body = Type.Union([AppStore, PlayStore, Stripe, Trust, Addresses])

const CredentialObject = Type.Object(
  {
    object: Type.Literal('store_credential'),
    id: Type.String({ description: 'Its kind.' }),
    app_id: Type.String(),
    kind,
    fields: Type.Record(Type.String(), Type.Unknown(), { description: 'What is no secret, and fingerprints of keys.' }),
    updated_at: instant,
    last_success_at: nullable(instant),
    last_error_at: nullable(instant),
    last_error: nullable(Type.String()),
  },
  { title: 'StoreCredential' },
)
const CheckObject = Type.Object(
  {
    object: Type.Literal('store_credential_check'),
    kind,
    ok: Type.Boolean(),
    problem: nullable(Type.String({ description: 'What is wrong, for people.' })),
  },
  { title: 'StoreCredentialCheck' },
)
const tag = 'Stores'

export interface CredentialServices extends StoreServices {
  checkCredential: (scope: Scope, appId: string, kind: CredentialKind) => Promise<CredentialVerdict>
}

export function storeCredentials(
  { get, put, ask, delete: remove }: Endpoints,
  { pool, sealingKey, checkCredential }: CredentialServices,
): void {
  get(
    {
      path: '/apps/:id/store_credentials',
      operationId: 'listStoreCredentials',
      tag,
      summary: "List an app's store credentials",
      description: 'Secrets are never shown.',
      params: byId,
      answers: { 200: listOf(CredentialObject) },
      errors: [404],
    },
    async (look, { params }) => {
      const { app, scope } = await appAndScope(pool, look, params.id)
      return wholeList((await listCredentials(pool, scope, app.id)).map((record) => show(app.id, record)))
    },
  )

  put(
    {
      path: '/apps/:id/store_credentials',
      operationId: 'putStoreCredentials',
      tag,
      summary: 'Put store credentials',
      description:
        'One record of each kind; putting one replaces it. Keys and certificates are tried at once. `appstore_trust` and `endpoints` are for `test` only: in live, Apple signs and the stores answer.',
      role: 'admin',
      secret: true,
      params: byId,
      body: Body,
      answers: { 200: CredentialObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const { app, scope } = await appAndScope(change.tx, change, params.id)
      const record = await putCredential(change.tx, scope, app.id, { credential: credentialOf(body), sealingKey })
      const after = show(app.id, record)
      await change.audit('put', 'store_credential', `${app.id} ${record.kind}`, { after })
      return { status: 200, body: after }
    },
  )

  remove(
    {
      path: '/apps/:id/store_credentials',
      operationId: 'deleteStoreCredentials',
      tag,
      summary: 'Remove store credentials',
      params: byId,
      query: closed({ kind }),
      answers: { 200: deleted('store_credential') },
      errors: [404],
    },
    async (change, { params, query }) => {
      const { app, scope } = await appAndScope(change.tx, change, params.id)
      const before = await removeCredential(change.tx, scope, app.id, query.kind)
      await change.audit('delete', 'store_credential', `${app.id} ${query.kind}`, { before: show(app.id, before) })
      return { status: 200, body: { object: 'store_credential', id: query.kind, deleted: true } }
    },
  )

  ask(
    {
      path: '/apps/:id/store_credentials/:kind/check',
      operationId: 'checkStoreCredentials',
      tag,
      summary: 'Try store credentials',
      description: 'Makes one harmless call to the store. How it went is shown with the credentials from then on.',
      role: 'admin',
      params: closed({ id, kind }),
      body: closed({}),
      answers: { 200: CheckObject },
      errors: [404],
    },
    async (asked, { params }) => {
      const { app, scope } = await appAndScope(pool, asked, params.id)
      const { ok, problem } = await checkCredential(scope, app.id, params.kind)
      return { status: 200, body: { object: 'store_credential_check', kind: params.kind, ok, problem } }
    },
  )
}

function credentialOf(body: Static<typeof Body>): NewCredential {
  switch (body.kind) {
    case 'appstore':
      return { kind: body.kind, fields: { appAppleId: body.app_apple_id ?? null, api: apiKeyOf(body) } }
    case 'playstore': {
      const account = body.service_account
      return {
        kind: body.kind,
        fields: {
          serviceAccount: {
            clientEmail: account.client_email,
            privateKey: account.private_key,
            privateKeyId: account.private_key_id ?? null,
            tokenUri: account.token_uri,
          },
          pubsubSubscription: body.pubsub_subscription ?? null,
          pushAudience: body.push_audience ?? null,
          pushEmail: body.push_email ?? null,
        },
      }
    }
    case 'stripe':
      return { kind: body.kind, fields: { secretKey: body.secret_key, webhookSecret: body.webhook_secret } }
    case 'appstore_trust':
      return { kind: body.kind, fields: { roots: body.roots ?? [], xcodeCertificates: body.xcode_certificates ?? [] } }
    case 'endpoints':
      return {
        kind: body.kind,
        fields: {
          appstoreApi: body.appstore_api ?? null,
          playApi: body.play_api ?? null,
          playJwks: body.play_jwks ?? null,
          stripeApi: body.stripe_api ?? null,
        },
      }
  }
}

/** All three or none. */
function apiKeyOf({ issuer_id: issuerId, key_id: keyId, private_key: privateKey }: Static<typeof AppStore>) {
  const given = [issuerId, keyId, privateKey].filter((each) => each !== undefined)
  if (given.length === 0) return null
  if (given.length < 3) {
    throw refuse('invalid_request', { message: 'issuer_id, key_id and private_key come together.' })
  }
  const all = 'the three are there'
  return { issuerId: must(issuerId, all), keyId: must(keyId, all), privateKey: must(privateKey, all) }
}

function show(appId: string, record: CredentialRecord): Static<typeof CredentialObject> {
  return {
    object: 'store_credential',
    id: record.kind,
    app_id: appId,
    kind: record.kind,
    fields: record.publicFields,
    updated_at: record.updatedAt.toISOString(),
    last_success_at: record.lastSuccessAt?.toISOString() ?? null,
    last_error_at: record.lastErrorAt?.toISOString() ?? null,
    last_error: record.lastError,
  }
}
