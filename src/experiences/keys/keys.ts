import { randomBytes } from 'node:crypto'
import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { signingKeysMax } from '../../kernel/limits.ts'
import { seal } from '../../kernel/seal.ts'
import type { Scope } from '../../tenancy/index.ts'
import { isPublicSeed, publicKeyOf, thumbprintOf } from './ed25519.ts'
import {
  countKeys,
  insertKey,
  type KeyStatus,
  lockKeys,
  retireUnused,
  type SigningKey,
  selectKey,
  setUses,
  updateStatus,
} from './key-store.ts'
import { weaknessOf } from './point.ts'
import { seedContext } from './seed-context.ts'

/** A key of the caller's own: a seed to sign with, a public key to verify with, or both where they belong together. */
export interface KeyMaterial {
  keyId: string
  seed?: Buffer | undefined
  publicKey?: Buffer | undefined
}

export interface KeyEdit {
  before: SigningKey
  after: SigningKey
  scope: Scope
}

/** Makes a key. Without a name it is named by its thumbprint. `key_id_in_use` for a name that was ever used. */
export async function createKey(
  tx: Tx,
  scope: Scope,
  { keyId, sealingKey }: { keyId: string | undefined; sealingKey: Buffer },
): Promise<SigningKey> {
  const seed = randomBytes(32)
  return add(tx, scope, { keyId: keyId ?? thumbprintOf(publicKeyOf(seed)), seed }, sealingKey)
}

/** Takes over a key. `key_weak`, `key_is_public` in live, `key_id_in_use`. */
export async function importKey(tx: Tx, scope: Scope, material: KeyMaterial, sealingKey: Buffer): Promise<SigningKey> {
  const { seed, publicKey } = material
  if (seed === undefined && publicKey === undefined) {
    throw refuse('invalid_request', { message: 'A key to import has a seed, a public_key or both.' })
  }
  if (seed !== undefined && seed.length !== 32)
    throw refuse('key_weak', { param: 'seed', message: 'A seed has 32 bytes.' })
  if (seed !== undefined && scope.environment === 'live' && isPublicSeed(seed)) throw refuse('key_is_public')
  if (publicKey !== undefined) {
    const weakness = weaknessOf(publicKey)
    if (weakness !== undefined)
      throw refuse('key_weak', { param: 'public_key', message: `Not to be trusted: ${weakness}.` })
    if (seed !== undefined && !publicKeyOf(seed).equals(publicKey)) {
      throw refuse('invalid_request', { param: 'public_key', message: 'The public key does not belong to the seed.' })
    }
  }
  return add(tx, scope, material, sealingKey)
}

async function add(
  tx: Tx,
  scope: Scope,
  { keyId, seed, publicKey: given }: KeyMaterial,
  sealingKey: Buffer,
): Promise<SigningKey> {
  await lockKeys(tx, scope)
  if ((await countKeys(tx, scope)) >= signingKeysMax) {
    throw refuse('conflict', {
      message: `An environment of a project has at most ${signingKeysMax} signing keys, ever.`,
    })
  }
  const publicId = newId('skey')
  const publicKey = must(given ?? (seed && publicKeyOf(seed)), 'one of them is given')
  const context = seedContext(scope, { publicId, keyId, publicKey })
  const sealedSeed = seed === undefined ? null : seal(sealingKey, context, seed.toString('base64'))
  if (!(await insertKey(tx, scope, { publicId, keyId, publicKey, sealedSeed }))) {
    throw refuse('key_id_in_use', { param: 'key_id' })
  }
  return must(await selectKey(tx, [scope], publicId), 'it was inserted')
}

/**
 * From now on it signs, for these apps or for all; keys that then sign for none are retired. 409 for one that can't sign or
 * was revoked. `resign` signs with it what is published.
 */
export async function activateKey(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  apps: string[] | '*',
  resign: (scope: Scope) => Promise<void>,
): Promise<KeyEdit> {
  return edit(tx, scopes, publicId, async (key, scope) => {
    if (key.status === 'revoked') throw refuse('conflict', { message: 'The key was revoked.' })
    if (!key.canSign) throw refuse('conflict', { message: 'The key has no seed: it only verifies.' })
    await setUses(tx, key, apps)
    await updateStatus(tx, key, 'active')
    await retireUnused(tx, scope)
    await resign(scope)
  })
}

/** It goes on verifying, or no longer even that. 409 while it signs for an app: its successor is activated first. */
export async function withdrawKey(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  status: Extract<KeyStatus, 'retired' | 'revoked'>,
): Promise<KeyEdit> {
  return edit(tx, scopes, publicId, async (key) => {
    if (key.usedBy.length > 0) throw refuse('conflict', { message: 'The key signs: activate its successor first.' })
    if (key.status === 'revoked') {
      if (status === 'revoked') return
      throw refuse('conflict', { message: 'The key was revoked.' })
    }
    await updateStatus(tx, key, status)
  })
}

async function edit(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  change: (key: SigningKey, scope: Scope) => Promise<void>,
): Promise<KeyEdit> {
  const found = await getKey(tx, scopes, publicId)
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === found.scopeId),
    'it was found there',
  )
  await lockKeys(tx, scope)
  const before = await getKey(tx, [scope], publicId)
  await change(before, scope)
  return { before, after: await getKey(tx, [scope], publicId), scope }
}

/** Throws `not_found`. */
export async function getKey(sql: Sql, scopes: Scope[], publicId: string): Promise<SigningKey> {
  const key = await selectKey(sql, scopes, publicId)
  if (!key) throw refuse('not_found')
  return key
}
