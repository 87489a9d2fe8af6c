import { getCustomer } from '../customers/index.ts'
import type { Tx } from '../db/pool.ts'
import { selectLedgerClock } from '../entitlements/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { isUuid } from '../kernel/ids.ts'
import type { App, Scope } from '../tenancy/index.ts'
import { adopt } from './adopt.ts'
import { type Binding, insertBinding, lockToken, selectBinding } from './claim-store.ts'
import { selectUnowned } from './lineage-store.ts'
import type { LoadStoreApp } from './store-app.ts'

/**
 * Says whose an account token is that nothing could compute, and gives them what waits for it. In the caller's transaction;
 * again it changes nothing. Throws
 * `conflict` when the value is another customer's, `invalid_request` for a value that the store can't carry.
 */
export async function registerBinding(
  tx: Tx,
  scope: Scope,
  { app, customerId, value, loadStoreApp }: { app: App; customerId: string; value: string; loadStoreApp: LoadStoreApp },
): Promise<Binding> {
  const wrong = (message: string) =>
    refuse('invalid_request', { param: app.platform === 'web' ? 'app_id' : 'value', message })
  if (app.platform === 'web') throw wrong('a web app has no store')
  if (app.platform === 'ios' && !isUuid(value)) throw wrong('value must be a UUID for an iOS app')
  if (app.platform === 'android' && value.length > playValueCharsMax) {
    throw wrong(`value has at most ${playValueCharsMax} characters for an Android app`)
  }
  const which =
    app.platform === 'ios'
      ? ({ appId: app.id, store: 'appstore', value: value.toLowerCase() } as const)
      : ({ appId: app.id, store: 'playstore', value } as const)
  const customer = await getCustomer(tx, scope, customerId)
  const now = await selectLedgerClock(tx, scope)
  await lockToken(tx, scope, which)
  await insertBinding(tx, scope, { ...which, customerId: customer.id, source: 'registered', now })
  const binding = must(await selectBinding(tx, scope, which), 'it is there now')
  const owner = binding.customerId === customer.id ? customer : await getCustomer(tx, scope, binding.customerId)
  if (owner.id !== customer.id) {
    throw refuse('conflict', { param: 'value', message: 'The value belongs to another customer.' })
  }
  const waiting = await selectUnowned(tx, scope, which)
  if (waiting.length > 0) {
    const storeApp = await loadStoreApp(tx, scope, app.id)
    for (const id of waiting) await adopt(tx, storeApp, id, customer.id)
  }
  return { ...binding, customerId: customer.id }
}

/** What Google Play takes as an obfuscated account id. */
const playValueCharsMax = 64
