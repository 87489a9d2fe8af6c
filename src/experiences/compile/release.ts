import { hash } from 'node:crypto'
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
  sha256: string
  bytes: Buffer
}

export function describe(leg: CompiledLeg, identity: Identity): Descriptor {
  const bytes = Buffer.from(canonicalJson({ ...leg.body, identity }))
  return { legId: leg.legId, sha256: hash('sha256', bytes), bytes }
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
  locales: string[],
  legs: CompiledLeg[],
): string {
  const bodies = legs.flatMap(({ legId, body }) => locales.map((locale) => ({ legId, locale, body })))
  const sorted = bodies.toSorted((a, b) => (`${a.legId} ${a.locale}` < `${b.legId} ${b.locale}` ? -1 : 1))
  const digest = hash('sha256', `service.build.v1\n${canonicalJson({ ...target, legs: sorted })}`, 'buffer')
  return `bld_${base32(digest).slice(0, 26)}`
}

/** RFC 4648, lower case, without padding. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(five.padEnd(5, '0'), 2)))
    .join('')
}
