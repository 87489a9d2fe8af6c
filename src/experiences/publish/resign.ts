import type { Tx } from '../../db/pool.ts'
import { assert } from '../../kernel/assert.ts'
import { offerKeptDays } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Scope } from '../../tenancy/index.ts'
import { signedMessage } from '../compile/release.ts'
import type { Pin } from '../deliver/delivery.ts'
import { isSignedBy } from '../keys/ed25519.ts'
import { type KeyEdit, activateKey as switchKey } from '../keys/keys.ts'
import { openSigner } from '../keys/signer.ts'
import { selectReplaced } from './publication-store.ts'
import { insertSignature, selectCurrentReleases, selectPinnedReleases } from './release-store.ts'

export interface ResignServices {
  names: WireNames
  sealingKey: Buffer
  /** Versions that something still runs, live or not. */
  pinned: (tx: Tx, scope: Scope) => Promise<Pin[]>
}

/**
 * From now on the key signs, for these apps or for all. What is published there, what journeys there still run, and what devices
 * that fetched it lately may still begin, is signed with it before anybody can see the switch: the same bytes, so the same hash,
 * identity and number.
 */
export function activateKey(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  apps: string[] | '*',
  { names, sealingKey, pinned }: ResignServices,
): Promise<KeyEdit> {
  return switchKey(tx, scopes, publicId, apps, async (scope) => {
    const signer = await openSigner(tx, scope, apps === '*' ? '*' : (apps[0] ?? '*'), sealingKey)
    const needed = [...(await pinned(tx, scope)), ...(await selectReplaced(tx, scope, offerKeptDays))]
    const pins = needed.filter(({ appId }) => apps === '*' || apps.includes(appId))
    const older = pins.length === 0 ? [] : await selectPinnedReleases(tx, scope, pins)
    for (const { sha256, bytes } of [...(await selectCurrentReleases(tx, scope, apps)), ...older]) {
      const message = signedMessage(names, bytes)
      const signature = signer.sign(message)
      assert(isSignedBy(signer.publicKey, message, signature), 'what was signed verifies')
      await insertSignature(tx, scope, { sha256, signingKeyId: signer.id, signature })
    }
  })
}
