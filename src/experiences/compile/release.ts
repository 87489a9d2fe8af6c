import { createHash, hash } from 'node:crypto'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Environment } from '../../tenancy/index.ts'
import type { CompiledLeg } from './leg.ts'

/** One for all legs and locales of a publication. */
export interface Identity {
  appId: string
  environment: Environment
  experienceId: string
  experienceVersionId: string
  versionNumber: number
  buildId: string
  publishedAt: string
  publishedAtSeq: number
}

/** The signed bytes of one leg, and what they are called. Once made they are kept and delivered as they are. */
export interface Descriptor {
  legId: string
  locales: string[]
  sha256: string
  bytes: Buffer
}

export function describe(leg: CompiledLeg, identity: Identity): Descriptor {
  const bytes = Buffer.from(canonicalJson({ ...leg.body, identity }))
  return { legId: leg.legId, locales: leg.locales, sha256: hash('sha256', bytes), bytes }
}

/** What is signed: the descriptor's schema and one NUL before its bytes, so that no signature serves for anything else. */
export function signedMessage(names: WireNames, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${names.releaseSchema}\0`), bytes])
}

export function envelopeOf(
  names: WireNames,
  { sha256, bytes }: Pick<Descriptor, 'sha256' | 'bytes'>,
  { keyId, signature }: { keyId: string; signature: Buffer },
) {
  return {
    mediaType: names.journeyMediaType,
    encoding: 'base64',
    descriptorSha256: sha256,
    descriptorSizeBytes: bytes.length,
    descriptorBytesBase64: bytes.toString('base64'),
    signature: { version: 1, algorithm: 'ed25519', keyId, signatureBase64: signature.toString('base64') },
  }
}

/** Names what was compiled: equal content has an equal id, other content another. */
export function buildIdOf(
  target: { appId: string; environment: Environment; experienceVersionId: string; compilerVersion: string },
  legs: CompiledLeg[],
): string {
  const digest = createHash('sha256')
  // The canonical JSON of {…target, legs: [{body, legId, locale}]}, piece by piece: a leg is there once for each locale.
  digest.update(`service.build.v1\n${canonicalJson(target).slice(0, -1)},"legs":[`)
  const bodies = new Map(legs.map((leg) => [leg, canonicalJson(leg.body)]))
  const each = legs.flatMap((leg) => leg.locales.map((locale) => ({ leg, locale, order: `${leg.legId} ${locale}` })))
  for (const [i, { leg, locale }] of each.toSorted((a, b) => (a.order < b.order ? -1 : 1)).entries()) {
    const rest = canonicalJson({ legId: leg.legId, locale }).slice(1)
    digest.update(`${i === 0 ? '' : ','}{"body":${must(bodies.get(leg), 'each has one')},${rest}`)
  }
  return `bld_${base32(digest.update(']}').digest()).slice(0, 26)}`
}

/** RFC 4648, lower case, without padding. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(five.padEnd(5, '0'), 2)))
    .join('')
}
