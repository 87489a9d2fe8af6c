import { hash } from 'node:crypto'
import { randomText } from '../kernel/ids.ts'
import type { Environment } from './types.ts'

/** A new publishable key. It is no secret: it is stored and listed whole. */
export function mintPublishableKey(environment: Environment): string {
  return `pk_${environment}_${randomText(32)}`
}

/** A new secret key (about 206 bits) and the SHA-256 by which alone it is stored. The key is shown once. */
export function mintSecretKey(): { key: string; keyHash: Buffer } {
  const key = `sk_${randomText(40)}`
  return { key, keyHash: hashSecretKey(key) }
}

export function hashSecretKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

export function looksLikeSecretKey(text: string): boolean {
  return text.startsWith('sk_')
}

export function looksLikePublishableKey(text: string): boolean {
  return text.startsWith('pk_')
}
