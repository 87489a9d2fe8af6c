import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { secretKeysMax } from '../kernel/limits.ts'
import type { Page } from '../kernel/page.ts'
import { mintSecretKey } from './keys.ts'
import { countKeys, insertExpiringKey, markSecretKeyRevoked, selectSecretKeys } from './secret-key-store.ts'
import type { SecretKey } from './types.ts'
import { lockWorkspace } from './workspaces.ts'

/** A new secret key with the secret, which is shown once. The caller announces it with `touchTenancy`. Throws `conflict`. */
export async function createSecretKey(
  tx: Tx,
  workspaceId: string,
  { userId, name, expiresInDays }: { userId: string | null; name: string; expiresInDays: number | null },
): Promise<{ created: SecretKey; secret: string }> {
  await lockWorkspace(tx, workspaceId)
  if ((await countKeys(tx, workspaceId)) >= secretKeysMax) {
    throw refuse('conflict', { message: `A workspace has at most ${secretKeysMax} keys: revoke some first.` })
  }
  const { key, keyHash } = mintSecretKey()
  const [created] = await insertExpiringKey(tx, {
    id: newId('key'),
    workspaceId,
    name,
    hash: keyHash,
    createdByUserId: userId,
    days: expiresInDays,
  })
  return { created: must(created, 'the row was inserted'), secret: key }
}

/** Revoked ones are gone from it. */
export function listSecretKeys(sql: Sql, workspaceId: string, page: Page): Promise<SecretKey[]> {
  return selectSecretKeys(sql, workspaceId, page)
}

/** For good. The caller announces it. Throws `not_found`. */
export async function revokeSecretKey(tx: Tx, workspaceId: string, id: string): Promise<SecretKey> {
  const key = await markSecretKeyRevoked(tx, workspaceId, id)
  if (!key) throw refuse('not_found')
  return key
}
