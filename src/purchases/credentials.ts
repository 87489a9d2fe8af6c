import { createHash, createPrivateKey, createPublicKey, randomBytes, X509Certificate } from 'node:crypto'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { seal, unseal } from '../kernel/seal.ts'
import type { Environment, Scope } from '../tenancy/index.ts'
import type { CredentialKind, SealedCredential } from './config-store.ts'
import type { StoreCredentials } from './types.ts'

/** One record as its module takes it, with its kind. */
export type NewCredential =
  | { kind: 'appstore'; fields: NonNullable<StoreCredentials['appstore']> }
  | { kind: 'playstore'; fields: NonNullable<StoreCredentials['playstore']> }
  | { kind: 'stripe'; fields: NonNullable<StoreCredentials['stripe']> }
  | { kind: 'appstore_trust'; fields: NonNullable<StoreCredentials['appstoreTrust']> }
  | { kind: 'endpoints'; fields: NonNullable<StoreCredentials['endpoints']> }

/** The one address where live bearers of Google come from. */
export const googleTokenUri = 'https://oauth2.googleapis.com/token'

/**
 * Tries what can be tried without a network, and gives what anybody who may look at the app is shown of it. Throws
 * `invalid_request` for a key or certificate that can't be used, `test_only` for what live never has.
 */
export function publicFieldsOf(environment: Environment, credential: NewCredential): Record<string, unknown> {
  const wrong = liveFault(environment, credential)
  if (wrong !== undefined) throw refuse('test_only', { message: wrong })
  switch (credential.kind) {
    case 'appstore': {
      const { appAppleId, api } = credential.fields
      const shown = api && {
        issuer_id: api.issuerId,
        key_id: api.keyId,
        public_key_sha256: keyFingerprint(api.privateKey, 'ec'),
      }
      return { app_apple_id: appAppleId, ...(shown ?? { issuer_id: null, key_id: null, public_key_sha256: null }) }
    }
    case 'playstore': {
      const { serviceAccount, pubsubSubscription, pushAudience, pushEmail } = credential.fields
      return {
        client_email: serviceAccount.clientEmail,
        private_key_id: serviceAccount.privateKeyId,
        public_key_sha256: keyFingerprint(serviceAccount.privateKey, 'rsa'),
        pubsub_subscription: pubsubSubscription,
        push_audience: pushAudience,
        push_email: pushEmail,
      }
    }
    case 'stripe':
      return {
        secret_key_last4: credential.fields.secretKey.slice(-4),
        webhook_secret_last4: credential.fields.webhookSecret.slice(-4),
      }
    case 'appstore_trust': {
      const { roots, xcodeCertificates } = credential.fields
      return {
        roots: roots.map((pem, i) => certificateFields(pem, `roots.${i}`)),
        xcode_certificates: xcodeCertificates.map((pem, i) => certificateFields(pem, `xcode_certificates.${i}`)),
      }
    }
    case 'endpoints': {
      const { appstoreApi, playApi, playJwks, stripeApi } = credential.fields
      return { appstore_api: appstoreApi, play_api: playApi, play_jwks: playJwks, stripe_api: stripeApi }
    }
  }
}

/** Live believes Apple's root and talks to the stores' own hosts only: there is no way around it. */
export function liveFault(environment: Environment, credential: NewCredential): string | undefined {
  if (environment === 'test') return undefined
  if (credential.kind === 'appstore_trust' || credential.kind === 'endpoints') {
    return `${credential.kind} is for the test environment only.`
  }
  if (credential.kind === 'playstore' && credential.fields.serviceAccount.tokenUri !== googleTokenUri) {
    return `In live the token_uri of a service account is ${googleTokenUri}.`
  }
  return undefined
}

function keyFingerprint(pem: string, type: 'ec' | 'rsa'): string {
  const param = type === 'ec' ? 'private_key' : 'service_account.private_key'
  try {
    const key = createPrivateKey(pem)
    const isRight =
      key.asymmetricKeyType === type && (type === 'rsa' || key.asymmetricKeyDetails?.namedCurve === 'prime256v1')
    if (isRight) {
      return createHash('sha256')
        .update(createPublicKey(key).export({ type: 'spki', format: 'der' }))
        .digest('hex')
    }
  } catch {
    // Said below.
  }
  const words = type === 'ec' ? 'a P-256 private key (PKCS#8, PEM)' : 'an RSA private key (PKCS#8, PEM)'
  throw refuse('invalid_request', { param, message: `${param} must be ${words}` })
}

function certificateFields(pem: string, param: string): { subject: string; sha256: string } {
  try {
    const certificate = new X509Certificate(pem)
    const sha256 = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
    return { subject: certificate.subject.replaceAll('\n', ', '), sha256 }
  } catch {
    throw refuse('invalid_request', { param, message: `${param} must be a certificate in PEM` })
  }
}

/** What a sealed record is bound to: it opens in no other row. */
function contextOf(row: { appId: string; environment: Environment; kind: CredentialKind }, part: string): string {
  return JSON.stringify(['store_credential', part, row.appId, row.environment, row.kind])
}

/** Under a key of its own, which is sealed under that of the instance. */
export function sealCredential(
  sealingKey: Buffer,
  { environment }: Scope,
  appId: string,
  { kind, fields }: NewCredential,
): SealedCredential {
  const dataKey = randomBytes(32)
  const row = { appId, environment, kind }
  return {
    kind,
    sealed: seal(dataKey, contextOf(row, 'record'), JSON.stringify(fields)),
    wrappedKey: seal(sealingKey, contextOf(row, 'key'), dataKey.toString('base64')),
  }
}

export function openCredential(
  sealingKey: Buffer,
  row: { appId: string; environment: Environment },
  { kind, sealed, wrappedKey }: SealedCredential,
): NewCredential {
  const dataKey = must(unseal(sealingKey, contextOf({ ...row, kind }, 'key'), wrappedKey), 'sealed in this very row')
  const text = must(unseal(Buffer.from(dataKey, 'base64'), contextOf({ ...row, kind }, 'record'), sealed), 'as its key')
  return { kind, fields: JSON.parse(text) } as NewCredential // sealed by us, of this kind
}

export function credentialsOf(records: readonly NewCredential[]): StoreCredentials {
  const credentials: StoreCredentials = {}
  for (const record of records) {
    if (record.kind === 'appstore') credentials.appstore = record.fields
    else if (record.kind === 'playstore') credentials.playstore = record.fields
    else if (record.kind === 'stripe') credentials.stripe = record.fields
    else if (record.kind === 'appstore_trust') credentials.appstoreTrust = record.fields
    else credentials.endpoints = record.fields
  }
  return credentials
}
