import type { Tx } from '../../db/pool.ts'
import { assert } from '../../kernel/assert.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Scope } from '../../tenancy/index.ts'
import { signedMessage } from '../compile/release.ts'
import { isSignedBy } from '../keys/ed25519.ts'
import { type KeyEdit, activateKey as switchKey } from '../keys/keys.ts'
import { openSigner } from '../keys/signer.ts'
import { insertSignature, selectCurrentReleases } from './publication-store.ts'

/**
 * From now on the key signs, for these apps or for all. What is published there is signed with it before anybody can see the
 * switch: the same bytes, so the same hash, identity and number.
 */
export function activateKey(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  apps: string[] | '*',
  { names, sealingKey }: { names: WireNames; sealingKey: Buffer },
): Promise<KeyEdit> {
  return switchKey(tx, scopes, publicId, apps, async (scope) => {
    const signer = await openSigner(tx, scope, apps === '*' ? '*' : (apps[0] ?? '*'), sealingKey)
    for (const { sha256, bytes } of await selectCurrentReleases(tx, scope, apps)) {
      const message = signedMessage(names, bytes)
      const signature = signer.sign(message)
      assert(isSignedBy(signer.publicKey, message, signature), 'what was signed verifies')
      await insertSignature(tx, scope, { sha256, signingKeyId: signer.id, signature })
    }
  })
}
