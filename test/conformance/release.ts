import { createPublicKey, hash, verify } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type At,
  anything,
  digest,
  exact,
  hold,
  id,
  into,
  is,
  type Mode,
  type Of,
  type Problem,
  parse,
  say,
  text,
  word,
} from './check.ts'
import { canonical, type Descriptor, descriptor, identityKeys } from './descriptor.ts'
import { type Runtime, refusals } from './requirements.ts'

export const envelopeBytesMax = 6 * 1024 * 1024
export const descriptorBytesMax = 4 * 1024 * 1024

/** What a reader holds a release against. */
export interface Reader {
  namespace: string
  mode: Mode
  /** The 32 bytes of each public key that it trusts, by id. */
  keys: ReadonlyMap<string, Uint8Array>
  /** Without one, every device is taken to be good enough. */
  runtime?: Runtime
}

const locator = exact({ ...identityKeys, legId: digest })
const signature = exact({ version: anything, algorithm: anything, keyId: anything, signatureBase64: anything })
const envelope = exact({
  mediaType: anything,
  encoding: anything,
  descriptorSha256: text,
  descriptorSizeBytes: anything,
  descriptorBytesBase64: text,
  signature: anything,
})
const release = exact({ locator, envelope })
export type Release = Of<typeof release>
export type Locator = Of<typeof locator>

export interface Verified {
  locator: Locator
  descriptorSha256: string
  descriptor: Descriptor
}

/** A release is refused at the first step that it fails; these are their names, in order. */
export const verificationSteps = [
  'envelope',
  'mediaType',
  'encoding',
  'signature',
  'base64',
  'descriptorSizeBytes',
  'descriptorSha256',
  'signatureBase64',
  'keyId',
  'ed25519',
  'parse',
  'schema',
  'identity',
  'requirements',
] as const
export type VerificationStep = (typeof verificationSteps)[number]

export interface Refused {
  step: VerificationStep
  problems: Problem[]
}

/** The content of a release in which nothing is wrong, or the first step at which a reader stops. */
export function verifyRelease(
  sent: unknown,
  reader: Reader,
  path = '$',
): { verified: Verified } | { refused: Refused } {
  const at: At = { path, found: [], namespace: reader.namespace, mode: reader.mode }
  const refuse = (step: VerificationStep) => ({ refused: { step, problems: at.found } })
  const parts = openEnvelope(sent, at)
  if ('step' in parts) return refuse(parts.step)
  const signed = checkBytes(parts, reader, into(at, 'envelope'))
  if ('step' in signed) return refuse(signed.step)
  const read = readDescriptor(parts.locator, signed.bytes, reader, at)
  if ('step' in read) return refuse(read.step)
  return {
    verified: {
      locator: parts.locator,
      descriptorSha256: parts.envelope.descriptorSha256,
      descriptor: read.descriptor,
    },
  }
}

interface Opened {
  locator: Locator
  envelope: Release['envelope']
  keyId: string
  signatureBase64: string
}
interface Stopped {
  step: VerificationStep
}

function openEnvelope(sent: unknown, at: At): Opened | Stopped {
  if (!release(sent, at)) return { step: 'envelope' }
  const here = into(at, 'envelope')
  const { mediaType, encoding, signature: claimed } = sent.envelope
  const size = Buffer.byteLength(JSON.stringify(sent.envelope))
  if (!hold(here, size <= envelopeBytesMax, 'is JSON of at most 6 MiB')) return { step: 'envelope' }
  const media = word((namespace) => `application/vnd.${namespace}.journey+json`)
  if (!media(mediaType, into(here, 'mediaType'))) return { step: 'mediaType' }
  if (!is('base64')(encoding, into(here, 'encoding'))) return { step: 'encoding' }
  const there = into(here, 'signature')
  if (!signature(claimed, there)) return { step: 'signature' }
  const { version, algorithm, keyId, signatureBase64 } = claimed
  const versioned = [is(1)(version, into(there, 'version')), is('ed25519')(algorithm, into(there, 'algorithm'))].every(
    Boolean,
  )
  if (!id()(keyId, into(there, 'keyId')) || !versioned) return { step: 'signature' }
  // Whether it is base64 of 64 bytes is asked later; what is no text is none.
  const encoded = typeof signatureBase64 === 'string' ? signatureBase64 : ''
  return { locator: sent.locator, envelope: sent.envelope, keyId, signatureBase64: encoded }
}

function checkBytes(
  { envelope: sent, keyId, signatureBase64 }: Opened,
  reader: Reader,
  at: At,
): { bytes: Buffer } | Stopped {
  const bytes = fromBase64(sent.descriptorBytesBase64)
  const coded = into(at, 'descriptorBytesBase64')
  if (bytes === undefined || bytes.length === 0 || bytes.length > descriptorBytesMax) {
    say(coded, 'is canonical base64 of 1 byte to 4 MiB')
    return { step: 'base64' }
  }
  const sized = hold(
    into(at, 'descriptorSizeBytes'),
    sent.descriptorSizeBytes === bytes.length,
    'is the number of bytes',
  )
  if (!sized) return { step: 'descriptorSizeBytes' }
  const hashed = hold(
    into(at, 'descriptorSha256'),
    sent.descriptorSha256 === hash('sha256', bytes),
    'is the digest of the bytes',
  )
  if (!hashed) return { step: 'descriptorSha256' }
  const signedBytes = fromBase64(signatureBase64)
  const there = into(at, 'signature')
  if (signedBytes?.length !== 64) {
    say(into(there, 'signatureBase64'), 'is canonical base64 of 64 bytes')
    return { step: 'signatureBase64' }
  }
  const key = reader.keys.get(keyId)
  if (key?.length !== 32) {
    say(into(there, 'keyId'), 'is a key that the reader holds')
    return { step: 'keyId' }
  }
  const message = Buffer.concat([Buffer.from(`${reader.namespace}.journey-release.v3\0`, 'ascii'), bytes])
  const holds = isSignedBy(key, message, signedBytes)
  return hold(into(there, 'signatureBase64'), holds, 'signs the bytes under their domain')
    ? { bytes }
    : { step: 'ed25519' }
}

function readDescriptor(located: Locator, bytes: Buffer, reader: Reader, at: At): { descriptor: Descriptor } | Stopped {
  const here = into(at, 'descriptor')
  const parsed = parse(bytes, here)
  if (parsed === undefined) return { step: 'parse' }
  if (!descriptor(parsed.value, here)) return { step: 'schema' }
  // Clients do not ask for this; a server that signs anything else could not say what it signed.
  if (!hold(here, canonical(parsed.value) === bytes.toString(), 'is written canonically')) return { step: 'schema' }
  const { legId, ...identity } = located
  const same = hold(
    into(here, 'identity'),
    isDeepStrictEqual({ ...parsed.value.identity }, identity),
    'is the locator without legId',
  )
  if (!hold(into(here, 'leg.id'), parsed.value.leg.id === legId, 'is the legId of the locator') || !same)
    return { step: 'identity' }
  const { requirements } = parsed.value
  const unmet = requirements === null || reader.runtime === undefined ? [] : refusals(requirements, reader.runtime)
  for (const need of unmet) say(into(here, `requirements.${need}`), 'is met by the device')
  return unmet.length > 0 ? { step: 'requirements' } : { descriptor: parsed.value }
}

/** Undefined unless it is the one way to write these bytes: standard alphabet, padded, nothing between. */
function fromBase64(sent: string): Buffer | undefined {
  const bytes = Buffer.from(sent, 'base64')
  return bytes.toString('base64') === sent ? bytes : undefined
}

function isSignedBy(key: Uint8Array, message: Uint8Array, signed: Uint8Array): boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') }
  return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signed)
}
