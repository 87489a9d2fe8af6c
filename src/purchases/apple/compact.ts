import type { JsonObject } from '../../events/index.ts'

/** A JWS taken apart and parsed, each part once; nothing of it is believed yet. */
export interface Compact {
  header: JsonObject
  payload: JsonObject
  /** Exactly three certificates, or exactly one of Xcode's: base64, canonical. */
  x5c: string[]
  /** What the signature is over. */
  signed: string
  /** 64 bytes. */
  signature: Buffer
}

const headerCharsMax = 64 * 1024
const foreign = /[^A-Za-z0-9_-]/

/**
 * Takes a compact JWS apart, before any cryptography: noise must be cheap. The header comes first, so that most noise is
 * not even decoded. Text: why it is none that Apple signs.
 */
export function readCompact(text: string): Compact | string {
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  if (first <= 0 || second <= first + 1 || second === text.length - 1) return 'not three segments'
  if (text.length - second - 1 !== 86) return 'the signature has not 64 bytes'
  if (first > headerCharsMax) return 'the header is too large'
  const headerText = text.slice(0, first)
  const signatureText = text.slice(second + 1)
  if (foreign.test(headerText) || foreign.test(signatureText)) return 'not base64url'
  const signature = Buffer.from(signatureText, 'base64url')
  if (signature.toString('base64url') !== signatureText) return 'the signature is not canonical'

  const header = objectIn(headerText)
  if (header === undefined) return 'the header is no JSON object'
  const x5c = certificatesOf(header)
  if (typeof x5c === 'string') return x5c

  const payloadText = text.slice(first + 1, second)
  if (foreign.test(payloadText)) return 'not base64url'
  const payload = objectIn(payloadText)
  if (payload === undefined) return 'the payload is no JSON object'
  return { header, payload, x5c, signed: text.slice(0, second), signature }
}

/** `jwk`, `jku`, `x5u` and `kid` are never used to find a key. */
function certificatesOf(header: JsonObject): string[] | string {
  if (header.alg !== 'ES256') return 'alg is not ES256'
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return 'crit or b64'
  const { x5c } = header
  if (!Array.isArray(x5c) || (x5c.length !== 3 && x5c.length !== 1)) return 'x5c has not three certificates'
  const texts = x5c.filter((each) => typeof each === 'string')
  return texts.length === x5c.length && texts.every(isCanonicalDer) ? texts : 'x5c is not canonical base64 of DER'
}

/** A sequence with a length of two bytes, as every certificate is, that fills all of it. */
function isCanonicalDer(text: string): boolean {
  const der = Buffer.from(text, 'base64')
  return (
    der.length > 4 &&
    der.readUInt16BE(0) === 0x3082 &&
    der.readUInt16BE(2) === der.length - 4 &&
    der.toString('base64') === text
  )
}

function objectIn(base64url: string): JsonObject | undefined {
  // Anything else is no object, and not worth parsing.
  if (!base64url.startsWith('ey') && !base64url.startsWith('ew')) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(base64url, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}
