import { type KeyObject, X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** The certificates that an app believes, and what was found good under them. */
export interface TrustSet {
  roots: readonly X509Certificate[]
  /** Pinned by a test app: each signs its transactions alone. */
  xcode: readonly X509Certificate[]
  /** Successes only, by the two certificates as they were sent. */
  chains: LRUCache<string, Chain>
}

/** What is known of a leaf and its intermediate once they were found good. The signature of a JWS is none of it. */
export interface Chain {
  publicKey: KeyObject
  /** Unix milliseconds: of the latest beginning and the earliest end of leaf, intermediate and root. */
  notBefore: number
  notAfter: number
  /** Leaf, then intermediate: hex SHA-256. */
  fingerprints: [string, string]
  certificates: [Buffer, Buffer]
  root: { fingerprint: string; certificate: Buffer }
}

const chainsMax = 64
const leafMarker = '1.2.840.113635.100.6.11.1'
const intermediateMarker = '1.2.840.113635.100.6.2.1'

export function trustSet(roots: readonly X509Certificate[], xcode: readonly X509Certificate[] = []): TrustSet {
  return { roots, xcode, chains: new LRUCache<string, Chain>({ max: chainsMax }) }
}

/**
 * The chain of two certificates to a root of the set; text says why it is none. `signedAt` matters to Apple's own check of a
 * chain that was not seen before; ours is made for every JWS by the caller.
 */
export async function chainOf(
  trust: TrustSet,
  [leafText = '', intermediateText = '']: readonly string[],
  signedAt: number,
): Promise<Chain | string> {
  // The texts themselves: a shifted border between the two is another key, which a hash over both would not be.
  const key = `${leafText}.${intermediateText}`
  const known = trust.chains.get(key)
  if (known) return known
  const chain = await buildChain(trust, leafText, intermediateText, signedAt)
  if (typeof chain !== 'string') trust.chains.set(key, chain)
  return chain
}

async function buildChain(
  trust: TrustSet,
  leafText: string,
  intermediateText: string,
  signedAt: number,
): Promise<Chain | string> {
  const leaf = certificateIn(leafText)
  const intermediate = certificateIn(intermediateText)
  if (!leaf || !intermediate) return 'no certificate'
  const publicKey = keyOf(leaf)
  if (publicKey?.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return 'the leaf is not P-256'
  if (leaf.issuer !== intermediate.subject || !verifies(leaf, intermediate))
    return 'the leaf is not of the intermediate'
  if (!intermediate.ca) return 'the intermediate is no CA'
  const root = trust.roots.find((each) => intermediate.issuer === each.subject && verifies(intermediate, each))
  if (!root) return 'the intermediate is of no trusted root'
  // With the first chain only: what comes with it takes memory that a service without purchases can do without.
  const { checkChain, hasExtension } = await import('./apple-library.ts')
  if (!hasExtension(leaf, leafMarker)) return 'the leaf is not marked'
  if (!hasExtension(intermediate, intermediateMarker)) return 'the intermediate is not marked'
  try {
    await checkChain(trust.roots, leaf, intermediate, new Date(signedAt))
  } catch {
    return "refused by Apple's own check"
  }
  const all = [leaf, intermediate, root]
  return {
    publicKey,
    notBefore: Math.max(...all.map((each) => each.validFromDate.getTime())),
    notAfter: Math.min(...all.map((each) => each.validToDate.getTime())),
    fingerprints: [fingerprintOf(leaf), fingerprintOf(intermediate)],
    certificates: [leaf.raw, intermediate.raw],
    root: { fingerprint: fingerprintOf(root), certificate: root.raw },
  }
}

/** Hex, lower case. */
export function fingerprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(':', '').toLowerCase()
}

function certificateIn(base64: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64'))
  } catch {
    return undefined
  }
}

/** A certificate whose key is damaged can be read all the same. */
function keyOf(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey
  } catch {
    return undefined
  }
}

function verifies(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}
