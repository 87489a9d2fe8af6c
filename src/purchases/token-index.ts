import { LRUCache } from 'lru-cache'
import type { Consumer } from '../events/index.ts'
import type { Clock } from '../kernel/clock.ts'
import { indexedIdsKept, indexedIdsKeptMs, indexedScopesKept, storeAppsKeptMs } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { accountTokensOf } from './account-tokens.ts'
import { settingsOf } from './settings.ts'
import {
  type IndexedToken,
  type IndexingApp,
  selectIndexingApps,
  upsertTokens,
  wakeWaiting,
} from './token-index-store.ts'

/**
 * Writes down whose the account tokens of the rules are, for every distinct id that events name in a project that sells: so a
 * purchase finds its customer before any client has brought it. Ids that were written lately are remembered.
 */
export function createTokenIndex({ clock, baseUrls }: { clock: Clock; baseUrls: readonly string[] }): Consumer {
  const apps = new LRUCache<number, IndexingApp[]>({ max: indexedScopesKept, ttl: storeAppsKeptMs })
  const written = new LRUCache<string, string>({ max: indexedIdsKept, ttl: indexedIdsKeptMs })

  return async (tx, scope, slice) => {
    const known = apps.get(scope.scopeId) ?? (await selectIndexingApps(tx, scope))
    apps.set(scope.scopeId, known, { noUpdateTTL: true })
    if (known.length === 0) return
    const tokens = new Map<string, IndexedToken>()
    const fresh = new Map<string, string>()
    for (const { distinctId, customerId } of slice) {
      const key = `${scope.scopeId} ${distinctId}`
      if (written.get(key) === customerId || fresh.has(key)) continue
      fresh.set(key, customerId)
      for (const app of known) {
        for (const token of tokensOf(app, scope, { distinctId, customerId }, baseUrls)) {
          tokens.set(`${token.appId} ${token.value}`, token)
        }
      }
    }
    if (tokens.size === 0) return
    const now = clock.now()
    await upsertTokens(tx, scope, [...tokens.values()], now)
    await wakeWaiting(tx, scope, [...tokens.values()], now)
    // Should the slice be rolled back and decided otherwise: forgotten after an hour, and written again.
    for (const [key, customerId] of fresh) written.set(key, customerId)
  }
}

/** What the rules give for one id in one app. */
export function tokensOf(
  { appId, platform, bundleId, accountTokenNamespace, settings }: IndexingApp,
  scope: Scope,
  { distinctId, customerId }: { distinctId: string; customerId: string },
  baseUrls: readonly string[],
): IndexedToken[] {
  const store = platform === 'ios' ? 'appstore' : 'playstore'
  const app = { scope, bundleId, accountTokenNamespace, settings: settingsOf(settings) }
  return accountTokensOf(app, store, distinctId, baseUrls).map((value) => ({ appId, store, value, customerId }))
}
