import { createHmac, randomBytes } from 'node:crypto'
import type { Tx } from '../db/pool.ts'
import { seal, unseal } from '../kernel/seal.ts'
import { StartError } from '../kernel/start-error.ts'
import { insertInstance, lockSealedSecrets, readSealedSecrets, updateSealedSecrets } from './store.ts'

/** Secrets of this database, kept in it sealed under the master key. */
export interface InstanceSecrets {
  /** Keys the hashes by which deleted distinct ids are remembered. */
  tombstoneKey: Buffer
}

/** Under which mails and saved secrets are sealed. Not the master key: that one may be replaced while they wait. */
export function sealingKeyOf({ tombstoneKey }: InstanceSecrets): Buffer {
  return createHmac('sha256', tombstoneKey).update('sealing').digest()
}

const context = 'instance-secrets'

/** Opens the instance's secrets, making them on first run. Throws one plain sentence when the master key is another. */
export async function openInstance(tx: Tx, masterKey: Buffer): Promise<InstanceSecrets> {
  const fresh = { tombstone: randomBytes(32).toString('base64') }
  await insertInstance(tx, seal(masterKey, context, JSON.stringify(fresh)))
  const sealed = (await readSealedSecrets(tx)) ?? ''
  const text = unseal(masterKey, context, sealed)
  if (text === undefined) throw new StartError('MASTER_KEY is not the key this database was set up with')
  const secrets = JSON.parse(text) as typeof fresh // sealed by us, above
  return { tombstoneKey: Buffer.from(secrets.tombstone, 'base64') }
}

/** Whether a database with these sealed secrets starts with this key. */
export function opensInstance(masterKey: Buffer, sealed: string): boolean {
  return unseal(masterKey, context, sealed) !== undefined
}

/** The same for the database itself. True for one that was never set up: it takes any key. */
export async function opensDatabase(tx: Tx, masterKey: Buffer): Promise<boolean> {
  const sealed = await readSealedSecrets(tx)
  return sealed === undefined || opensInstance(masterKey, sealed)
}

/**
 * Seals the instance's secrets under another key. That is all there is to do: everything else is sealed under a key that
 * follows from them, so processes that run need not hear of it.
 */
export async function resealInstance(tx: Tx, { from, to }: { from: Buffer; to: Buffer }): Promise<void> {
  const text = unseal(from, context, (await lockSealedSecrets(tx)) ?? '')
  if (text === undefined) throw new StartError('the master key is not the one this database was set up with')
  await updateSealedSecrets(tx, seal(to, context, text))
}
