import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * Seals `plain` under a 32-byte key: AES-256-GCM, base64 of nonce (12) + tag (16) + cipher text. `context` names what is
 * sealed and is authenticated, so that one sealed value can't stand in for another.
 */
export function seal(key: Buffer, context: string, plain: string): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
  const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
}

/** The sealed text, or undefined when the key or the context is another. */
export function unseal(key: Buffer, context: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(12, 28))
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
