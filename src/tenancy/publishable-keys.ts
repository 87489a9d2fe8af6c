import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Page } from '../kernel/page.ts'
import { mintPublishableKey } from './keys.ts'
import {
  insertPublishableKey,
  lockPublishableKey,
  markKeyRevoked,
  selectPublishableKeys,
} from './publishable-key-store.ts'
import type { Environment, PublishableKey } from './types.ts'

/** The caller holds the app and announces the key with `touchTenancy`. */
export async function createPublishableKey(tx: Tx, appId: string, environment: Environment): Promise<PublishableKey> {
  const [created] = await insertPublishableKey(tx, {
    id: newId('key'),
    appId,
    environment,
    key: mintPublishableKey(environment),
  })
  return must(created, 'the row was inserted')
}

/** Revoked ones included. */
export function listPublishableKeys(
  sql: Sql,
  appId: string,
  environment: Environment,
  page: Page,
): Promise<PublishableKey[]> {
  return selectPublishableKeys(sql, appId, environment, page)
}

/** For good; once more changes nothing. The caller announces it. Throws `not_found`. */
export async function revokePublishableKey(
  tx: Tx,
  appId: string,
  environment: Environment,
  id: string,
): Promise<PublishableKey> {
  const key = await lockPublishableKey(tx, appId, environment, id)
  if (!key) throw refuse('not_found')
  await markKeyRevoked(tx, id)
  return key
}
