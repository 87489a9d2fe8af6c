import { LRUCache } from 'lru-cache'
import type { Sql } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import { trustSetsKeptMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import type { Scope } from '../tenancy/index.ts'
import { type LiveCredentialRow, type StoreAppRow, selectLiveCredentials, selectStoreApp } from './config-store.ts'
import { credentialsOf, liveFault, openCredential } from './credentials.ts'
import { settingsOf } from './settings.ts'
import type { StoreApp, StoreCredentials } from './types.ts'

export type LoadStoreApp = (sql: Sql, scope: Scope, appId: string) => Promise<StoreApp>

/** Apps with their stores' credentials opened. Opened ones are kept in memory, by what was sealed. Throws `not_found`. */
export function createLoadStoreApp(sealingKey: Buffer): LoadStoreApp {
  const opened = new LRUCache<string, StoreCredentials>({ max: trustSetsKeptMax })

  function credentialsIn({ id, credentials }: StoreAppRow, { environment }: Scope): StoreCredentials {
    const key = JSON.stringify([environment, id, ...credentials.map(({ sealed }) => sealed).toSorted()])
    const kept = opened.get(key)
    if (kept) return kept
    const made = credentialsOf(
      credentials.map(({ kind, sealed, wrapped_key: wrappedKey }) =>
        openCredential(sealingKey, { appId: id, environment }, { kind, sealed, wrappedKey }),
      ),
    )
    opened.set(key, made)
    return made
  }

  return async (sql, scope, appId) => {
    const row = await selectStoreApp(sql, scope, appId)
    if (!row) throw refuse('not_found')
    return {
      scope,
      appId: row.id,
      bundleId: row.bundle_id,
      packageName: row.package_name,
      accountTokenNamespace: row.account_token_namespace,
      settings: settingsOf(row.settings),
      credentials: credentialsIn(row, scope),
      clockOffsetMs: scope.environment === 'test' ? Number(row.clock_offset_ms) : 0,
    }
  }
}

/** At start: a live record that names a foreign root, address or token address ends it. Gives how many there are. */
export async function checkLiveCredentials(sql: Sql, sealingKey: Buffer): Promise<number> {
  const records = await selectLiveCredentials(sql)
  for (const record of records) {
    const { app_id: appId } = record
    const fault = faultOf(record, sealingKey)
    if (fault !== undefined)
      throw new StartError(`the store credentials of the live app ${appId} are refused: ${fault}`)
  }
  return records.length
}

function faultOf(
  { app_id: appId, environment, kind, sealed, wrapped_key: wrappedKey }: LiveCredentialRow,
  sealingKey: Buffer,
): string | undefined {
  try {
    return liveFault(environment, openCredential(sealingKey, { appId, environment }, { kind, sealed, wrappedKey }))
  } catch {
    return `${kind} does not open: it was made for another app, environment or database.`
  }
}
