import type { Tx } from '../db/pool.ts'
import { newId } from '../kernel/ids.ts'
import { mintSecretKey } from './keys.ts'
import { insertSecretKey, insertVerifiedUser, insertWorkspace, lockIfEmpty } from './owner-store.ts'
import { hashPassword } from './password.ts'

export interface FirstWorkspace {
  workspaceId: string
  /** Shown once; only its hash is stored. */
  secretKey: string
}

/**
 * On an empty database: the first owner, verified, with a workspace and one secret key without expiry. Undefined when there
 * is a workspace already.
 */
export async function createFirstWorkspace(
  tx: Tx,
  { email, password }: { email: string; password: string },
): Promise<FirstWorkspace | undefined> {
  if (!(await lockIfEmpty(tx))) return undefined
  const ownerId = newId('usr')
  const workspaceId = newId('ws')
  await insertVerifiedUser(tx, {
    id: ownerId,
    email: email.toLowerCase(),
    name: 'Owner',
    credentialId: newId('cred'),
    passwordHash: await hashPassword(password),
  })
  await insertWorkspace(tx, { id: workspaceId, name: 'My workspace', slug: 'my-workspace', ownerId })
  const { key, keyHash } = mintSecretKey()
  await insertSecretKey(tx, {
    id: newId('key'),
    workspaceId,
    name: 'First key',
    hash: keyHash,
    createdByUserId: ownerId,
  })
  return { workspaceId, secretKey: key }
}
