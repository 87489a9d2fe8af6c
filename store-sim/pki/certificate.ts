import 'reflect-metadata'
import { createPrivateKey, createPublicKey, generateKeyPairSync, webcrypto } from 'node:crypto'
import {
  AuthorityInfoAccessExtension,
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** A certificate and its private key, both as PEM. */
export interface Issued {
  certificate: string
  key: string
  notBefore: number
  notAfter: number
}

export interface CertificateRequest {
  subject: string
  serial: string
  notBefore: number
  notAfter: number
  /** Undefined: signs itself. */
  issuer: { subject: string; issued: Issued } | undefined
  /** `not_ca`: stands where an intermediate would, and is none. */
  role: 'root' | 'intermediate' | 'not_ca' | 'leaf' | 'ocsp'
  /** Of a marker extension: what stores write into it is an ASN.1 NULL. */
  marker?: string | undefined
  ocspUrl?: string | undefined
}

const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
const curves: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384' }
const asn1Null = Uint8Array.of(0x05, 0x00)
const ocspSigning = '1.3.6.1.5.5.7.3.9'

export function newKey(namedCurve = 'P-256'): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export async function issue(request: CertificateRequest, key = newKey()): Promise<Issued> {
  const publicKey = await publicOf(key)
  const issuerKey = request.issuer?.issued.key ?? key
  const certificate = await X509CertificateGenerator.create({
    serialNumber: request.serial,
    subject: request.subject,
    issuer: request.issuer?.subject ?? request.subject,
    notBefore: new Date(request.notBefore),
    notAfter: new Date(request.notAfter),
    signingAlgorithm: algorithm,
    publicKey,
    signingKey: await privateOf(issuerKey),
    extensions: [
      ...usage(request.role),
      ...(request.marker === undefined ? [] : [new Extension(request.marker, false, asn1Null)]),
      ...(request.ocspUrl === undefined ? [] : [new AuthorityInfoAccessExtension({ ocsp: request.ocspUrl })]),
      await SubjectKeyIdentifierExtension.create(publicKey),
      await AuthorityKeyIdentifierExtension.create(await publicOf(issuerKey)),
    ],
  })
  const { notBefore, notAfter } = request
  return { certificate: certificate.toString('pem'), key, notBefore, notAfter }
}

function usage(role: CertificateRequest['role']): Extension[] {
  switch (role) {
    case 'root':
      return [new BasicConstraintsExtension(true, undefined, true), keyUsage(KeyUsageFlags.keyCertSign)]
    case 'intermediate':
      return [new BasicConstraintsExtension(true, 0, true), keyUsage(KeyUsageFlags.keyCertSign)]
    case 'not_ca':
      return [new BasicConstraintsExtension(false, undefined, true), keyUsage(KeyUsageFlags.keyCertSign)]
    case 'leaf':
      return [new BasicConstraintsExtension(false, undefined, true), keyUsage(KeyUsageFlags.digitalSignature)]
    case 'ocsp':
      return [keyUsage(KeyUsageFlags.digitalSignature), new ExtendedKeyUsageExtension([ocspSigning])]
  }
}

function keyUsage(flags: KeyUsageFlags): KeyUsagesExtension {
  return new KeyUsagesExtension(flags, true)
}

export function privateOf(key: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })
  return webcrypto.subtle.importKey('pkcs8', der, algorithmOf(key), true, ['sign'])
}

function publicOf(key: string): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(key).export({ type: 'spki', format: 'der' })
  return webcrypto.subtle.importKey('spki', der, algorithmOf(key), true, ['verify'])
}

function algorithmOf(key: string) {
  const { namedCurve = '' } = createPrivateKey(key).asymmetricKeyDetails ?? {}
  return { ...algorithm, namedCurve: curves[namedCurve] ?? namedCurve }
}
