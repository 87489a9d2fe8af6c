import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'

/** Content that a test takes to pieces. */
// biome-ignore lint/suspicious/noExplicitAny: tests put anything anywhere in it
export type Sample = any

/** Written apart from what it is held against: signs what it is given, right or wrong. */
export interface Signer {
  keyId: string
  publicKey: Uint8Array
  sign: (message: Uint8Array) => Buffer
}

/** The DER of a private Ed25519 key, up to its seed. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

export function signer(keyId: string, seed: Uint8Array = createHash('sha256').update(keyId).digest()): Signer {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return { keyId, publicKey: Buffer.from(x, 'base64url'), sign: (message) => sign(null, message, key) }
}

export const demo = signer('demo-2026')
export const trusted = new Map([[demo.keyId, demo.publicKey]])

/** Keys sorted at every depth, no space between: JSON.stringify keeps the order in which they are put in. */
export function descriptorBytes(descriptor: Sample): Buffer {
  return Buffer.from(JSON.stringify(sorted(descriptor)))
}

function sorted(value: Sample): Sample {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const keys = Object.keys(value).toSorted()
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]))
}

/** A release of these bytes, addressed as the descriptor says. */
export function publish(descriptor: Sample, by: Signer = demo, bytes: Buffer = descriptorBytes(descriptor)): Sample {
  const message = Buffer.concat([Buffer.from(`${descriptor.schemaVersion}\0`), bytes])
  return {
    locator: { ...descriptor.identity, legId: descriptor.leg.id },
    envelope: {
      mediaType: 'application/vnd.service.journey+json',
      encoding: 'base64',
      descriptorSha256: sha256(bytes),
      descriptorSizeBytes: bytes.length,
      descriptorBytesBase64: bytes.toString('base64'),
      signature: {
        version: 1,
        algorithm: 'ed25519',
        keyId: by.keyId,
        signatureBase64: by.sign(message).toString('base64'),
      },
    },
  }
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** An arm of the release: `new` unless told otherwise. */
export function armOf(descriptor: Sample, release: Sample, more: Sample = {}): Sample {
  return {
    reference: {
      experienceId: descriptor.identity.experienceId,
      versionId: descriptor.identity.experienceVersionId,
      legId: descriptor.leg.id,
      descriptorSha256: release.envelope.descriptorSha256,
    },
    binding: { type: 'new' },
    entryCondition: descriptor.leg.entryCondition,
    context: { event: {}, responses: {} },
    ...more,
  }
}

/** A profile that arms the descriptors; `arms` changes what is said of each. */
export function profileOf(descriptors: Sample[], { arms = [], facts, by = demo }: Sample = {}): Sample {
  const releases = descriptors.map((each) => publish(each, by))
  const armedLegs = descriptors.map((each, index) => armOf(each, releases[index], arms[index]))
  return { ...emptyProfile(), facts: facts ?? factsOf(descriptors), armedLegs, releases }
}

export function emptyProfile(): Sample {
  return {
    schemaVersion: 'service.journey-plane-profile.v2',
    status: 'ok',
    delivery: { renderBaseUrl: 'https://cdn.example.com/r/', assetBaseUrl: 'https://cdn.example.com/a/' },
    features: [],
    facts: { properties: {}, memberships: {}, assignments: {} },
    armedLegs: [],
    releases: [],
  }
}

/** Nothing known of the customer. */
function factsOf(descriptors: Sample[]): Sample {
  const of = (key: string, value: Sample) =>
    Object.fromEntries(descriptors.flatMap(({ leg }) => leg.facts[key].map((each: string) => [each, value])))
  return {
    properties: of('propertyKeys', { present: false }),
    memberships: of('segmentIds', false),
    assignments: of('experimentIds', null),
  }
}

export function bytesOf(value: Sample): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** A copy with the value at a path, as in `leg.steps.0.id`, set, changed or, for undefined, taken out. */
export function altered(value: Sample, path: string, to: Sample): Sample {
  const copy = structuredClone(value)
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  const holder = keys.reduce((inner, key) => inner[key], copy)
  const next = typeof to === 'function' ? to(holder[last]) : to
  if (next === undefined) delete holder[last]
  else holder[last] = next
  return copy
}
