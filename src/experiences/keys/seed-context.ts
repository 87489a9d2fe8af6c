import type { Scope } from '../../tenancy/index.ts'
import type { SigningKey } from './key-store.ts'

/** What a sealed seed is bound to: it opens in no other row. */
export function seedContext(scope: Scope, key: Pick<SigningKey, 'publicId' | 'keyId' | 'publicKey'>): string {
  const { projectId, environment } = scope
  return JSON.stringify([
    'signing-seed',
    key.publicId,
    projectId,
    environment,
    key.keyId,
    key.publicKey.toString('hex'),
  ])
}
