import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { unseal } from '../../kernel/seal.ts'
import type { Scope } from '../../tenancy/index.ts'
import { privateKeyOf, signWith } from './ed25519.ts'
import { lockKeys, selectSigning } from './key-store.ts'
import { seedContext } from './seed-context.ts'

/** Signs for one app. The only place where a seed is open. */
export interface Signer {
  /** Of the row. */
  id: number
  keyId: string
  publicKey: Buffer
  sign: (message: Buffer) => Buffer
}

/** With the key that signs for the app now. 409 `signing_key_missing` when there is none. */
export async function openSigner(tx: Tx, scope: Scope, appId: string, sealingKey: Buffer): Promise<Signer> {
  // Held until the transaction ends: whoever rotates meanwhile signs what this one publishes as well.
  await lockKeys(tx, scope)
  const found = await selectSigning(tx, scope, appId)
  if (!found) throw refuse('signing_key_missing', { details: { app_id: appId } })
  const { id, keyId, publicKey, sealedSeed } = found
  const seed = must(unseal(sealingKey, seedContext(scope, found), sealedSeed), 'it was sealed for this row')
  const key = privateKeyOf(Buffer.from(seed, 'base64'))
  return { id, keyId, publicKey, sign: (message) => signWith(key, message) }
}
