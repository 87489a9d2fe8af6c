import { hash } from 'node:crypto'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { storeAppsKeptMs, tokenBackfillSlice } from '../kernel/limits.ts'
import { settingsOf } from './settings.ts'
import {
  type BackfilledApp,
  beginBackfill,
  deleteStaleBackfills,
  lockBackfill,
  moveBackfill,
  selectBackfilledApps,
  selectNames,
} from './token-backfill-store.ts'
import { tokensOf } from './token-index.ts'
import { upsertTokens, wakeWaiting } from './token-index-store.ts'

export interface BackfillServices {
  pool: Pool
  clock: Clock
  baseUrls: readonly string[]
}

/** The second finds whom the lane met while it did not know of the credentials yet. */
const passes = 2

/**
 * Writes down the account tokens of ids that were there before their app had credentials, its bundle id or its names for the
 * rule of clients: one slice of each app, each in a transaction of its own. Gives how many slices.
 */
export async function backfillTokens({ pool, clock, baseUrls }: BackfillServices): Promise<number> {
  await deleteStaleBackfills(pool)
  let slices = 0
  for (const app of await selectBackfilledApps(pool)) {
    const basis = basisOf(app, baseUrls)
    if (app.basis !== basis) await beginBackfill(pool, app, { basis, passes, now: clock.now() })
    if (await backfillSlice({ pool, clock, baseUrls }, app, basis)) slices++
  }
  return slices
}

function backfillSlice({ pool, clock, baseUrls }: BackfillServices, app: BackfilledApp, basis: string) {
  return pool.transaction(async (tx) => {
    const now = clock.now()
    const at = await lockBackfill(tx, app, { basis, now })
    if (!at) return false
    const names = await selectNames(tx, app.scope, { after: at.after, limit: tokenBackfillSlice })
    const tokens = names.flatMap((name) => tokensOf(app, app.scope, name, baseUrls))
    if (tokens.length > 0) {
      await upsertTokens(tx, app.scope, tokens, now)
      await wakeWaiting(tx, app.scope, tokens, now)
    }
    const last = names.at(-1)
    const passesLeft = at.passesLeft - 1
    if (last) await moveBackfill(tx, app, { ...at, after: last.distinctId, dueAt: now })
    else {
      const dueAt = passesLeft > 0 ? now + 2 * storeAppsKeptMs : null
      await moveBackfill(tx, app, { after: '', passesLeft, dueAt })
    }
    return last !== undefined
  })
}

function basisOf({ platform, bundleId, settings }: BackfilledApp, baseUrls: readonly string[]): string {
  const parts = platform === 'ios' ? [bundleId, settingsOf(settings).clientTokenNamespaces ?? baseUrls] : []
  return hash('sha256', JSON.stringify(parts))
}
