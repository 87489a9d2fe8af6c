import 'reflect-metadata'
import { createPrivateKey, sign, webcrypto, X509Certificate } from 'node:crypto'
import { BasicConstraintsExtension, Extension, X509CertificateGenerator } from '@peculiar/x509'

/** A certificate with its key. */
export interface Issued {
  certificate: X509Certificate
  subject: string
  keys: webcrypto.CryptoKeyPair
  /** For `node:crypto`. */
  privateKey: ReturnType<typeof createPrivateKey>
}

export interface IssueOptions {
  issuer?: Issued
  subject?: string
  ca?: boolean
  markers?: string[]
  from?: number
  to?: number
  curve?: 'P-256' | 'P-384'
  /** Says another issuer than the one that signs. */
  issuerName?: string
}

export const leafMarker = '1.2.840.113635.100.6.11.1'
export const intermediateMarker = '1.2.840.113635.100.6.2.1'
export const dayMs = 24 * 3600_000
let serial = 0

/** One certificate; without an issuer it signs itself. */
export async function issue(options: IssueOptions = {}): Promise<Issued> {
  const { issuer, subject = `CN=Test ${++serial}`, ca = false, markers = [], curve = 'P-256' } = options
  const { from = Date.now() - 400 * dayMs, to = Date.now() + 400 * dayMs } = options
  const algorithm = { name: 'ECDSA', namedCurve: curve, hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const made = await X509CertificateGenerator.create({
    serialNumber: (0x10 + ++serial).toString(16).padStart(4, '0'),
    subject,
    issuer: options.issuerName ?? issuer?.subject ?? subject,
    notBefore: new Date(from),
    notAfter: new Date(to),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions: [
      new BasicConstraintsExtension(ca, undefined, true),
      ...markers.map((oid) => new Extension(oid, false, Uint8Array.of(0x05, 0x00))),
    ],
  })
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  return { certificate: new X509Certificate(Buffer.from(made.rawData)), subject, keys, privateKey }
}

export interface Pki {
  root: Issued
  intermediate: Issued
  leaf: Issued
}

/** A chain as Apple's is made, under a root of its own. */
export async function testPki(leaf: IssueOptions = {}, intermediate: IssueOptions = {}): Promise<Pki> {
  const root = await issue({ ca: true, from: Date.now() - 4000 * dayMs, to: Date.now() + 4000 * dayMs })
  const between = await issue({ issuer: root, ca: true, markers: [intermediateMarker], ...intermediate })
  return { root, intermediate: between, leaf: await issue({ issuer: between, markers: [leafMarker], ...leaf }) }
}

export const base64Of = ({ certificate }: Issued) => certificate.raw.toString('base64')

/** Any compact JWS over a payload; nothing is checked. */
export function compact(payload: object | string, key: Issued['privateKey'], header: object): string {
  const part = (value: object | string) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
  const signed = `${part(header)}.${part(payload)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** As the App Store signs. */
export function signApple({ root, intermediate, leaf }: Pki, payload: object, header: object = {}): string {
  const x5c = [leaf, intermediate, root].map(base64Of)
  return compact(payload, leaf.privateKey, { alg: 'ES256', x5c, ...header })
}

let number = Date.now()

/** A transaction that is all right: a non-consumable, unless told otherwise. */
export function aTransaction(more: Record<string, unknown> = {}): Record<string, unknown> & { transactionId: string } {
  const transactionId = String(++number)
  return {
    transactionId,
    originalTransactionId: more.transactionId ?? transactionId,
    bundleId: 'com.example.app',
    productId: 'com.example.pro',
    type: 'Non-Consumable',
    purchaseDate: Date.now() - 60_000,
    originalPurchaseDate: Date.now() - 60_000,
    quantity: 1,
    signedDate: Date.now() - 1000,
    environment: 'Sandbox',
    inAppOwnershipType: 'PURCHASED',
    ...more,
  }
}
