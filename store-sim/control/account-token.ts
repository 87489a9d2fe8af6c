import { createHash, hash } from 'node:crypto'
import { refuse } from '../refusal.ts'
import type { SimApp } from '../world.ts'

/** What a device of the connected app tells the store about who buys, by the documented rules. */
export function accountTokenFor(app: SimApp, distinctId: string): string {
  if (app.store === 'playstore') return hash('sha256', distinctId)
  const namespace = app.connection?.accountTokenNamespace
  if (namespace == null) throw refuse('not_connected', `${app.id} is not connected: give accountToken instead`, 409)
  return uuidV5(namespace, `test:${distinctId}`)
}

export function uuidV5(namespace: string, name: string): string {
  const bytes = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest()
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes
    .subarray(0, 16)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
