import { hash, randomBytes } from 'node:crypto'

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz'

/** A random opaque id such as `app_4k…`: the prefix and 24 characters of base 36 (124 bits). */
export function newId(prefix: string): string {
  return `${prefix}_${randomText(24)}`
}

/** `length` random characters of base 36, unbiased. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 252 && text.length < length) text += alphabet[byte % 36]
    }
  }
  return text
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** 8-4-4-4-12 hexadecimal digits, any version, any case; not all zeros and not all F. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text) && text !== '00000000-0000-0000-0000-000000000000' && !/^[f-]+$/i.test(text)
}

/** UUID version 5 (RFC 9562, SHA-1) of `name` in `namespace`, lower case. */
export function uuidV5(namespace: string, name: string): string {
  const digest = hash(
    'sha1',
    Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name)]),
    'buffer',
  )
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6)
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = digest.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** UUID version 7 (RFC 9562) of this instant, lower case: later ones sort behind. */
export function uuidV7(ms: number): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(ms, 0, 6)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
