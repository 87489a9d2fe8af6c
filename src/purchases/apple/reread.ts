import type { Pool } from '../../db/pool.ts'
import { storeVerdictMsMax } from '../../kernel/limits.ts'
import { selectTransactions } from '../period-store.ts'
import type { Reread } from '../reverify.ts'
import type { TransactionClaims } from './claims.ts'
import { readFresh } from './fresh.ts'
import { type AppStoreServices, unavailable } from './genuine.ts'
import { purchaseOf } from './purchase.ts'

/** How a lineage stands, asked by its newest transaction that we know. */
export function createAppStoreReread(services: AppStoreServices, pool: Pool): Reread {
  return async (app, lineage, context) => {
    const [newest] = await selectTransactions(pool, lineage, 1)
    if (!newest || !app.credentials.appstore?.api || lineage.storeEnvironment === 'xcode') {
      return unavailable('the app has no key for the App Store')
    }
    const transaction = newest.claims as TransactionClaims // stored once it was verified
    const genuine = { transaction, storeEnvironment: lineage.storeEnvironment, idPrefix: '', signer: null }
    const fresh = await readFresh(services, app, genuine, {
      ...context,
      signal: AbortSignal.timeout(storeVerdictMsMax),
    })
    return fresh.kind === 'refused' ? fresh : purchaseOf(app, genuine, fresh, context)
  }
}
